package shop;

/** Shows a product's page. */
final class PageHandler implements RequestHandler {
    private final ProductCache cache;

    PageHandler(ProductCache cache) {
        this.cache = cache;
    }

    @Override
    public String answer(Request request) {
        return "<html>" + cache.page(request.product()).text() + "</html>";
    }
}
