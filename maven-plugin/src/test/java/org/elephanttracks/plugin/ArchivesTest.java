package org.elephanttracks.plugin;

import static org.junit.Assert.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

import org.junit.Test;

public class ArchivesTest {
    private final List<String> said = new ArrayList<>();
    private final Messages messages = new Messages() {
        @Override
        public void say(String line) {
            said.add(line);
        }

        @Override
        public void warn(String line) {
            said.add(line);
        }
    };

    @Test
    public void whatNamesAnArchiveIsLeftOut() {
        List<String> options = Arrays.asList("-Xmx1g", "-XX:SharedArchiveFile=a b", "-XX:+AutoCreateSharedArchive", "-Xshare:off",
            "-XX:AOTMode=off", "-XX:AOTCache=c", "-Dx=-XX:AOTCache=c");
        assertEquals(Arrays.asList("-Xmx1g", "-Xshare:off", "-XX:AOTMode=off", "-Dx=-XX:AOTCache=c"),
            Archives.without(options, messages));
        assertEquals(Collections.singletonList("left out, because archives and AOT caches do not work in a traced run: "
            + "-XX:SharedArchiveFile=a b, -XX:+AutoCreateSharedArchive, -XX:AOTCache=c"), said);
    }

    @Test
    public void aLineIsLeftAsItIsElsewhere() {
        assertEquals("@{jacoco}  '-Dx=a b' ", Archives.without("@{jacoco} -Xshare:on '-Dx=a b' \"-XX:AOTCache=a b\"", messages));
        assertEquals(1, said.size());
        assertEquals("-Xmx1g", Archives.without("-Xmx1g", messages));
        assertEquals(1, said.size());
    }
}
