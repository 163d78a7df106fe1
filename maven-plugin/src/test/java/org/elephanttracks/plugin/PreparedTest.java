package org.elephanttracks.plugin;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import java.io.File;
import java.util.Arrays;
import java.util.Collections;

import org.junit.Test;

public class PreparedTest {
    private static final String REPORT = "{\"javaHome\": \"/jdk\", \"options\": [\"-agentpath:/a b\", \"-Det.dynamicExclude=x.**\"],"
        + "\"classPath\": [{\"original\": \"/no/a.jar\", \"copy\": \"/et/a.jar\"}], \"rewritten\": [\"/no/a.jar\"],"
        + "\"jars\": 1, \"classFiles\": 2, \"notes\": [\"a note\"], \"seconds\": 0.5}";

    @Test
    public void aReportIsRead() throws Failure {
        Prepared prepared = Prepared.parse(REPORT);
        assertEquals(new File("/jdk"), prepared.javaHome());
        assertEquals(new File("/et/a.jar"), prepared.copyOf(new File("/no/a.jar")));
        assertEquals(new File("/no/b.jar"), prepared.copyOf(new File("/no/b.jar")));
        assertEquals("1 jar and 2 class files", prepared.rewrote());
    }

    @Test
    public void nothingDoneIsNothingSaid() throws Failure {
        assertNull(Prepared.parse(REPORT.replace("\"jars\": 1, \"classFiles\": 2", "\"jars\": 0, \"classFiles\": 0")).rewrote());
    }

    @Test
    public void whatRunsTheProgramIsExcludedToo() throws Failure {
        Prepared prepared = Prepared.parse(REPORT);
        assertEquals("\"-agentpath:/a b\"\n\"-Det.dynamicExclude=x.**,y.**\"\n", prepared.argumentFile(Arrays.asList("y.**")));
        assertEquals("\"-agentpath:/a b\"\n\"-Det.dynamicExclude=x.**\"\n",
            prepared.argumentFile(Collections.<String>emptyList()));
    }

    @Test
    public void anotherReportIsAnError() {
        for (String report : new String[] {"", "[]", "{}", REPORT.replace("jars", "tins")}) {
            assertThrows(report, Failure.class, () -> Prepared.parse(report));
        }
    }
}
