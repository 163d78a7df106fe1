package org.elephanttracks.plugin;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** The report of {@code et-instrument prepare}. */
public final class Prepared {
    private static final String EXCLUDE = "-Det.dynamicExclude=";

    private final File javaHome;
    private final List<String> options = new ArrayList<>();
    private final List<File> originals = new ArrayList<>();
    private final List<File> copies = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();
    private final int jars;
    private final int classFiles;

    private Prepared(Map<?, ?> report) {
        javaHome = new File((String) report.get("javaHome"));
        strings(report.get("options"), options);
        strings(report.get("notes"), notes);
        for (Object entry : (Collection<?>) report.get("classPath")) {
            originals.add(new File((String) ((Map<?, ?>) entry).get("original")));
            copies.add(new File((String) ((Map<?, ?>) entry).get("copy")));
        }
        jars = ((Number) report.get("jars")).intValue();
        classFiles = ((Number) report.get("classFiles")).intValue();
    }

    static Prepared parse(String json) throws Failure {
        try {
            return new Prepared((Map<?, ?>) Json.parse(json));
        } catch (ClassCastException | NullPointerException | IllegalArgumentException error) {
            throw new Failure("cannot read the report of et-instrument: does its version match the plugin?", error);
        }
    }

    /** What an earlier build has left; null if there is nothing to be read. */
    public static Prepared read(File report) {
        try {
            return parse(new String(Files.readAllBytes(report.toPath()), StandardCharsets.UTF_8));
        } catch (IOException | Failure nothing) {
            return null;
        }
    }

    /** Whether all of it is still there: the cache may have been cleared. */
    public boolean isThere(Collection<File> classPath) {
        return originals.equals(real(classPath)) && new File(javaHome, "bin/java").canExecute()
            && copies.stream().allMatch(File::exists);
    }

    /** What is on a class path, links resolved, as in reports. */
    public static List<File> real(Collection<File> classPath) {
        List<File> entries = new ArrayList<>();
        for (File entry : classPath) {
            // Not what build tools name and nothing was compiled for.
            if (entry.exists()) {
                entries.add(real(entry));
            }
        }
        return entries;
    }

    private static File real(File entry) {
        try {
            return entry.toPath().toRealPath().toFile();
        } catch (IOException missing) {
            return entry;
        }
    }

    public File javaHome() {
        return javaHome;
    }

    public List<File> copies() {
        return copies;
    }

    /** What to run instead of an entry of the class path: it itself if there is no copy. */
    public File copyOf(File original) {
        int place = originals.indexOf(real(original));
        return place < 0 ? original : copies.get(place);
    }

    /** Shows what was done, and what the user may want to know. */
    public void tell(Messages messages) {
        notes.forEach(messages::say);
        String rewrote = rewrote();
        if (rewrote != null) {
            messages.say("rewrote " + rewrote);
        }
    }

    /** {@code 2 jars and 1 class file}; null if all was there. */
    public String rewrote() {
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
                lines.add(Preparation.argument(option));
            }
        }
        if (!excluded.isEmpty()) {
            lines.add(Preparation.argument(EXCLUDE + excluded));
        }
        return String.join("\n", lines) + "\n";
    }

    private static void strings(Object list, List<String> to) {
        for (Object element : (Collection<?>) list) {
            to.add((String) element);
        }
    }
}
