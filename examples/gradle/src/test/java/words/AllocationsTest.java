package words;

import static org.junit.Assert.assertEquals;

import org.elephanttracks.test.Allocations;
import org.junit.Test;

/** How much is allocated; skipped by {@code gradle test}, where nothing counts. */
public class AllocationsTest {
    @Test
    public void aKnownWordCostsNothing() {
        Index index = new Index();
        index.add("be");
        Allocations.of(() -> index.count("be")).none();
    }

    @Test
    public void aNewWordIsAWordAndAnEntryOfTheMap() {
        String[] texts = {"be", "not"};
        Index index = new Index();
        int[] next = {0};
        Allocations made = Allocations.of(() -> index.add(texts[next[0]++]));
        assertEquals(made.toString(), 1, made.objects(Word.class));
        made.atMost(3); // and the reference to the constructor of Word
    }
}
