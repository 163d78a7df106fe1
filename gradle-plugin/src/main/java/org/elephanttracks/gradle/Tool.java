package org.elephanttracks.gradle;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import org.gradle.api.GradleException;
import org.gradle.api.Project;
import org.gradle.api.artifacts.Configuration;
import org.gradle.api.logging.Logger;

/** The program {@code et-instrument}: where it is, and how it is asked for a report. */
final class Tool {
    private static final String NAME = "et-instrument";
    /** The plugin's jar, without its version. */
    private static final String PLUGIN = "elephant-tracks-gradle-plugin";
    /** What is no message, but tells how far the work has come. */
    private static final String PROGRESS = "progress: ";
    private static final String SPEAKER = NAME + ": ";
    /** What wrong usage ends with: there is no command line here to mend. */
    private static final String ADVICE = "For more information, try";
    private static final int WRONG_USAGE = 2;

    private Tool() {
    }

    /** In PATH, or beside the plugin; null if it is nowhere. */
    static File find(Project project) {
        String path = System.getenv("PATH");
        for (String folder : (path == null ? "" : path).split(File.pathSeparator)) {
            File candidate = new File(folder, NAME);
            if (!folder.isEmpty() && isProgram(candidate)) {
                return candidate.getAbsoluteFile();
            }
        }
        for (Project asked = project; asked != null; asked = asked.getParent()) {
            // Not where this class comes from: Gradle loads plugins from copies of its own.
            Configuration plugins = asked.getBuildscript().getConfigurations().findByName("classpath");
            File found = plugins == null ? null : beside(plugins.getFiles());
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** The plugin is installed below the folder that has {@code bin}. */
    private static File beside(Iterable<File> plugins) {
        for (File plugin : plugins) {
            File folder = plugin.getName().startsWith(PLUGIN) ? plugin.getParentFile() : null;
            for (; folder != null; folder = folder.getParentFile()) {
                File candidate = new File(folder, "bin/" + NAME);
                if (isProgram(candidate)) {
                    return candidate;
                }
            }
        }
        return null;
    }

    private static boolean isProgram(File file) {
        return file.isFile() && file.canExecute();
    }

    /** Runs a command and returns what it prints. Its progress is shown, its error is ours. */
    static String report(List<String> command, Logger log) {
        Process process = start(new ProcessBuilder(command));
        try {
            process.getOutputStream().close();
            List<String> messages = new ArrayList<>();
            Thread reader = new Thread(() -> follow(process.getErrorStream(), messages, log), "messages of " + NAME);
            reader.start();
            String report = new String(bytes(process.getInputStream()), StandardCharsets.UTF_8);
            int code = process.waitFor();
            reader.join();
            if (code != 0) {
                throw new GradleException(failure(command.get(0), code, messages));
            }
            messages.forEach(message -> log.warn(message));
            return report;
        } catch (IOException error) {
            throw new GradleException("cannot read what " + command.get(0) + " says: " + error.getMessage(), error);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new GradleException(NAME + " was stopped");
        } finally {
            process.destroy();
        }
    }

    static Process start(ProcessBuilder builder) {
        try {
            return builder.start();
        } catch (IOException error) {
            throw new GradleException("cannot start " + builder.command().get(0) + ": " + error.getMessage(), error);
        }
    }

    /** Copies all there is to read. What cannot be written is not wanted any more. */
    static void copy(InputStream from, OutputStream to) throws IOException {
        byte[] buffer = new byte[8192];
        for (int count = from.read(buffer); count >= 0; count = from.read(buffer)) {
            to.write(buffer, 0, count);
            to.flush();
        }
    }

    private static void follow(InputStream stream, List<String> messages, Logger log) {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(PROGRESS)) {
                    log.lifecycle(line.substring(PROGRESS.length()));
                } else if (!line.isEmpty() && !line.startsWith(ADVICE)) {
                    messages.add(line.startsWith(SPEAKER) ? line.substring(SPEAKER.length()) : line);
                }
            }
        } catch (IOException closed) {
            log.debug("stopped reading messages", closed);
        }
    }

    private static String failure(String executable, int code, List<String> messages) {
        String text = String.join("\n", messages).trim();
        if (code == WRONG_USAGE && (text.contains("unexpected argument") || text.contains("unrecognized"))) {
            return executable + " is not of the plugin's version: " + text;
        }
        return text.isEmpty() ? executable + " failed with exit code " + code : text;
    }

    private static byte[] bytes(InputStream stream) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        copy(stream, all);
        return all.toByteArray();
    }
}
