import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntSupplier;

/**
 * Steady SECONDS classes|none: does the same again and again, and keeps none of it: objects, stores, threads, and, with classes,
 * loaders with classes, lambdas and proxies that are unloaded again. What grows while it runs is not the program's. Prints how many
 * loaders there were.
 */
public class Steady {
    /** What lives: so many lists. */
    private static final Object[] LIVE = new Object[4096];
    private static volatile int sink;

    static class Node {
        Node next;
        Object value;
    }

    /** Is defined anew by each loader. */
    public static class Template implements IntSupplier {
        static final Object OWN = new int[10];
        Object field = OWN;
        public int getAsInt() {
            IntSupplier lambda = () -> ((int[]) field).length;
            return lambda.getAsInt();
        }
    }

    static class Loader extends ClassLoader {
        Loader() {
            super(Steady.class.getClassLoader());
        }
        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    static void allocate(int turn) {
        Node last = null;
        for (int i = 0; i < 200; i++) {
            Node node = new Node();
            node.next = last;
            node.value = i;
            last = node;
        }
        LIVE[turn % LIVE.length] = last;
        Map<String, Integer> words = new HashMap<>();
        for (int i = 0; i < 50; i++) {
            words.merge("w" + i % 17, i, Integer::sum);
        }
        sink += words.size();
    }

    static void classes(byte[] bytes) throws Exception {
        Loader loader = new Loader();
        IntSupplier made = (IntSupplier) loader.define(bytes).getDeclaredConstructor().newInstance();
        sink += made.getAsInt();
        Runnable proxy = (Runnable) Proxy.newProxyInstance(loader, new Class<?>[] { Runnable.class }, (p, m, a) -> null);
        proxy.run();
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        byte[] bytes;
        try (InputStream in = Steady.class.getResourceAsStream("Steady$Template.class")) {
            bytes = in.readAllBytes();
        }
        boolean makesClasses = arguments[1].equals("classes");
        int loaders = 0;
        for (int turns = 0; System.nanoTime() < end; turns++) {
            int turn = turns;
            for (int i = 0; i < 4; i++) {
                allocate(turn * 4 + i);
            }
            Thread[] threads = new Thread[2];
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> allocate(turn));
                threads[i].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            if (makesClasses && turn % 2 == 0) {
                classes(bytes);
                loaders++;
            }
            if (turn % 200 == 0) {
                System.gc();
            }
            Thread.sleep(20);
        }
        System.out.println(loaders);
    }
}
