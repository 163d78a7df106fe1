package shop;

import java.util.Random;

/** Answers a fixed list of requests, so that every run is the same. */
public final class Main {
    private static final int REQUESTS = 3_000;
    private static final int PRODUCTS = 900;

    public static void main(String[] args) {
        ProductCache cache = new ProductCache(100);
        RequestHandler[] handlers = {
            new PageHandler(cache), new SearchHandler(cache), new PriceHandler(),
        };
        Random random = new Random(1);
        long answered = 0;
        for (int i = 0; i < REQUESTS; i++) {
            Request request = new Request(random.nextInt(PRODUCTS), random.nextInt(10));
            RequestHandler handler = handlers[request.kind() < 6 ? 0 : request.kind() < 9 ? 1 : 2];
            answered += handler.answer(request).length();
        }
        System.out.println("answered " + REQUESTS + " requests with " + answered + " characters");
        System.out.println("the cache says it holds " + cache.size() + " pages");
        System.out.println("its index still reaches " + cache.pagesInIndex() + " pages");
    }
}
