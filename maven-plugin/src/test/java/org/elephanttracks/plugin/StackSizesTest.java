package org.elephanttracks.plugin;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class StackSizesTest {
    @Test
    public void sizesAreScaled() {
        assertEquals("-Xss2560k", StackSizes.scaled("-Xss512k"));
        assertEquals("-ea -Xss5120k '-XX:ThreadStackSize=2560' -Dx=1",
            StackSizes.scaled("-ea -Xss1m '-XX:ThreadStackSize=512' -Dx=1"));
        assertEquals("-Xss1048576k", StackSizes.scaled("-Xss400M"));
    }

    @Test
    public void allElseStaysAsItIs() {
        String[] others = {"", "-Xmx1g", "-Dx=-Xss1m", "-Xssmuch", "-Xss0", "-Xss2g", "-XX:VMThreadStackSize=512", "-XX:CompilerThreadStackSize=1"};
        for (String other : others) {
            assertEquals(other, StackSizes.scaled(other));
        }
    }
}
