package org.elephanttracks.gradle;

import java.io.File;
import java.util.Arrays;

import org.gradle.api.Action;
import org.gradle.api.Plugin;
import org.gradle.api.Project;
import org.gradle.api.Task;
import org.gradle.api.file.FileCollection;
import org.gradle.api.plugins.AppliedPlugin;
import org.gradle.api.tasks.JavaExec;
import org.gradle.api.tasks.SourceSet;
import org.gradle.api.tasks.SourceSetContainer;
import org.gradle.api.tasks.testing.Test;

/**
 * {@code org.elephanttracks.instrument}: the tasks {@code etInstrument}, {@code etRun} and {@code etTest} for a Java project.
 *
 * <p>Only what Gradle 4.4 and 9 both have is used; where they differ, {@link AnyGradle} knows.
 */
public class ElephantTracksPlugin implements Plugin<Project> {
    private static final String GROUP = "Elephant Tracks";
    /** Gradle's own classes in the JVM of tests. */
    private static final String[] HARNESS = {"org.gradle.**", "worker.org.gradle.**"};

    @Override
    public void apply(Project project) {
        ElephantTracksExtension extension =
            project.getExtensions().create("elephantTracks", ElephantTracksExtension.class);
        Settings settings = new Settings(project, extension);
        project.getPluginManager().withPlugin("java", new Action<AppliedPlugin>() {
            @Override
            public void execute(AppliedPlugin java) {
                addTasks(project, settings);
            }
        });
    }

    private static void addTasks(Project project, Settings settings) {
        SourceSetContainer sets = AnyGradle.sourceSets(project);
        File folder = new File(AnyGradle.buildDir(project), "elephant-tracks");

        FileCollection program = sets.getByName(SourceSet.MAIN_SOURCE_SET_NAME).getRuntimeClasspath();
        EtInstrument instrument = project.getTasks().create("etInstrument", EtInstrument.class);
        instrument.wire(settings, program, new File(folder, "main"));
        describe(instrument, "Instruments the classes, the runtime class path and the JDK.");

        EtRun run = project.getTasks().create("etRun", EtRun.class);
        run.wire(settings, program, folder);
        run.dependsOn(instrument);
        describe(run, "Runs the program, traced.");

        SourceSet tests = sets.getByName(SourceSet.TEST_SOURCE_SET_NAME);
        EtInstrument instrumentTests = project.getTasks().create("etInstrumentTest", EtInstrument.class);
        instrumentTests.wire(settings, tests.getRuntimeClasspath(), new File(folder, "test"));
        instrumentTests.setHarness(Arrays.asList(HARNESS));
        describe(instrumentTests, "Instruments the tests, what they run and the JDK.");

        Test test = project.getTasks().create("etTest", Test.class);
        describe(test, "Runs the tests, traced.");
        new TracedTests(project, settings, test, tests, instrumentTests, new File(folder, "test-traces")).wire();

        project.afterEvaluate(new Action<Project>() {
            @Override
            public void execute(Project evaluated) {
                runAs(run, evaluated.getTasks().findByName("run"));
                AnyGradle.testAs(test, evaluated.getTasks().findByName("test"));
            }
        });
    }

    private static void describe(Task task, String text) {
        AnyGradle.readsTheProject(task);
        task.setGroup(GROUP);
        task.setDescription(text);
    }

    /** What the build script leaves open is as in the application plugin's task. */
    private static void runAs(EtRun run, Object application) {
        if (!(application instanceof JavaExec)) {
            return;
        }
        JavaExec plain = (JavaExec) application;
        if (run.getMainClass() == null) {
            run.setMainClass(AnyGradle.mainClass(plain));
        }
        if (run.getArgs().isEmpty() && plain.getArgs() != null) {
            run.args(plain.getArgs().toArray());
        }
        if (run.getJvmArgs().isEmpty() && plain.getJvmArgs() != null) {
            run.jvmArgs(plain.getJvmArgs().toArray());
        }
        plain.getSystemProperties().forEach((name, value) -> run.getSystemProperties().putIfAbsent(name, value));
        if (run.getStandardInput() == null && plain.getStandardInput() == System.in) {
            run.setStandardInput(System.in);
        }
    }
}
