package shop;

/** Tells a price, and fails for products that have none: requests may go wrong. */
final class PriceHandler implements RequestHandler {
    @Override
    public String answer(Request request) {
        try {
            return "price: " + price(request.product());
        } catch (IllegalArgumentException noPrice) {
            return "no price: " + noPrice.getMessage();
        }
    }

    private static int price(int product) {
        if (product % 5 == 0) {
            throw new IllegalArgumentException("product " + product);
        }
        return product * 3 + 1;
    }
}
