package org.elephanttracks.gradle;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

import groovy.json.JsonException;
import groovy.json.JsonSlurper;

import org.gradle.api.GradleException;

/** The report of {@code et-instrument prepare}. */
final class Prepared {
    private static final String EXCLUDE = "-Det.dynamicExclude=";

    private final File javaHome;
    private final List<String> options = new ArrayList<>();
    private final List<File> originals = new ArrayList<>();
    private final List<File> copies = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();
    private final int jars;
    private final int classFiles;

    private Prepared(Map<?, ?> report) {
        javaHome = new File((String) report.get("java_home"));
        strings(report.get("options"), options);
        strings(report.get("notes"), notes);
        for (Object entry : (Collection<?>) report.get("class_path")) {
            originals.add(new File((String) ((Map<?, ?>) entry).get("original")));
            copies.add(new File((String) ((Map<?, ?>) entry).get("copy")));
        }
        jars = ((Number) report.get("jars")).intValue();
        classFiles = ((Number) report.get("class_files")).intValue();
    }

    static Prepared parse(String json) {
        try {
            return new Prepared((Map<?, ?>) new JsonSlurper().parseText(json));
        } catch (JsonException | ClassCastException | NullPointerException | IllegalArgumentException error) {
            throw new GradleException("et-instrument's report is not understood; is it of the plugin's version?", error);
        }
    }

    /** What an earlier build has left; null if there is nothing to be read. */
    static Prepared read(File report) {
        try {
            return parse(new String(Files.readAllBytes(report.toPath()), StandardCharsets.UTF_8));
        } catch (IOException | GradleException nothing) {
            return null;
        }
    }

    /** Whether all of it is still there: the cache may have been cleared. */
    boolean isThere(Collection<File> classPath) {
        return originals.equals(real(classPath)) && new File(javaHome, "bin/java").canExecute()
            && copies.stream().allMatch(File::exists);
    }

    /** What is on a class path, links resolved, as in reports. */
    static List<File> real(Collection<File> classPath) {
        List<File> entries = new ArrayList<>();
        for (File entry : classPath) {
            // Folders of tasks that had nothing to do.
            if (entry.exists()) {
                try {
                    entries.add(entry.toPath().toRealPath().toFile());
                } catch (IOException unreadable) {
                    entries.add(entry);
                }
            }
        }
        return entries;
    }

    File javaHome() {
        return javaHome;
    }

    List<File> copies() {
        return copies;
    }

    List<String> notes() {
        return notes;
    }

    /** {@code 2 jars and 1 class file}; null if all was there. */
    String rewrote() {
        List<String> parts = new ArrayList<>();
        if (jars > 0) {
            parts.add(jars + (jars == 1 ? " jar" : " jars"));
        }
        if (classFiles > 0) {
            parts.add(classFiles + (classFiles == 1 ? " class file" : " class files"));
        }
        return parts.isEmpty() ? null : String.join(" and ", parts);
    }

    /** The options as a file for {@code java @FILE}; these classes are to be left alone as well. */
    String argumentFile(Collection<String> excludes) {
        List<String> lines = new ArrayList<>();
        String excluded = String.join(",", excludes);
        for (String option : options) {
            if (option.startsWith(EXCLUDE)) {
                excluded = option.substring(EXCLUDE.length()) + (excluded.isEmpty() ? "" : "," + excluded);
            } else {
                lines.add(argument(option));
            }
        }
        if (!excluded.isEmpty()) {
            lines.add(argument(EXCLUDE + excluded));
        }
        return String.join("\n", lines) + "\n";
    }

    /** A word as it is written in a file of arguments. */
    static String argument(String word) {
        return '"' + word.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private static void strings(Object list, List<String> to) {
        for (Object element : (Collection<?>) list) {
            to.add((String) element);
        }
    }
}
