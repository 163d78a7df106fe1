package words;

import java.util.Map;
import java.util.TreeMap;

/** How often each word was seen. */
public final class Index {
    private final Map<String, Word> words = new TreeMap<>();

    public void add(String text) {
        words.computeIfAbsent(text, Word::new).seen();
    }

    public int count(String text) {
        Word word = words.get(text);
        return word == null ? 0 : word.count();
    }

    @Override
    public String toString() {
        return words.values().toString();
    }
}
