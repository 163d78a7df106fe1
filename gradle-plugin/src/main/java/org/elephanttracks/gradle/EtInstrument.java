package org.elephanttracks.gradle;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import org.gradle.api.DefaultTask;
import org.gradle.api.GradleException;
import org.gradle.api.Task;
import org.gradle.api.file.FileCollection;
import org.gradle.api.specs.Spec;
import org.gradle.api.tasks.Classpath;
import org.gradle.api.tasks.Input;
import org.gradle.api.tasks.InputFile;
import org.gradle.api.tasks.Internal;
import org.gradle.api.tasks.Optional;
import org.gradle.api.tasks.OutputFile;
import org.gradle.api.tasks.PathSensitive;
import org.gradle.api.tasks.PathSensitivity;
import org.gradle.api.tasks.TaskAction;

/**
 * Brings the instrumented copies of a JDK and of a class path up to date. The copies are kept by {@code et-instrument};
 * what is written here tells where they are.
 */
public class EtInstrument extends DefaultTask {
    private Settings settings;
    private FileCollection classpath;
    private File folder;
    private List<String> harness = new ArrayList<>();

    public EtInstrument() {
        getOutputs().upToDateWhen(new CopiesAreThere());
    }

    void wire(Settings ofBuild, FileCollection ofProgram, File outputFolder) {
        settings = ofBuild;
        classpath = ofProgram;
        folder = outputFolder;
    }

    /** Jars and folders of classes. */
    @Classpath
    public FileCollection getClasspath() {
        return classpath;
    }

    public void setClasspath(FileCollection entries) {
        classpath = entries;
    }

    /** Classes of what runs the program, which are to have no hooks at run time either. */
    @Input
    public List<String> getHarness() {
        return harness;
    }

    public void setHarness(List<String> patterns) {
        harness = new ArrayList<>(patterns);
    }

    /** What is hooked. */
    @Input
    public List<String> getHooks() {
        return settings.hooks();
    }

    /** The JDK, and its version. */
    @Input
    public String getJdk() {
        return settings.jdk();
    }

    @Optional
    @Input
    public String getCachePath() {
        File cacheDir = settings.cacheDir();
        return cacheDir == null ? null : cacheDir.getPath();
    }

    /** The rewriter: another one writes other hooks. If there is none, the task says so when it runs. */
    @Optional
    @InputFile
    @PathSensitive(PathSensitivity.NONE)
    public File getExecutable() {
        return settings.executable();
    }

    /** Where the copies are, as {@code et-instrument prepare} tells it. */
    @OutputFile
    public File getReport() {
        return new File(folder, "report.json");
    }

    /** Options for the JVM: {@code java @et.args}. */
    @OutputFile
    public File getArguments() {
        return new File(folder, "et.args");
    }

    /** A link to the instrumented JDK. No output: Gradle would read all of it. */
    @Internal
    public File getJdkLink() {
        return new File(folder, "jdk");
    }

    @TaskAction
    public void instrument() {
        Prepared prepared;
        List<String> command = settings.command("prepare");
        command.add("--report");
        command.add("json");
        command.add("--java-home");
        command.add(settings.jdkHome().getPath());
        List<String> entries = new ArrayList<>();
        Prepared.real(classpath.getFiles()).forEach(entry -> entries.add(entry.getPath()));
        try {
            Files.createDirectories(folder.toPath());
            if (!entries.isEmpty()) {
                // In a file: a word of a command line can be too short for a class path.
                File list = new File(getTemporaryDir(), "class-path");
                write(list, String.join(File.pathSeparator, entries));
                command.add("--class-path");
                command.add("@" + list);
            }
            String report = Tool.report(command, getLogger());
            prepared = Prepared.parse(report);
            link(getJdkLink().toPath(), prepared.javaHome().toPath());
            write(getArguments(), prepared.argumentFile(harness));
            write(getReport(), report);
        } catch (IOException error) {
            throw new GradleException("cannot write to " + folder + ": " + error.getMessage(), error);
        }
        prepared.notes().forEach(note -> getLogger().lifecycle(note));
        String rewrote = prepared.rewrote();
        if (rewrote != null) {
            getLogger().lifecycle("rewrote " + rewrote);
        }
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

    /** A class of its own: Gradle does not know one lambda from another. */
    private static final class CopiesAreThere implements Spec<Task> {
        @Override
        public boolean isSatisfiedBy(Task task) {
            EtInstrument own = (EtInstrument) task;
            Prepared prepared = Prepared.read(own.getReport());
            return prepared != null && prepared.isThere(own.classpath.getFiles()) && own.getJdkLink().exists();
        }
    }
}
