package shop;

/** A rendered page. */
final class Page {
    private final int product;
    private final String text;

    Page(int product) {
        this.product = product;
        this.text = render(product);
    }

    private static String render(int product) {
        StringBuilder text = new StringBuilder();
        text.append("Product ").append(product).append('\n');
        for (int i = 0; i < 40; i++) {
            text.append("colour").append((product + i) % 13).append(" size").append((product * i) % 7).append('\n');
        }
        return text.toString();
    }

    int product() {
        return product;
    }

    String text() {
        return text;
    }
}
