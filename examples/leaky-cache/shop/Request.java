package shop;

/** What a visitor asked for. */
final class Request {
    private final int product;
    private final int kind;

    Request(int product, int kind) {
        this.product = product;
        this.kind = kind;
    }

    int product() {
        return product;
    }

    int kind() {
        return kind;
    }
}
