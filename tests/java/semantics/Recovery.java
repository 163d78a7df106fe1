// options: -Xmx48m -Drounds=3
// options: -Xmx48m -Xss256k
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A program that overflows its stack or its heap, many times, goes on as it would. */
public class Recovery {
    /** Fewer where the stack is as large as tracing makes it: each round enters hundreds of thousands of methods then. */
    static final int ROUNDS = Integer.getInteger("rounds", 10);
    static int entered;
    static int left;
    static Object last;

    static class Deep {
        final Object next;

        Deep(int depth) {
            next = new Deep(depth + 1);
        }
    }

    static class Shown {
        @Override
        public String toString() {
            return "<" + this + ">";
        }
    }

    static void down(int depth) {
        entered++;
        try {
            last = new int[] {depth};
            down(depth + 1);
        } finally {
            left++;
        }
    }

    static synchronized int locked(int depth) {
        return locked(depth + 1) + 1;
    }

    static int sorted(List<Integer> list, int depth) {
        list.sort((one, other) -> sorted(new ArrayList<>(List.of(2, 1)), depth + 1));
        return depth;
    }

    static void overflow(String what, Runnable body) {
        int caught = 0;
        for (int round = 0; round < ROUNDS; round++) {
            try {
                body.run();
            } catch (StackOverflowError error) {
                caught++;
            }
        }
        System.out.println(what + ": " + caught);
    }

    static int exhaust() {
        List<Object> kept = new ArrayList<>();
        try {
            while (true) {
                kept.add(new Object[100_000]);
            }
        } catch (OutOfMemoryError error) {
            int count = kept.size();
            kept = null;
            return count;
        }
    }

    static int exhaustByMap() {
        Map<String, Object> kept = new HashMap<>();
        try {
            for (int index = 0; ; index++) {
                kept.put("key" + index, new long[500]);
            }
        } catch (OutOfMemoryError error) {
            int count = kept.size();
            kept.clear();
            return count;
        }
    }

    public static void main(String[] args) throws Exception {
        overflow("recursion with finally", () -> down(0));
        // Where the stack ends, not even a handler can be sure to run: a few calls of each round may not count.
        System.out.println("entered were left: " + (entered - left < 10 * ROUNDS && entered > 1000) + (last instanceof int[]));
        if (args.length > 0) {
            System.out.println(entered + " " + left);
        }
        overflow("constructors", () -> new Deep(0));
        overflow("toString", () -> new Shown().toString());
        overflow("locks", () -> locked(0));
        overflow("comparators", () -> sorted(new ArrayList<>(List.of(2, 1)), 0));
        System.out.println("not locked: " + !Thread.holdsLock(Recovery.class));
        Thread small = new Thread(null, () -> overflow("small stack", () -> down(0)), "small", 200_000);
        small.start();
        small.join();

        int caught = 0;
        for (int round = 0; round < 5; round++) {
            if (exhaust() > 10) {
                caught++;
            }
        }
        System.out.println("heap exhausted " + caught + " times");
        System.out.println("by a map: " + (exhaustByMap() > 100));
        try {
            Object[] huge = new Object[Integer.MAX_VALUE];
            System.out.println(huge.length);
        } catch (OutOfMemoryError error) {
            System.out.println(error.getMessage());
        }
        try {
            Object[][][] many = new Object[1000][1000][1000];
            System.out.println(many.length);
        } catch (OutOfMemoryError error) {
            System.out.println(error.getMessage());
        }
        StringBuilder text = new StringBuilder("and on it goes");
        System.out.println(text.append('.').toString());
    }
}
