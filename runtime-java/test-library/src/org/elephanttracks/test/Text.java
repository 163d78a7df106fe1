package org.elephanttracks.test;

import java.util.List;

/** Counts as text. */
final class Text {
    /** More sites and frames are only counted. */
    private static final int SITES = 20;
    private static final int FRAMES = 8;

    private Text() {
    }

    static String number(long count, String what) {
        return count + " " + what + (count == 1 ? "" : "s");
    }

    static String of(Allocations made, String how) {
        StringBuilder text = new StringBuilder(number(made.objects(), "object"));
        if (made.areSizesKnown()) {
            text.append(" (").append(number(made.bytes(), "byte")).append(')');
        }
        text.append(made.objects() == 1 ? " was allocated " : " were allocated ").append(how);
        List<Allocation> all = made.bySite();
        for (Allocation one : all.subList(0, Math.min(SITES, all.size()))) {
            text.append(String.format("%n%8d  %s", one.objects(), one.type().getTypeName()));
            if (made.areSizesKnown()) {
                text.append(" (").append(number(one.bytes(), "byte")).append(')');
            }
            List<StackTraceElement> stack = one.stack();
            for (StackTraceElement frame : stack.subList(0, Math.min(FRAMES, stack.size()))) {
                text.append(String.format("%n            at %s", frame));
            }
            if (stack.size() > FRAMES) {
                text.append(String.format("%n            and %s", number(stack.size() - FRAMES, "more frame")));
            }
        }
        if (all.size() > SITES) {
            text.append(String.format("%nand %s", number(all.size() - SITES, "more site")));
        }
        return text.toString();
    }
}
