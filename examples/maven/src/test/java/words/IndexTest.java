package words;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class IndexTest {
    @Test
    public void wordsAreCounted() {
        Index index = new Index();
        index.add("be");
        index.add("not");
        index.add("be");
        assertEquals(2, index.count("be"));
        assertEquals(0, index.count("question"));
        assertEquals("[be 2, not 1]", index.toString());
    }
}
