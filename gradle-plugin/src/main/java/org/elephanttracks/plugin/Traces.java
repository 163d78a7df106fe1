package org.elephanttracks.plugin;

import java.io.File;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** A folder of traces: one for each JVM that ran tests. */
public final class Traces {
    private final File folder;

    public Traces(File folder) {
        this.folder = folder;
    }

    /** What a JVM is told; {@code %p} becomes its process id. */
    public String option() {
        return "-Det.traceFile=" + new File(folder, "et-%p.ettrace");
    }

    /** What a JVM is told that only counts allocations for its tests: nothing is written. */
    public static List<String> noneOnlyCounts() {
        return Arrays.asList("-Det.traceFile=/dev/null", "-Det.discard=on");
    }

    /** Removes those of an earlier run. */
    public void clear() {
        folder.mkdirs();
        for (File old : found()) {
            old.delete();
        }
    }

    /** Tells where they are. */
    public void tell(Messages messages) {
        for (File trace : found()) {
            messages.say(String.format(Locale.ROOT, "trace: %s (%s)", trace, size(trace.length())));
            messages.say("next: et-trace summary " + trace);
        }
    }

    /** As the tools write it. */
    static String size(long bytes) {
        String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
        if (bytes < 1024) {
            return bytes + " B";
        }
        double value = bytes;
        int unit = 0;
        while (value >= 1023.95 && unit + 1 < units.length) {
            value /= 1024;
            unit++;
        }
        return String.format(Locale.ROOT, "%.1f %s", value, units[unit]);
    }

    private File[] found() {
        File[] found = folder.listFiles((in, name) -> name.endsWith(".ettrace"));
        return found == null ? new File[0] : found;
    }
}
