package org.elephanttracks.plugin;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Sizes of stacks that a build gives to the JVM of its tests. With hooks a stack holds fewer frames, so that they are scaled, as
 * {@code et-instrument run} does it and {@code et.args} for those that are not given ({@code instrument/src/jdk/stack_size.rs}).
 */
public final class StackSizes {
    private static final long FACTOR = 5;
    /** HotSpot takes no more. */
    private static final long MOST = 1L << 30;
    private static final String UNITS = "kmgt";
    /** The option as a word, or between others on a line. */
    private static final Pattern OPTION =
        Pattern.compile("(?<![^\\s\"'])(-Xss|-XX:ThreadStackSize=)(\\d{1,10})([kKmMgGtT]?)(?![^\\s\"'])");

    private StackSizes() {
    }

    /** Options of the JVM, one or a line of them, with sizes that hold as many frames as those given. */
    public static String scaled(String options) {
        StringBuffer scaled = new StringBuffer();
        Matcher option = OPTION.matcher(options);
        while (option.find()) {
            boolean isFlag = option.group(1).startsWith("-XX");
            int unit = option.group(3).isEmpty() ? 0 : UNITS.indexOf(Character.toLowerCase(option.group(3).charAt(0))) + 1;
            long bytes = Long.parseLong(option.group(2)) << 10 * (isFlag ? unit + 1 : unit);
            option.appendReplacement(scaled, bytes <= 0 || bytes >= MOST ? "$0" : "$1" + kilobytes(bytes) + (isFlag ? "" : "k"));
        }
        return option.appendTail(scaled).toString();
    }

    private static long kilobytes(long bytes) {
        return (Math.min(bytes * FACTOR, MOST) + 1023) / 1024;
    }
}
