package org.elephanttracks.gradle;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;

import org.gradle.api.Action;
import org.gradle.api.Project;
import org.gradle.api.Task;
import org.gradle.api.logging.Logger;
import org.gradle.api.tasks.SourceSet;
import org.gradle.api.tasks.testing.Test;
import org.gradle.api.tasks.testing.TestDescriptor;
import org.gradle.api.tasks.testing.TestListener;
import org.gradle.api.tasks.testing.TestResult;
import org.gradle.process.JavaForkOptions;

import org.elephanttracks.plugin.Archives;
import org.elephanttracks.plugin.Prepared;
import org.elephanttracks.plugin.StackSizes;
import org.elephanttracks.plugin.Traces;

/** Has one of Gradle's test tasks run on the instrumented copies. */
final class TracedTests {
    private final Project project;
    private final Settings settings;
    private final Test test;
    private final SourceSet tests;
    private final EtInstrument instrument;
    private final File traces;

    TracedTests(Project project, Settings settings, Test test, SourceSet tests, EtInstrument instrument, File traces) {
        this.project = project;
        this.settings = settings;
        this.test = test;
        this.tests = tests;
        this.instrument = instrument;
        this.traces = traces;
    }

    void wire() {
        test.dependsOn(instrument);
        // Gradle looks for tests in the originals, and loads the copies.
        test.setTestClassesDirs(tests.getOutput().getClassesDirs());
        test.setClasspath(project.files(new Copies(instrument.getReport())).builtBy(instrument));
        test.getInputs().file(instrument.getArguments());
        test.getInputs().property("counts", new Counts(settings));
        test.getOutputs().dir(traces);
        // By the interface, whose methods have kept their types.
        JavaForkOptions jvm = test;
        // The paths are known now, what is there only after etInstrumentTest.
        jvm.setExecutable((Object) new File(instrument.getJdkLink(), "bin/java").getPath());
        jvm.jvmArgs("@" + instrument.getArguments(), new Traces(traces).option());
        test.doFirst(new RemoveOldTraces(traces));
        test.doFirst(new FitStacks("@" + instrument.getArguments()));
        test.doFirst(new LeaveOutArchives());
        test.doFirst(new OnlyCount(settings));
        test.addTestListener(new Announcement(traces, test.getLogger()));
    }

    /** The class path, once it is known. */
    private static final class Copies implements Callable<List<File>> {
        private final File report;

        Copies(File report) {
            this.report = report;
        }

        @Override
        public List<File> call() {
            Prepared prepared = Prepared.read(report);
            return prepared == null ? Collections.<File>emptyList() : prepared.copies();
        }
    }

    /** Sizes of stacks that the build gives, wherever it does. The arguments come first: what the build says counts more. */
    private static final class FitStacks implements Action<Task> {
        private final String arguments;

        FitStacks(String arguments) {
            this.arguments = arguments;
        }

        @Override
        public void execute(Task task) {
            JavaForkOptions jvm = (JavaForkOptions) task;
            List<String> options = new ArrayList<>();
            options.add(arguments);
            List<?> given = jvm.getJvmArgs();
            for (Object option : given) {
                // Elements may be Groovy's GStrings, whatever the list's type says.
                String word = String.valueOf(option);
                if (!word.equals(arguments)) {
                    options.add(StackSizes.scaled(word));
                }
            }
            jvm.setJvmArgs((Iterable<?>) options);
        }
    }

    /** A class of its own, and no lambda: else Gradle could not tell whether the task is up to date. */
    private static final class RemoveOldTraces implements Action<Task> {
        private final File traces;

        RemoveOldTraces(File traces) {
            this.traces = traces;
        }

        @Override
        public void execute(Task task) {
            new Traces(traces).clear();
        }
    }

    /** What the build says of the JVM is known when the task runs. */
    private static final class LeaveOutArchives implements Action<Task> {
        @Override
        public void execute(Task task) {
            JavaForkOptions jvm = (JavaForkOptions) task;
            List<String> given = jvm.getJvmArgs();
            List<String> kept = Archives.without(given, new GradleLog(task.getLogger()));
            if (kept.size() < given.size()) {
                jvm.setJvmArgs(kept);
            }
        }
    }

    /** Whether the tests count, once the build script has been read. */
    private static final class Counts implements Callable<Boolean> {
        private final Settings settings;

        Counts(Settings settings) {
            this.settings = settings;
        }

        @Override
        public Boolean call() {
            return settings.counts();
        }
    }

    /** No trace if the build wants counts only, which is known when the task runs. */
    private static final class OnlyCount implements Action<Task> {
        private final Settings settings;

        OnlyCount(Settings settings) {
            this.settings = settings;
        }

        @Override
        public void execute(Task task) {
            if (settings.counts()) {
                // Gradle keeps them as system properties: they replace the one that names a trace.
                ((JavaForkOptions) task).jvmArgs(Traces.noneOnlyCounts());
            }
        }
    }

    /** Tells where the traces are when all JVMs have ended, also if tests failed. */
    private static final class Announcement implements TestListener {
        private final File traces;
        private final Logger log;

        Announcement(File traces, Logger log) {
            this.traces = traces;
            this.log = log;
        }

        @Override
        public void afterSuite(TestDescriptor suite, TestResult result) {
            if (suite.getParent() == null) {
                new Traces(traces).tell(new GradleLog(log));
            }
        }

        @Override
        public void beforeSuite(TestDescriptor suite) {
        }

        @Override
        public void beforeTest(TestDescriptor descriptor) {
        }

        @Override
        public void afterTest(TestDescriptor descriptor, TestResult result) {
        }
    }
}
