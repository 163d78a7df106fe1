package org.elephanttracks.test;

import java.util.Collections;
import java.util.List;

/** Objects of one class from one site. */
public final class Allocation {
    private final Class<?> type;
    private final long objects;
    private final long bytes;
    private final List<StackTraceElement> stack;

    Allocation(Class<?> type, long objects, long bytes, List<StackTraceElement> stack) {
        this.type = type;
        this.objects = objects;
        this.bytes = bytes;
        this.stack = Collections.unmodifiableList(stack);
    }

    public Class<?> type() {
        return type;
    }

    public long objects() {
        return objects;
    }

    /** Size of the objects together; 0 if the JVM does not say how large objects are. */
    public long bytes() {
        return bytes;
    }

    /** The stack when the first of them was allocated, from the allocating method to the counted code. */
    public List<StackTraceElement> stack() {
        return stack;
    }
}
