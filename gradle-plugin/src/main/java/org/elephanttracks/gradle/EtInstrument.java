package org.elephanttracks.gradle;

import java.io.File;
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

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Preparation;
import org.elephanttracks.plugin.Prepared;
import org.elephanttracks.plugin.Tool;

/**
 * Brings the instrumented copies of a JDK and of a class path up to date. The copies are kept by {@code et-instrument};
 * what is written here tells where they are.
 */
public class EtInstrument extends DefaultTask {
    private Settings settings;
    private FileCollection classpath;
    private Preparation preparation;
    private List<String> harness = new ArrayList<>();

    public EtInstrument() {
        getOutputs().upToDateWhen(new CopiesAreThere());
    }

    void wire(Settings ofBuild, FileCollection ofProgram, File outputFolder) {
        settings = ofBuild;
        classpath = ofProgram;
        preparation = new Preparation(outputFolder);
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
        return Tool.state(settings.jdkHome());
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
        return preparation.report();
    }

    /** Options for the JVM: {@code java @et.args}. */
    @OutputFile
    public File getArguments() {
        return preparation.arguments();
    }

    /** A link to the instrumented JDK. No output: Gradle would read all of it. */
    @Internal
    public File getJdkLink() {
        return preparation.jdkLink();
    }

    @TaskAction
    public void instrument() {
        List<String> command = settings.command("prepare");
        try {
            preparation.run(command, settings.jdkHome(), classpath.getFiles(), harness, new GradleLog(getLogger()));
        } catch (Failure failure) {
            throw new GradleException(failure.getMessage(), failure);
        }
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
