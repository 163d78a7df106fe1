package org.elephanttracks.gradle;

import java.io.File;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.gradle.api.DefaultTask;
import org.gradle.api.GradleException;
import org.gradle.api.file.FileCollection;
import org.gradle.api.tasks.Internal;
import org.gradle.api.tasks.TaskAction;

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Preparation;
import org.elephanttracks.plugin.Program;

/** Runs the program, traced, by {@code et-instrument run}. Never up to date: a program may do something else each time. */
public class EtRun extends DefaultTask {
    private Settings settings;
    private FileCollection classpath;
    private File folder;
    private String mainClass;
    private Object trace;
    private List<String> args = new ArrayList<>();
    private List<String> jvmArgs = new ArrayList<>();
    private Map<String, Object> systemProperties = new LinkedHashMap<>();
    private Map<String, Object> environment = new LinkedHashMap<>();
    private File workingDir;
    private InputStream standardInput;
    private boolean ignoreExitValue;

    void wire(Settings ofBuild, FileCollection ofProgram, File outputFolder) {
        settings = ofBuild;
        classpath = ofProgram;
        folder = outputFolder;
        trace = new File(outputFolder, "run.ettrace");
        workingDir = getProject().getProjectDir();
    }

    /** The class path; the runtime class path of {@code main} by default. */
    @Internal
    public FileCollection getClasspath() {
        return classpath;
    }

    public void setClasspath(FileCollection entries) {
        classpath = entries;
    }

    /** The main class; that of the application plugin by default. */
    @Internal
    public String getMainClass() {
        return mainClass;
    }

    public void setMainClass(String name) {
        mainClass = name;
    }

    /** Where the trace goes, a file or its path; {@code %p} is replaced by the process id. */
    @Internal
    public Object getTrace() {
        return trace;
    }

    public void setTrace(Object file) {
        trace = file;
    }

    /** The program's arguments. */
    @Internal
    public List<String> getArgs() {
        return args;
    }

    public void setArgs(List<String> words) {
        args = new ArrayList<>(words);
    }

    public void args(Object... words) {
        Arrays.asList(words).forEach(word -> args.add(String.valueOf(word)));
    }

    /** Options of the JVM, including those of the runtime: {@code -Det.bufferSize=64m}. */
    @Internal
    public List<String> getJvmArgs() {
        return jvmArgs;
    }

    public void setJvmArgs(List<String> words) {
        jvmArgs = new ArrayList<>(words);
    }

    public void jvmArgs(Object... words) {
        Arrays.asList(words).forEach(word -> jvmArgs.add(String.valueOf(word)));
    }

    /** System properties of the program. They override those of the application plugin. */
    @Internal
    public Map<String, Object> getSystemProperties() {
        return systemProperties;
    }

    public void setSystemProperties(Map<String, Object> properties) {
        systemProperties = new LinkedHashMap<>(properties);
    }

    public void systemProperty(String name, Object value) {
        systemProperties.put(name, value);
    }

    /** Environment variables of the program, in addition to Gradle's own. */
    @Internal
    public Map<String, Object> getEnvironment() {
        return environment;
    }

    public void setEnvironment(Map<String, Object> variables) {
        environment = new LinkedHashMap<>(variables);
    }

    public void environment(String name, Object value) {
        environment.put(name, value);
    }

    /** The working directory; the project's folder by default. */
    @Internal
    public File getWorkingDir() {
        return workingDir;
    }

    public void setWorkingDir(Object folderOrPath) {
        workingDir = getProject().file(folderOrPath);
    }

    /** Standard input of the program; none by default, {@code System.in} for the terminal. */
    @Internal
    public InputStream getStandardInput() {
        return standardInput;
    }

    public void setStandardInput(InputStream stream) {
        standardInput = stream;
    }

    /** Whether the build continues if the program fails. */
    @Internal
    public boolean isIgnoreExitValue() {
        return ignoreExitValue;
    }

    public void setIgnoreExitValue(boolean ignore) {
        ignoreExitValue = ignore;
    }

    @TaskAction
    public void run() {
        if (mainClass == null || mainClass.isEmpty()) {
            throw new GradleException("no main class: set etRun { mainClass = '…' }, or use the application plugin");
        }
        List<String> command = settings.command("run");
        command.add("--trace");
        command.add(getProject().file(trace).getPath());
        command.add("--");
        command.add(new File(settings.jdkHome(), "bin/java").getPath());
        command.addAll(strings(jvmArgs));
        systemProperties.forEach((name, value) -> command.add(value == null ? "-D" + name : "-D" + name + "=" + value));
        File words = new File(folder, "class-path.args");
        command.add("@" + words);
        command.add(mainClass);
        command.addAll(strings(args));
        ProcessBuilder builder = new ProcessBuilder(command).directory(workingDir);
        environment.forEach((name, value) -> builder.environment().put(name, String.valueOf(value)));
        try {
            Preparation.writeClassPath(words, classpath.getFiles());
            Program.run(builder, mainClass, standardInput, ignoreExitValue);
        } catch (Failure failure) {
            throw new GradleException(failure.getMessage(), failure);
        }
    }

    /** Elements may be Groovy's GStrings, whatever the list's type says. */
    private static List<String> strings(List<?> words) {
        List<String> strings = new ArrayList<>();
        words.forEach(word -> strings.add(String.valueOf(word)));
        return strings;
    }
}
