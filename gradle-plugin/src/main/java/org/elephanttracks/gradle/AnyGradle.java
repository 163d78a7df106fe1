package org.elephanttracks.gradle;

import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;

import org.gradle.api.GradleException;
import org.gradle.api.Project;
import org.gradle.api.Task;
import org.gradle.api.file.Directory;
import org.gradle.api.provider.Provider;
import org.gradle.api.tasks.JavaExec;
import org.gradle.api.tasks.SourceSetContainer;
import org.gradle.api.tasks.testing.Test;
import org.gradle.process.JavaForkOptions;

/** What has other names or types in other versions of Gradle, and so is looked for at run time. */
final class AnyGradle {
    private AnyGradle() {
    }

    /** Since Gradle 5 an extension, before a property of the Java plugin's convention. */
    static SourceSetContainer sourceSets(Project project) {
        return (SourceSetContainer) project.property("sourceSets");
    }

    /** {@code ProjectLayout.getBuildDirectory} has another type since Gradle 5, {@code Project.getBuildDir} goes. */
    static File buildDir(Project project) {
        return ((Directory) ((Provider<?>) call(project.getLayout(), "getBuildDirectory")).get()).getAsFile();
    }

    /** Null if there is none. Since Gradle 6.4 a property, until Gradle 7 a string. */
    static String mainClass(JavaExec task) {
        Object name = has(task, "getMainClass") ? call(task, "getMainClass") : call(task, "getMain");
        name = name instanceof Provider ? ((Provider<?>) name).getOrNull() : name;
        return name == null ? null : name.toString();
    }

    /** Has tests run as another task runs them: its framework, and what its JVM is told. */
    static void testAs(Test traced, Object plain) {
        if (!(plain instanceof Test)) {
            return;
        }
        String framework = call(plain, "getTestFramework").getClass().getSimpleName();
        if (framework.startsWith("JUnitPlatform")) {
            call(traced, "useJUnitPlatform"); // since Gradle 4.6
        } else if (framework.startsWith("TestNG")) {
            call(traced, "useTestNG");
        }
        JavaForkOptions from = (Test) plain;
        JavaForkOptions to = traced;
        Map<String, Object> properties = new LinkedHashMap<>(from.getSystemProperties());
        properties.putAll(to.getSystemProperties());
        to.setSystemProperties(properties);
        to.jvmArgs(from.getJvmArgs());
        if (to.getMaxHeapSize() == null) {
            to.setMaxHeapSize(from.getMaxHeapSize());
        }
    }

    /** Settings are read when tasks run; since Gradle 7.4 a task can say that this is so. */
    static void readsTheProject(Task task) {
        try {
            Method say = task.getClass().getMethod("notCompatibleWithConfigurationCache", String.class);
            say.invoke(task, "it reads elephantTracks { … } when it runs");
        } catch (ReflectiveOperationException older) {
            // Nothing asks for it.
        }
    }

    private static boolean has(Object object, String method) {
        try {
            object.getClass().getMethod(method);
            return true;
        } catch (NoSuchMethodException missing) {
            return false;
        }
    }

    private static Object call(Object object, String method) {
        try {
            return object.getClass().getMethod(method).invoke(object);
        } catch (InvocationTargetException error) {
            throw new GradleException(method + " failed: " + error.getCause().getMessage(), error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new GradleException("unsupported version of Gradle: " + object.getClass() + " has no " + method, error);
        }
    }
}
