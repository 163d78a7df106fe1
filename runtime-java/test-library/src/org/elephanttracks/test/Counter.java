package org.elephanttracks.test;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Counts with the hooks of an instrumented JDK, where there is one: on others this class cannot be linked. */
final class Counter {
    private static final String HOOKS = "java.lang.HeapProxy";
    private static final String HERE = Counter.class.getPackage().getName() + ".";

    private Counter() {
    }

    static boolean areHooksOn() {
        return HeapProxyCounts.areHooksOn();
    }

    /** Nothing of this library may be allocated between the two calls. */
    static Allocations count(Action action, boolean allThreads, String how) throws Throwable {
        HeapProxyCounts counts = HeapProxyCounts.of(allThreads ? null : Thread.currentThread(), Jvm.alignment());
        if (!counts.begin()) {
            String whose = allThreads ? "of all threads" : "of this thread";
            throw new IllegalStateException("allocations " + whose + " are being counted: count one thing after the other");
        }
        try {
            action.run();
        } finally {
            counts.end();
        }
        if (counts.missed() > 0) {
            throw new IllegalStateException(
                Text.number(counts.missed(), "object") + " could not be counted: there was no room on the stack or in the heap");
        }
        List<Allocation> all = new ArrayList<>();
        for (int pair = 0; pair < counts.length(); pair++) {
            Class<?> type = counts.type(pair);
            List<StackTraceElement> stack = stack(counts.stack(pair), type);
            all.add(new Allocation(type, counts.objects(pair), counts.bytes(pair), stack));
        }
        all.sort(Comparator.comparingLong(Allocation::objects).thenComparingLong(Allocation::bytes).reversed()
            .thenComparing(one -> one.type().getName()).thenComparing(one -> one.stack().toString()));
        return new Allocations(all, counts.areSizesKnown(), how);
    }

    /** Without hooks, without the constructors of the object itself, and no further than the counted code. */
    private static List<StackTraceElement> stack(Throwable taken, Class<?> type) {
        Set<String> itself = new HashSet<>();
        for (Class<?> above = type; above != null; above = above.getSuperclass()) {
            itself.add(above.getName());
        }
        List<StackTraceElement> stack = new ArrayList<>();
        for (StackTraceElement frame : taken.getStackTrace()) {
            String owner = frame.getClassName();
            if (owner.startsWith(HERE) && !stack.isEmpty()) {
                break;
            }
            boolean isConstructor = frame.getMethodName().equals("<init>") && itself.contains(owner);
            if (stack.isEmpty() && (owner.startsWith(HOOKS) || isConstructor)) {
                continue;
            }
            stack.add(frame);
        }
        return stack;
    }
}
