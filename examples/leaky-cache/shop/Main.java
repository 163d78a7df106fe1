package shop;

import java.util.Random;

/** Answers a fixed list of requests, so that every run is the same. */
public final class Main {
    private static final int REQUESTS = 3_000;
    private static final int PRODUCTS = 900;
    /** One for the whole shop, which a server would have to the end of its days. */
    private static final ProductCache CACHE = new ProductCache(100);

    public static void main(String[] args) {
        RequestHandler[] handlers = {
            new PageHandler(CACHE), new SearchHandler(CACHE), new PriceHandler(),
        };
        Random random = new Random(1);
        long answered = 0;
        for (int i = 0; i < REQUESTS; i++) {
            Request request = new Request(random.nextInt(PRODUCTS), random.nextInt(10));
            RequestHandler handler = handlers[request.kind() < 6 ? 0 : request.kind() < 9 ? 1 : 2];
            answered += handler.answer(request).length();
        }
        System.out.println("answered " + REQUESTS + " requests with " + answered + " characters");
        System.out.println("the cache says it holds " + CACHE.size() + " pages");
        System.out.println("its index still reaches " + CACHE.pagesInIndex() + " pages");
    }
}
