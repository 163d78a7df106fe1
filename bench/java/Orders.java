import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A service that takes orders, for traces with a given number of objects: {@code java Orders MILLIONS}. Each order is some ten objects of
 * several classes. A tenth of all orders, and at most 80,000 of them (a million objects), are open at a time; one of fifty is never
 * closed. Prints how many are open at the end.
 */
public class Orders {
    /** Objects that one order is made of, roughly. */
    private static final int OBJECTS = 10;
    private static final int MOST_OPEN = 80_000;
    private static final Map<Integer, Order> OPEN = new HashMap<>();

    record Line(int article, int count, Line previous) {}

    static final class Customer {
        final String name;
        Order latest;

        Customer(int number) {
            name = "customer " + number;
        }
    }

    static final class Order {
        final int number;
        final Customer customer;
        final List<Line> lines = new ArrayList<>(4);

        Order(int number, Customer customer) {
            this.number = number;
            this.customer = customer;
            customer.latest = this;
        }
    }

    public static void main(String[] arguments) {
        int orders = (int) (Double.parseDouble(arguments[0]) * 1_000_000 / OBJECTS);
        int open = Math.min(MOST_OPEN, Math.max(1, orders / 10));
        Customer[] customers = new Customer[1000];
        for (int at = 0; at < customers.length; at++) {
            customers[at] = new Customer(at);
        }
        ArrayDeque<Integer> oldest = new ArrayDeque<>();
        long checksum = 0;
        for (int number = 0; number < orders; number++) {
            Order order = new Order(number, customers[(number * 7919 & 0x7fffffff) % customers.length]);
            Line last = null;
            for (int line = 0; line < 3; line++) {
                last = new Line(number % 977, line, last);
                order.lines.add(last);
            }
            checksum += ("order " + number).hashCode();
            OPEN.put(number, order);
            if (number % 50 != 0) {
                oldest.add(number);
            }
            if (oldest.size() > open) {
                close(oldest.remove());
            }
        }
        System.out.println(OPEN.size() + " open, " + checksum);
    }

    private static void close(int number) {
        Order order = OPEN.remove(number);
        if (order.customer.latest == order) {
            order.customer.latest = null;
        }
    }
}
