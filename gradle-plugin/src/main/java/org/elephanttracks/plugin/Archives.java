package org.elephanttracks.plugin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Options about archives of class data and AOT caches. They hold classes without hooks, and one that a traced run made would be of
 * no use to a plain one: such options are left out, as {@code et-instrument run} does it.
 */
public final class Archives {
    private static final List<String> FILES = Arrays.asList("SharedArchiveFile", "ArchiveClassesAtExit", "DumpLoadedClassList",
        "AOTCache", "AOTCacheOutput", "AOTConfiguration", "AOTMode");
    private static final List<String> SWITCHES = Arrays.asList("-Xshare:on", "-Xshare:dump", "-XX:+AutoCreateSharedArchive",
        "-XX:+RecordDynamicDumpInfo", "-XX:+DynamicDumpSharedSpaces", "-XX:+RequireSharedSpaces", "-XX:+DumpSharedSpaces");
    /** A word of a line of options: quotes of either kind hold it together. */
    private static final Pattern WORD = Pattern.compile("(?:[^\\s\"']|\"[^\"]*\"|'[^']*')+");

    private Archives() {
    }

    static boolean isAbout(String option) {
        if (SWITCHES.contains(option)) {
            return true;
        }
        int end = option.indexOf('=');
        if (!option.startsWith("-XX:") || end < 0 || option.equals("-XX:AOTMode=off")) {
            return false;
        }
        String name = option.substring("-XX:".length(), end);
        return FILES.contains(name.endsWith(":") ? name.substring(0, name.length() - 1) : name);
    }

    /** The options that are left; one line says which are not. */
    public static List<String> without(List<String> options, Messages messages) {
        List<String> kept = new ArrayList<>();
        List<String> away = new ArrayList<>();
        for (String option : options) {
            (isAbout(option) ? away : kept).add(option);
        }
        tell(away, messages);
        return kept;
    }

    /** The same for a line of them, which is left as it is elsewhere. */
    public static String without(String line, Messages messages) {
        Matcher words = WORD.matcher(line);
        StringBuilder kept = new StringBuilder();
        List<String> away = new ArrayList<>();
        int from = 0;
        while (words.find()) {
            String option = words.group().replace("\"", "").replace("'", "");
            if (isAbout(option)) {
                away.add(option);
                kept.append(line, from, words.start());
                from = words.end();
            }
        }
        tell(away, messages);
        return kept.append(line.substring(from)).toString();
    }

    private static void tell(List<String> away, Messages messages) {
        if (!away.isEmpty()) {
            messages.say("left out, because archives and AOT caches do not work in a traced run: " + String.join(", ", away));
        }
    }
}
