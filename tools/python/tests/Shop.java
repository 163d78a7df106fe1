import java.util.ArrayList;
import java.util.List;

/** Makes a known number of objects. */
public class Shop {
    static class Order {
        Object item;
    }

    static final List<Order> KEPT = new ArrayList<>();

    static Order order(Object item) {
        Order order = new Order();
        order.item = item;
        return order;
    }

    public static void main(String[] arguments) {
        int count = Integer.parseInt(arguments[0]);
        for (int i = 0; i < count; i++) {
            KEPT.add(order(new long[i]));
            order("gone");
        }
        System.exit(arguments.length > 1 ? 3 : 0);
    }
}
