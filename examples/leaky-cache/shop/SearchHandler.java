package shop;

/** Lists the newest pages that have a word. */
final class SearchHandler implements RequestHandler {
    private static final int SHOWN = 10;

    private final ProductCache cache;

    SearchHandler(ProductCache cache) {
        this.cache = cache;
    }

    @Override
    public String answer(Request request) {
        StringBuilder answer = new StringBuilder("found:");
        int shown = 0;
        for (Page page : cache.withWord(request.product() % 2 == 0 ? "red" : "blue")) {
            if (shown++ == SHOWN) {
                break;
            }
            answer.append(' ').append(page.product());
        }
        return answer.toString();
    }
}
