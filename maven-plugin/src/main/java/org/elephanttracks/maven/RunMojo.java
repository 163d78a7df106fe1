package org.elephanttracks.maven;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

import org.apache.maven.artifact.DependencyResolutionRequiredException;
import org.apache.maven.model.Plugin;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugins.annotations.Execute;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.plugins.annotations.ResolutionScope;
import org.codehaus.plexus.util.cli.CommandLineUtils;
import org.codehaus.plexus.util.xml.Xpp3Dom;

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Preparation;
import org.elephanttracks.plugin.Program;

/** Runs the program, traced. */
@Mojo(name = "run", requiresDependencyResolution = ResolutionScope.RUNTIME, threadSafe = true)
@Execute(phase = LifecyclePhase.PROCESS_CLASSES)
public class RunMojo extends AbstractEtMojo {
    /** The main class; by default the one that maven-jar-plugin is configured to write into the manifest. */
    @Parameter(property = "elephantTracks.mainClass")
    private String mainClass;

    /** The program's arguments. */
    @Parameter
    private List<String> args;

    /** Arguments of the program, as one string quoted as in a shell; overrides args. */
    @Parameter(property = "elephantTracks.args")
    private String commandLineArgs;

    /** Options of the JVM, including those of the runtime: -Det.bufferSize=64m. */
    @Parameter
    private List<String> jvmArgs;

    /** Options of the JVM, as one string quoted as in a shell; overrides jvmArgs. */
    @Parameter(property = "elephantTracks.jvmArgs")
    private String commandLineJvmArgs;

    /** System properties of the program. */
    @Parameter
    private Map<String, String> systemProperties;

    /** Environment variables of the program, in addition to Maven's own. */
    @Parameter
    private Map<String, String> environment;

    /** The working directory. */
    @Parameter(property = "elephantTracks.workingDir", defaultValue = "${project.basedir}")
    private File workingDir;

    /** Where the trace goes; %p is replaced by the process id. */
    @Parameter(property = "elephantTracks.trace", defaultValue = "${project.build.directory}/elephant-tracks/run.ettrace")
    private File trace;

    /** Whether the build continues if the program fails. */
    @Parameter(property = "elephantTracks.ignoreExitValue", defaultValue = "false")
    private boolean ignoreExitValue;

    @Override
    void work() throws Failure, MojoExecutionException, MojoFailureException {
        String name = mainClass != null ? mainClass : mainClassOfJar();
        if (name == null && session.getProjects().size() > 1) {
            getLog().info("nothing to run: the project has no main class");
            return;
        }
        if (name == null) {
            throw new Failure("no main class: pass -DelephantTracks.mainClass=…, or set <mainClass> in the configuration");
        }
        List<File> classPath = classPath();
        // By itself, so that what is rewritten is shown as Maven's own messages are.
        prepare(classPath, "main", Collections.<String>emptyList());
        List<String> command = command("run");
        command.add("--trace");
        command.add(trace.getPath());
        command.add("--");
        command.add(new File(jdkHome(), "bin/java").getPath());
        command.addAll(words(commandLineJvmArgs, jvmArgs));
        if (systemProperties != null) {
            systemProperties.forEach((key, value) -> command.add("-D" + key + (value == null ? "" : "=" + value)));
        }
        File words = at("class-path.args");
        Preparation.writeClassPath(words, classPath);
        command.add("@" + words);
        command.add(name);
        command.addAll(words(commandLineArgs, args));
        ProcessBuilder builder = new ProcessBuilder(command).directory(workingDir);
        if (environment != null) {
            environment.forEach((key, value) -> builder.environment().put(key, value == null ? "" : value));
        }
        // The terminal, if Maven has one.
        builder.redirectInput(ProcessBuilder.Redirect.INHERIT);
        try {
            Program.run(builder, name, null, ignoreExitValue);
        } catch (Failure failure) {
            throw new MojoFailureException(failure.getMessage(), failure);
        }
    }

    private List<File> classPath() throws MojoExecutionException {
        try {
            return files(project.getRuntimeClasspathElements());
        } catch (DependencyResolutionRequiredException error) {
            throw new MojoExecutionException(error.getMessage(), error);
        }
    }

    private String mainClassOfJar() {
        Plugin jar = project.getPlugin("org.apache.maven.plugins:maven-jar-plugin");
        Object configuration = jar == null ? null : jar.getConfiguration();
        Xpp3Dom element = configuration instanceof Xpp3Dom ? (Xpp3Dom) configuration : null;
        for (String name : new String[] {"archive", "manifest", "mainClass"}) {
            element = element == null ? null : element.getChild(name);
        }
        return element == null ? null : element.getValue();
    }

    private static List<String> words(String line, List<String> words) throws Failure {
        List<String> all = new ArrayList<>();
        if (line == null) {
            // An empty element is null.
            nonNull(words).forEach(word -> all.add(word == null ? "" : word));
            return all;
        }
        try {
            Collections.addAll(all, CommandLineUtils.translateCommandline(line));
            return all;
        } catch (Exception unbalanced) {
            throw new Failure("cannot tell the words of " + line + ": " + unbalanced.getMessage(), unbalanced);
        }
    }
}
