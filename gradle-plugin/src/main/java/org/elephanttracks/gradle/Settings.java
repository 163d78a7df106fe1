package org.elephanttracks.gradle;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;

import org.gradle.api.GradleException;
import org.gradle.api.Project;

/** The extension's values as tasks want them. A project property such as {@code elephantTracks.events} comes first. */
final class Settings {
    private final Project project;
    private final ElephantTracksExtension extension;

    Settings(Project project, ElephantTracksExtension extension) {
        this.project = project;
        this.extension = extension;
    }

    /** Options of {@code et-instrument} that decide what is hooked. The first pattern that matches a class counts. */
    List<String> hooks() {
        List<String> options = new ArrayList<>();
        options.add("--events");
        options.add(String.valueOf(value("events", extension.getEvents())));
        // Elements may be Groovy's GStrings, whatever the list's type says.
        for (Object pattern : extension.getExcludes()) {
            options.add("--exclude");
            options.add(String.valueOf(pattern));
        }
        for (Object pattern : extension.getIncludes()) {
            options.add("--include");
            options.add(String.valueOf(pattern));
        }
        return options;
    }

    /** The JDK to run on. */
    File jdkHome() {
        File given = file("jdkHome", extension.getJdkHome());
        if (given != null) {
            return given;
        }
        File own = new File(System.getProperty("java.home"));
        // A JDK 8 has its JVM in jre.
        return own.getName().equals("jre") && new File(own.getParentFile(), "bin/java").exists() ? own.getParentFile() : own;
    }

    /** What tells one state of the JDK from another: its place, and its version. */
    String jdk() {
        File home = jdkHome();
        try {
            return home + "\n" + new String(Files.readAllBytes(home.toPath().resolve("release")), StandardCharsets.UTF_8);
        } catch (IOException noRelease) {
            return home.toString();
        }
    }

    /** Where JDKs and programs are kept; null for the user's cache. */
    File cacheDir() {
        return file("cacheDir", extension.getCacheDir());
    }

    /** The program; null if it is nowhere. */
    File executable() {
        File given = file("executable", extension.getExecutable());
        return given != null ? given : Tool.find(project);
    }

    /** The program and where it keeps things: the start of a command line. */
    List<String> command(String subcommand) {
        File executable = executable();
        if (executable == null) {
            throw new GradleException("et-instrument is not found: say elephantTracks { executable = '…' }, or have it in PATH");
        }
        List<String> command = new ArrayList<>();
        command.add(executable.getPath());
        command.add(subcommand);
        File cacheDir = cacheDir();
        if (cacheDir != null) {
            command.add("--cache-dir");
            command.add(cacheDir.getPath());
        }
        command.addAll(hooks());
        return command;
    }

    private Object value(String name, Object ofExtension) {
        Object ofProject = project.findProperty("elephantTracks." + name);
        return ofProject != null ? ofProject : ofExtension;
    }

    private File file(String name, Object ofExtension) {
        Object value = value(name, ofExtension);
        return value == null ? null : project.file(value);
    }
}
