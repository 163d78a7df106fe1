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
        for (Page page : cache.withWord("colour" + request.product() % 13)) {
            if (shown++ == SHOWN) {
                break;
            }
            answer.append(' ').append(page.product());
        }
        return answer.toString();
    }
}
