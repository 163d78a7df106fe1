package org.elephanttracks.gradle;

import java.io.File;
import java.util.List;

import org.gradle.api.GradleException;
import org.gradle.api.Project;
import org.gradle.api.artifacts.Configuration;

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Tool;

/** The extension's values as tasks want them. A project property such as {@code elephantTracks.events} comes first. */
final class Settings {
    /** The plugin's jar, without its version. */
    private static final String PLUGIN = "elephant-tracks-gradle-plugin";

    private final Project project;
    private final ElephantTracksExtension extension;

    Settings(Project project, ElephantTracksExtension extension) {
        this.project = project;
        this.extension = extension;
    }

    /** Options of {@code et-instrument} that decide what is hooked. */
    List<String> hooks() {
        String events = events();
        String witness = String.valueOf(value("witness", extension.getWitness()));
        return Tool.hooks(events, witness, extension.getExcludes(), extension.getIncludes());
    }

    /** Properties that are given for this build come before what the script says, whichever of the two they are. */
    private String events() {
        Object mode = project.findProperty("elephantTracks.mode");
        Object events = project.findProperty("elephantTracks.events");
        if (mode == null && events == null) {
            mode = extension.getMode();
            events = extension.getEvents();
        }
        try {
            return Tool.events(mode == null ? null : mode.toString(), events == null ? null : events.toString());
        } catch (Failure failure) {
            throw new GradleException(failure.getMessage());
        }
    }

    /** Whether tests count allocations, and leave no traces. */
    boolean counts() {
        return Boolean.parseBoolean(String.valueOf(value("counts", extension.getCounts())));
    }

    /** The JDK to run on. */
    File jdkHome() {
        File given = file("jdkHome", extension.getJdkHome());
        return given != null ? given : Tool.ownJdk();
    }

    /** Where JDKs and programs are kept; null for the user's cache. */
    File cacheDir() {
        return file("cacheDir", extension.getCacheDir());
    }

    /** The program; null if it is nowhere. */
    File executable() {
        File given = file("executable", extension.getExecutable());
        if (given != null) {
            return given;
        }
        File found = Tool.inPath();
        // Not where this class comes from: Gradle loads plugins from copies of its own.
        for (Project asked = project; found == null && asked != null; asked = asked.getParent()) {
            Configuration plugins = asked.getBuildscript().getConfigurations().findByName("classpath");
            found = plugins == null ? null : installedWith(plugins.getFiles());
        }
        return found;
    }

    private static File installedWith(Iterable<File> plugins) {
        for (File plugin : plugins) {
            File found = plugin.getName().startsWith(PLUGIN) ? Tool.installedWith(plugin) : null;
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** The program and where it keeps things: the start of a command line. */
    List<String> command(String subcommand) {
        File executable = executable();
        if (executable == null) {
            throw new GradleException("et-instrument not found: set elephantTracks { executable = '…' }, or add it to PATH");
        }
        return Tool.command(executable, subcommand, cacheDir(), hooks());
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
