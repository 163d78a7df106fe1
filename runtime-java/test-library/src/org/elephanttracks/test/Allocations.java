package org.elephanttracks.test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The objects that some code has allocated: all of them, not a sample, so that the counts are the same each time and on each machine.
 *
 * <pre>{@code
 * Allocations made = Allocations.of(() -> parser.parse(line));
 * assertEquals(12, made.objects(), made::toString);
 * }</pre>
 *
 * <p>This takes a JVM with an instrumented JDK. On any other {@link #of} aborts the test, which JUnit reports as skipped.
 */
public final class Allocations {
    private final List<Allocation> all;
    private final boolean areSizesKnown;
    private final String how;

    Allocations(List<Allocation> all, boolean areSizesKnown, String how) {
        this.all = Collections.unmodifiableList(all);
        this.areSizesKnown = areSizesKnown;
        this.how = how;
    }

    /** Counts what the code allocates in this thread, after it has run once to load its classes: it runs twice. */
    public static Allocations of(Action action) {
        return counting().of(action);
    }

    /** How to count, to be changed: in this thread, after one run to warm up. */
    public static Counting counting() {
        return new Counting();
    }

    /** Whether this JVM counts allocations. */
    public static boolean areCounted() {
        return Jvm.whyNot() == null;
    }

    /** Number of objects, arrays included. */
    public long objects() {
        return all.stream().mapToLong(Allocation::objects).sum();
    }

    /** Number of objects of exactly this class. */
    public long objects(Class<?> type) {
        return all.stream().filter(one -> one.type() == type).mapToLong(Allocation::objects).sum();
    }

    /** Size of the objects in bytes, headers and padding included. It depends on the JVM and its options; {@link #objects} does not. */
    public long bytes() {
        if (!areSizesKnown) {
            throw new IllegalStateException("this JVM does not say how large its objects are: limit their number instead");
        }
        return all.stream().mapToLong(Allocation::bytes).sum();
    }

    /** The objects by class and site, most first. */
    public List<Allocation> bySite() {
        return all;
    }

    /** Number of objects by the name of their class. */
    public Map<String, Long> byClass() {
        Map<String, Long> counts = new TreeMap<>();
        for (Allocation one : all) {
            counts.merge(one.type().getTypeName(), one.objects(), Long::sum);
        }
        return counts;
    }

    /** Fails with the list of sites if there were more objects. */
    public Allocations atMost(long objects) {
        return check(objects, -1);
    }

    /** Fails with the list of sites if there were more objects or more bytes. */
    public Allocations atMost(long objects, long bytes) {
        return check(objects, bytes);
    }

    /** Fails with the list of sites if there were any. */
    public Allocations none() {
        return check(0, -1);
    }

    /** A negative limit is none. */
    Allocations check(long mostObjects, long mostBytes) {
        boolean tooMany = mostObjects >= 0 && objects() > mostObjects;
        boolean tooLarge = mostBytes >= 0 && bytes() > mostBytes;
        if (tooMany || tooLarge) {
            List<String> limits = new ArrayList<>();
            if (mostObjects >= 0) {
                limits.add(Text.number(mostObjects, "object"));
            }
            if (mostBytes >= 0) {
                limits.add(Text.number(mostBytes, "byte"));
            }
            throw new AssertionError("at most " + String.join(" and ", limits) + " allowed, but " + this);
        }
        return this;
    }

    /** The counts, with a line for each site and its stack. */
    @Override
    public String toString() {
        return Text.of(this, how);
    }

    boolean areSizesKnown() {
        return areSizesKnown;
    }
}
