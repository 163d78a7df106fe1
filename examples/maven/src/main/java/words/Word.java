package words;

/** A word and how often it was seen. */
final class Word {
    private final String text;
    private int count;

    Word(String text) {
        this.text = text;
    }

    void seen() {
        count++;
    }

    int count() {
        return count;
    }

    @Override
    public String toString() {
        return text + " " + count;
    }
}
