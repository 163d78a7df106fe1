package shop;

/** A product's page. */
final class Page {
    private static final String[] COLOURS = {"red", "green", "blue", "black", "white", "grey", "brown"};
    private static final int LINES = 40;

    private final int product;
    private final Line[] lines;

    Page(int product) {
        this.product = product;
        this.lines = new Line[LINES];
        for (int i = 0; i < LINES; i++) {
            lines[i] = new Line(COLOURS[(product + i) % COLOURS.length], 36 + i % 10);
        }
    }

    int product() {
        return product;
    }

    Line[] lines() {
        return lines;
    }

    String text() {
        StringBuilder text = new StringBuilder();
        text.append("Product ").append(product);
        for (int i = 0; i < 5; i++) {
            text.append('\n').append(lines[i]);
        }
        return text.toString();
    }
}
