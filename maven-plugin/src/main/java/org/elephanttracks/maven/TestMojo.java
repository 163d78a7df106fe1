package org.elephanttracks.maven;

import java.io.File;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import org.apache.maven.artifact.Artifact;
import org.apache.maven.artifact.ArtifactUtils;
import org.apache.maven.artifact.DependencyResolutionRequiredException;
import org.apache.maven.lifecycle.LifecycleExecutor;
import org.apache.maven.model.Plugin;
import org.apache.maven.plugin.BuildPluginManager;
import org.apache.maven.plugin.MojoExecution;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugin.PluginParameterExpressionEvaluator;
import org.apache.maven.plugins.annotations.Component;
import org.apache.maven.plugins.annotations.Execute;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.plugins.annotations.ResolutionScope;
import org.codehaus.plexus.component.configurator.expression.ExpressionEvaluationException;
import org.codehaus.plexus.util.xml.Xpp3Dom;

import org.elephanttracks.plugin.Archives;
import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Preparation;
import org.elephanttracks.plugin.Prepared;
import org.elephanttracks.plugin.StackSizes;
import org.elephanttracks.plugin.Traces;

/** Runs the tests, traced: Surefire as the project has it, on the copies. */
@Mojo(name = "test", requiresDependencyResolution = ResolutionScope.TEST, threadSafe = true)
@Execute(phase = LifecyclePhase.TEST_COMPILE)
public class TestMojo extends AbstractEtMojo {
    private static final String SUREFIRE = "org.apache.maven.plugins:maven-surefire-plugin";
    /** Surefire's own classes in the JVM of tests. */
    private static final List<String> HARNESS = Arrays.asList("org.apache.maven.surefire.**", "org.apache.maven.plugin.surefire.**");

    /** Leave no traces, and only have tests count allocations with et-test. */
    @Parameter(property = "elephantTracks.counts", defaultValue = "false")
    private boolean counts;

    @Component
    private LifecycleExecutor lifecycle;

    @Component
    private BuildPluginManager plugins;

    @Override
    void work() throws Failure, MojoExecutionException, MojoFailureException {
        Prepared prepared = prepare(classPath(), "test", HARNESS);
        Traces traces = new Traces(at("test-traces"));
        traces.clear();
        MojoExecution surefire = surefire();
        configure(surefire, prepared, traces);
        Set<Artifact> originals = project.getArtifacts();
        project.setArtifacts(copies(originals, prepared));
        try {
            plugins.executeMojo(session, surefire);
        } catch (MojoExecutionException | MojoFailureException failed) {
            throw failed;
        } catch (Exception error) {
            throw new MojoExecutionException("cannot run maven-surefire-plugin: " + error.getMessage(), error);
        } finally {
            project.setArtifacts(originals);
            traces.tell(messages());
        }
    }

    private List<File> classPath() throws MojoExecutionException {
        try {
            return files(project.getTestClasspathElements());
        } catch (DependencyResolutionRequiredException error) {
            throw new MojoExecutionException(error.getMessage(), error);
        }
    }

    /** As it would run in the phase {@code test}. */
    private MojoExecution surefire() throws MojoExecutionException {
        Plugin plugin = project.getPlugin(SUREFIRE);
        if (plugin == null) {
            throw new MojoExecutionException("the project has no maven-surefire-plugin to run tests with");
        }
        // With the version: else Maven would ask the root of the build for it.
        String goal = SUREFIRE + ":" + plugin.getVersion() + ":test@default-test";
        try {
            return lifecycle.calculateExecutionPlan(session, true, goal).getMojoExecutions().get(0);
        } catch (Exception error) {
            throw new MojoExecutionException("cannot set up maven-surefire-plugin: " + error.getMessage(), error);
        }
    }

    private void configure(MojoExecution surefire, Prepared prepared, Traces traces) throws Failure {
        Xpp3Dom configuration = surefire.getConfiguration();
        PluginParameterExpressionEvaluator values = new PluginParameterExpressionEvaluator(session, surefire);
        if ("0".equals(value(configuration, "forkCount", values)) || "never".equals(value(configuration, "forkMode", values))) {
            throw new Failure("Surefire is set to run the tests in the JVM of Maven, which is not traced: pass -DforkCount=1");
        }
        String own = value(configuration, "argLine", values);
        StringBuilder line = new StringBuilder(word("@" + new Preparation(at("test")).arguments()));
        for (String option : counts ? Traces.noneOnlyCounts() : Collections.singletonList(traces.option())) {
            line.append(' ').append(word(option));
        }
        set(configuration, "jvm", new File(prepared.javaHome(), "bin/java").getPath());
        set(configuration, "argLine", own == null ? line.toString() : line + " " + StackSizes.scaled(Archives.without(own, messages())));
        set(configuration, "classesDirectory", copy(project.getBuild().getOutputDirectory(), prepared));
        set(configuration, "testClassesDirectory", copy(project.getBuild().getTestOutputDirectory(), prepared));
        set(configuration, "reportsDirectory", at("surefire-reports").getPath());
    }

    private static String copy(String original, Prepared prepared) {
        return prepared.copyOf(new File(original)).getPath();
    }

    private static Set<Artifact> copies(Set<Artifact> originals, Prepared prepared) {
        Set<Artifact> copies = new LinkedHashSet<>();
        for (Artifact original : originals) {
            Artifact copy = ArtifactUtils.copyArtifact(original);
            copy.setFile(original.getFile() == null ? null : prepared.copyOf(original.getFile()));
            copies.add(copy);
        }
        return copies;
    }

    /** What Surefire would take; null if nothing is said. */
    private static String value(Xpp3Dom configuration, String name, PluginParameterExpressionEvaluator values) throws Failure {
        Xpp3Dom element = configuration.getChild(name);
        if (element == null) {
            return null;
        }
        try {
            String written = element.getValue();
            Object value = written == null || written.isEmpty() ? null : values.evaluate(written);
            return value != null ? value.toString() : element.getAttribute("default-value");
        } catch (ExpressionEvaluationException error) {
            throw new Failure("cannot tell Surefire's " + name + ": " + error.getMessage(), error);
        }
    }

    private static void set(Xpp3Dom configuration, String name, String value) {
        Xpp3Dom element = configuration.getChild(name);
        if (element == null) {
            element = new Xpp3Dom(name);
            configuration.addChild(element);
        }
        element.setValue(value);
    }

    /** A word of a line that Surefire splits at spaces. */
    private static String word(String word) {
        return '"' + word + '"';
    }
}
