package org.elephanttracks.maven;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

import org.junit.Test;

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Messages;

public class JarReportTest {
    @Test
    public void whatAUserShouldKnowIsTold() throws Failure {
        String skip = "{\"entry\": \"a.class\", \"reason\": \"damaged\"}";
        assertEquals(
            Arrays.asList("warning: a.class: copied unchanged: damaged", "warning: A.a()V: no exits: too long",
                "warning: --include matches nothing", "a note",
                "signatures removed: they are valid for the original only", "rewrote 1 class"),
            told(report(skip, "{\"method\": \"A.a()V\", \"hooks\": \"exits\", \"why\": \"too long\"}", "\"S.SF\"",
                "\"--include matches nothing\"", "\"a note\"")));
        assertEquals(Arrays.asList("rewrote 1 class"), told(report("", "", "", "", "")));
    }

    @Test
    public void longListsAreCut() throws Failure {
        String skip = "{\"entry\": \"a.class\", \"reason\": \"damaged\"}";
        List<String> lines = told(report(String.join(",", Collections.nCopies(13, skip)), "", "", "", ""));
        assertEquals(12, lines.size());
        assertEquals("warning: and 3 more", lines.get(10));
    }

    @Test
    public void anotherReportIsAnError() {
        for (String report : new String[] {"", "{}", "{\"artifacts\": [1], \"notes\": []}"}) {
            assertThrows(report, Failure.class, () -> JarReport.parse(report));
        }
    }

    private static String report(String skipped, String shortfalls, String signatures, String warnings, String notes) {
        return "{\"artifacts\": [{\"classes\": 1, \"skipped\": [" + skipped + "], \"leftOut\": [], \"shortfalls\": ["
            + shortfalls + "], \"signaturesRemoved\": [" + signatures + "]}], \"notes\": [" + notes
            + "], \"warnings\": [" + warnings + "]}";
    }

    private static List<String> told(String report) throws Failure {
        List<String> lines = new ArrayList<>();
        JarReport.parse(report).tell(new Messages() {
            @Override
            public void say(String line) {
                lines.add(line);
            }

            @Override
            public void warn(String line) {
                lines.add("warning: " + line);
            }
        });
        return lines;
    }
}
