package org.elephanttracks.plugin;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;

/** The program {@code et-instrument}: where it is, and how it is asked for a report. */
public final class Tool {
    private static final String NAME = "et-instrument";
    /** What is no message, but tells how far the work has come. */
    private static final String PROGRESS = "progress: ";
    private static final String SPEAKER = NAME + ": ";
    /** What wrong usage ends with: there is no command line here to mend. */
    private static final String ADVICE = "For more information, try";
    private static final int WRONG_USAGE = 2;

    private Tool() {
    }

    /** In PATH; null if it is not there. */
    public static File inPath() {
        String path = System.getenv("PATH");
        for (String folder : (path == null ? "" : path).split(File.pathSeparator)) {
            File candidate = new File(folder, NAME);
            if (!folder.isEmpty() && isProgram(candidate)) {
                return candidate.getAbsoluteFile();
            }
        }
        return null;
    }

    /** Where it was installed with a plugin, which lies below the folder that has {@code bin}; null if it was not. */
    public static File installedWith(File plugin) {
        for (File folder = plugin.getAbsoluteFile(); folder != null; folder = folder.getParentFile()) {
            File candidate = new File(folder, "bin/" + NAME);
            if (isProgram(candidate)) {
                return candidate;
            }
        }
        return null;
    }

    private static boolean isProgram(File file) {
        return file.isFile() && file.canExecute();
    }

    /** The JDK of this JVM. */
    public static File ownJdk() {
        File own = new File(System.getProperty("java.home"));
        // A JDK 8 has its JVM in jre.
        return own.getName().equals("jre") && new File(own.getParentFile(), "bin/java").exists() ? own.getParentFile() : own;
    }

    /** What tells one state of a JDK from another: its place, and its version. */
    public static String state(File jdkHome) {
        try {
            return jdkHome + "\n" + new String(Files.readAllBytes(jdkHome.toPath().resolve("release")), StandardCharsets.UTF_8);
        } catch (IOException noRelease) {
            return jdkHome.toString();
        }
    }

    /** What {@code --events} is given: the list, or what the word of {@code et-instrument run --mode} stands for. Either may be null. */
    public static String events(String mode, String events) throws Failure {
        if (mode == null) {
            return events == null ? "all" : events;
        }
        if (events != null) {
            throw new Failure("elephantTracks: mode = " + mode + " and events = " + events + " say the same thing twice: leave out one of them");
        }
        switch (mode) {
            case "counts":
                return "counts";
            case "objects":
                return "alloc,stacks";
            case "references":
                return "alloc,update,stacks";
            case "everything":
                return "all";
            default:
                throw new Failure("elephantTracks: there is no mode '" + mode + "': it is counts, objects, references or everything");
        }
    }

    /**
     * Options that decide what is hooked. The first pattern that matches a class counts.
     *
     * @param witness which uses of objects leave a record
     * @param excludes patterns, as are {@code includes}; not of {@code String}s: they may be Groovy's, whatever their type says
     */
    public static List<String> hooks(String events, String witness, List<?> excludes, List<?> includes) {
        List<String> options = new ArrayList<>();
        options.add("--events");
        options.add(events);
        options.add("--witness");
        options.add(witness);
        for (Object pattern : excludes) {
            options.add("--exclude");
            options.add(String.valueOf(pattern));
        }
        for (Object pattern : includes) {
            options.add("--include");
            options.add(String.valueOf(pattern));
        }
        return options;
    }

    /** The start of a command line: the program, and where it keeps things unless that is null. */
    public static List<String> command(File executable, String subcommand, File cacheDir, List<String> hooks) {
        List<String> command = new ArrayList<>();
        command.add(executable.getPath());
        command.add(subcommand);
        if (cacheDir != null) {
            command.add("--cache-dir");
            command.add(cacheDir.getPath());
        }
        command.addAll(hooks);
        return command;
    }

    /** Runs a command and returns what it prints. Its progress is shown, its error is ours. */
    public static String report(List<String> command, Messages log) throws Failure {
        Process process = Program.start(new ProcessBuilder(command));
        try {
            process.getOutputStream().close();
            List<String> messages = new ArrayList<>();
            Thread reader = new Thread(() -> follow(process.getErrorStream(), messages, log), "messages of " + NAME);
            reader.start();
            ByteArrayOutputStream report = new ByteArrayOutputStream();
            Program.copy(process.getInputStream(), report);
            int code = process.waitFor();
            reader.join();
            if (code != 0) {
                throw new Failure(failure(command.get(0), code, messages));
            }
            messages.forEach(log::warn);
            return new String(report.toByteArray(), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new Failure("cannot read what " + command.get(0) + " says: " + error.getMessage(), error);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new Failure(NAME + " was stopped", stopped);
        } finally {
            process.destroy();
        }
    }

    private static void follow(InputStream stream, List<String> messages, Messages log) {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(PROGRESS)) {
                    log.say(line.substring(PROGRESS.length()));
                } else if (!line.isEmpty() && !line.startsWith(ADVICE)) {
                    messages.add(line.startsWith(SPEAKER) ? line.substring(SPEAKER.length()) : line);
                }
            }
        } catch (IOException closed) {
            // It has ended, and its exit code tells how.
        }
    }

    static String failure(String executable, int code, List<String> messages) {
        String text = String.join("\n", messages).trim();
        if (code == WRONG_USAGE && (text.contains("unexpected argument") || text.contains("unrecognized"))) {
            return executable + " does not match the version of the plugin: " + text;
        }
        return text.isEmpty() ? executable + " failed with exit code " + code : text;
    }
}
