package org.elephanttracks.plugin;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.junit.Test;

public class ToolTest {
    private final List<String> shown = new ArrayList<>();
    private final Messages log = new Messages() {
        @Override
        public void say(String line) {
            shown.add(line);
        }

        @Override
        public void warn(String line) {
            shown.add("warning: " + line);
        }
    };

    @Test
    public void progressAndMessagesAreShown() throws Failure {
        assertEquals("{}", report("echo progress: half >&2; echo 'et-instrument: a note' >&2; printf '{}'"));
        assertEquals(Arrays.asList("half", "warning: a note"), shown);
    }

    @Test
    public void anErrorIsThatOfTheTool() {
        assertEquals("no JDK at /x", failure("echo 'et-instrument: no JDK at /x' >&2; exit 1"));
        assertEquals("sh failed with exit code 3", failure("exit 3"));
        assertEquals("error: bad value", failure("printf \"error: bad value\\n\\nFor more information, try '--help'.\\n\" >&2; exit 2"));
        assertEquals("sh does not match the version of the plugin: error: unexpected argument '--new'",
            failure("echo \"error: unexpected argument '--new'\" >&2; exit 2"));
    }

    @Test
    public void aToolThatIsNotThereIsNamed() {
        String message = assertThrows(Failure.class, () -> Tool.report(Arrays.asList("/no/tool"), log)).getMessage();
        assertEquals("cannot start /no/tool", message.substring(0, message.indexOf(':')));
    }

    @Test
    public void anExcludeComesFirst() {
        assertEquals(Arrays.asList("--events", "all", "--witness", "refs", "--exclude", "a.b.**", "--include", "a.**"),
            Tool.hooks("all", "refs", Arrays.asList("a.b.**"), Arrays.asList("a.**")));
    }

    @Test
    public void aModeIsAWordForEvents() throws Failure {
        assertEquals("all", Tool.events(null, null));
        assertEquals("alloc,update", Tool.events(null, "alloc,update"));
        assertEquals("counts", Tool.events("counts", null));
        assertEquals("alloc,stacks", Tool.events("objects", null));
        assertEquals("alloc,update,stacks", Tool.events("references", null));
        assertEquals("all", Tool.events("everything", null));
        assertEquals("elephantTracks: there is no mode 'fast': it is counts, objects, references or everything",
            assertThrows(Failure.class, () -> Tool.events("fast", null)).getMessage());
        assertEquals("elephantTracks: mode = counts and events = all say the same thing twice: leave out one of them",
            assertThrows(Failure.class, () -> Tool.events("counts", "all")).getMessage());
    }

    private String report(String script) throws Failure {
        return Tool.report(Arrays.asList("sh", "-c", script), log);
    }

    private String failure(String script) {
        return assertThrows(Failure.class, () -> report(script)).getMessage();
    }
}
