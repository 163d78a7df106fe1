package shop;

/** One variant of a product: a line of its page. */
final class Line {
    private final String colour;
    private final int size;

    Line(String colour, int size) {
        this.colour = colour;
        this.size = size;
    }

    String colour() {
        return colour;
    }

    @Override
    public String toString() {
        return colour + ", size " + size;
    }
}
