package org.elephanttracks.test;

import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;

import com.sun.management.HotSpotDiagnosticMXBean;

/** Whether this JVM counts allocations. */
final class Jvm {
    /** Null if it does. */
    private static final String WHY_NOT = look();
    /** What says that a test is to be skipped: of JUnit 5, JUnit 4, TestNG. */
    private static final String[] SKIPPED = {
        "org.opentest4j.TestAbortedException", "org.junit.AssumptionViolatedException", "org.testng.SkipException",
    };

    private Jvm() {
    }

    static String whyNot() {
        return WHY_NOT;
    }

    /** Has the test skipped if nothing can be counted. */
    static void require() {
        if (WHY_NOT == null) {
            return;
        }
        String message = "allocations are not counted: " + WHY_NOT;
        for (String name : SKIPPED) {
            try {
                Object skipped = Class.forName(name).getConstructor(String.class).newInstance(message);
                throw (RuntimeException) skipped;
            } catch (ClassNotFoundException otherFramework) {
                continue;
            } catch (NoSuchMethodException | InstantiationException | IllegalAccessException | InvocationTargetException e) {
                throw new IllegalStateException(message, e);
            }
        }
        throw new IllegalStateException(message);
    }

    private static String look() {
        try {
            Class.forName("java.lang.HeapProxyCounts", false, null);
        } catch (ClassNotFoundException plain) {
            return "this JDK is not instrumented (run the tests with gradle etTest or mvn et:test, or on a copy that et-instrument jdk makes)";
        }
        if (!Counter.areHooksOn()) {
            return "the JVM was started without the options in et.args of its JDK";
        }
        try {
            Allocations one = Counter.count(() -> new Object().hashCode(), false, "");
            return one.objects(Object.class) == 1 ? null : "the JDK was instrumented without hooks for allocations (--events alloc)";
        } catch (Throwable e) {
            return e.toString();
        }
    }

    /** In bytes; 8 unless the JVM was started with another one. */
    static int alignment() {
        return Alignment.BYTES;
    }

    private static final class Alignment {
        static final int BYTES = find();

        private static int find() {
            final int usual = 8;
            try {
                HotSpotDiagnosticMXBean vm = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
                return Integer.parseInt(vm.getVMOption("ObjectAlignmentInBytes").getValue());
            } catch (RuntimeException | LinkageError unknown) {
                // Images made by jlink may lack the module.
                return usual;
            }
        }
    }
}
