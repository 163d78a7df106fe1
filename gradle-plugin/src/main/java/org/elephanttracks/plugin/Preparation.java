package org.elephanttracks.plugin;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;

/** A folder of a build that tells where the copies of a JDK and of a class path are. */
public final class Preparation {
    private final File folder;

    public Preparation(File folder) {
        this.folder = folder;
    }

    /** Where the copies are, as {@code et-instrument prepare} tells it. */
    public File report() {
        return new File(folder, "report.json");
    }

    /** Options for the JVM: {@code java @et.args}. */
    public File arguments() {
        return new File(folder, "et.args");
    }

    /** A link to the instrumented JDK. */
    public File jdkLink() {
        return new File(folder, "jdk");
    }

    /**
     * Has the copies brought up to date.
     *
     * @param prepare the command line without JDK and class path
     * @param harness classes of what runs the program, which are to have no hooks at run time either
     */
    public Prepared run(
        List<String> prepare, File jdkHome, Collection<File> classPath, Collection<String> harness, Messages messages
    ) throws Failure {
        List<String> command = new ArrayList<>(prepare);
        command.addAll(Arrays.asList("--report", "json", "--java-home", jdkHome.getPath()));
        try {
            Files.createDirectories(folder.toPath());
            List<File> entries = Prepared.real(classPath);
            if (!entries.isEmpty()) {
                // In a file: a word of a command line can be too short for a class path.
                File list = new File(folder, "class-path");
                write(list, joined(entries));
                command.add("--class-path");
                command.add("@" + list);
            }
            String report = Tool.report(command, messages);
            Prepared prepared = Prepared.parse(report);
            link(jdkLink().toPath(), prepared.javaHome().toPath());
            write(arguments(), prepared.argumentFile(harness));
            write(report(), report);
            prepared.tell(messages);
            return prepared;
        } catch (IOException error) {
            throw new Failure("cannot write to " + folder + ": " + error.getMessage(), error);
        }
    }

    /** A class path as a file for {@code java @FILE}: a command line can be too short for one. */
    public static void writeClassPath(File file, Collection<File> classPath) throws Failure {
        try {
            Files.createDirectories(file.getParentFile().toPath());
            write(file, "-cp " + argument(joined(Prepared.real(classPath))) + "\n");
        } catch (IOException error) {
            throw new Failure("cannot write " + file + ": " + error.getMessage(), error);
        }
    }

    /** A word as it is written in a file of arguments. */
    static String argument(String word) {
        return '"' + word.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private static String joined(List<File> entries) {
        return entries.stream().map(File::getPath).collect(Collectors.joining(File.pathSeparator));
    }

    private static void link(Path link, Path target) throws IOException {
        if (Files.isSymbolicLink(link) && Files.readSymbolicLink(link).equals(target)) {
            return;
        }
        Files.deleteIfExists(link);
        Files.createSymbolicLink(link, target);
    }

    private static void write(File file, String text) throws IOException {
        Files.write(file.toPath(), text.getBytes(StandardCharsets.UTF_8));
    }
}
