package org.elephanttracks.maven;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Json;
import org.elephanttracks.plugin.Messages;

/** The report of {@code et-instrument} on an archive. */
final class JarReport {
    /** How many of a kind are shown. */
    private static final int LISTED = 10;

    private final List<String> skipped = new ArrayList<>();
    private final List<String> shortfalls = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();
    private final List<String> warnings = new ArrayList<>();
    private long classes;
    private boolean signed;

    private JarReport(Map<?, ?> report) {
        for (Object element : (Collection<?>) report.get("artifacts")) {
            Map<?, ?> artifact = (Map<?, ?>) element;
            classes += ((Number) artifact.get("classes")).longValue();
            signed |= !((Collection<?>) artifact.get("signaturesRemoved")).isEmpty();
            for (Object skip : (Collection<?>) artifact.get("skipped")) {
                Map<?, ?> fields = (Map<?, ?>) skip;
                skipped.add(fields.get("entry") + ": copied unchanged: " + fields.get("reason"));
            }
            for (Object leftOut : (Collection<?>) artifact.get("leftOut")) {
                Map<?, ?> fields = (Map<?, ?>) leftOut;
                skipped.add(fields.get("entry") + ": left out: " + fields.get("reason"));
            }
            for (Object shortfall : (Collection<?>) artifact.get("shortfalls")) {
                Map<?, ?> fields = (Map<?, ?>) shortfall;
                shortfalls.add(fields.get("method") + ": no " + fields.get("hooks") + ": " + fields.get("why"));
            }
        }
        ((Collection<?>) report.get("notes")).forEach(note -> notes.add((String) note));
        ((Collection<?>) report.get("warnings")).forEach(warning -> warnings.add((String) warning));
    }

    static JarReport parse(String json) throws Failure {
        try {
            return new JarReport((Map<?, ?>) Json.parse(json));
        } catch (ClassCastException | NullPointerException | IllegalArgumentException error) {
            throw new Failure("cannot read the report of et-instrument: does its version match the plugin?", error);
        }
    }

    void tell(Messages messages) {
        list(skipped, messages);
        list(shortfalls, messages);
        warnings.forEach(messages::warn);
        notes.forEach(messages::say);
        if (signed) {
            messages.say("signatures removed: they are valid for the original only");
        }
        messages.say("rewrote " + classes + (classes == 1 ? " class" : " classes"));
    }

    private static void list(List<String> lines, Messages messages) {
        lines.stream().limit(LISTED).forEach(messages::warn);
        if (lines.size() > LISTED) {
            messages.warn("and " + (lines.size() - LISTED) + " more");
        }
    }
}
