package org.elephanttracks.plugin;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;

import java.util.Arrays;
import java.util.Collections;

import org.junit.Test;

public class JsonTest {
    @Test
    public void valuesAreRead() {
        assertEquals("{a=[1.0, -250.0, true, false, null], b={}, c=[]}",
            String.valueOf(Json.parse(" {\"a\": [1, -2.5e2, true, false, null],\n \"b\": {}, \"c\" : [ ] } ")));
        assertEquals(Arrays.asList("a\"\\/\n\té", "\uD83D\uDC18"),
            Json.parse("[\"a\\\"\\\\\\/\\n\\t\\u00e9\", \"\uD83D\uDC18\"]"));
        assertEquals(Collections.emptyMap(), Json.parse("{}"));
    }

    @Test
    public void whatIsNoJsonIsAnError() {
        String[] texts = {"", "{", "[1,", "[1 2]", "{\"a\" 1}", "{1: 2}", "tru", "\"a", "\"\\u12\"", "\"\\uzzzz\"", "1 1", "-", "'a'"};
        for (String text : texts) {
            try {
                fail(text + " was read as " + Json.parse(text));
            } catch (IllegalArgumentException expected) {
                // As it should be.
            }
        }
    }
}
