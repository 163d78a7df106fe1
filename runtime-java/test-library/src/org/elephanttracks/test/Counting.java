package org.elephanttracks.test;

/** How allocations are counted. */
public final class Counting {
    private int warmUp = 1;
    private boolean allThreads;

    Counting() {
    }

    /**
     * How often the code runs before the run that counts. The first run of any code loads classes and links lambdas, which allocates; with 0
     * that counts as well.
     */
    public Counting warmUp(int runs) {
        if (runs < 0) {
            throw new IllegalArgumentException("warmUp: " + runs + " runs");
        }
        warmUp = runs;
        return this;
    }

    /** Counts what any thread allocates while the code runs, threads of the JVM and of the test framework included. */
    public Counting allThreads() {
        allThreads = true;
        return this;
    }

    /** Counts. What the code throws is thrown on. */
    public Allocations of(Action action) {
        Jvm.require();
        try {
            for (int run = 0; run < warmUp; run++) {
                action.run();
            }
            return Counter.count(action, allThreads, how());
        } catch (Throwable thrown) {
            throw Counting.<RuntimeException>same(thrown);
        }
    }

    private String how() {
        String runs = warmUp == 0 ? "in the first run" : "in one run after " + Text.number(warmUp, "run") + " to warm up";
        return runs + (allThreads ? ", in all threads" : "");
    }

    /** Throws checked exceptions as well, as the code may. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> RuntimeException same(Throwable thrown) throws T {
        throw (T) thrown;
    }
}
