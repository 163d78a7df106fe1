import java.util.ArrayDeque;

/** A program to look at: threads that run, sleep, wait and contend, objects that come and go. It ends by itself after ten minutes. */
public class Shop {
    static final Object till = new Object();
    static final ArrayDeque<byte[]> shelf = new ArrayDeque<>();
    static volatile long sold;

    public static void main(String[] arguments) throws Exception {
        // What a page could take for markup.
        String hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
        start(hostile, Shop::idle);
        start("clerk-1", Shop::serve);
        start("clerk-2", Shop::serve);
        start("porter", Shop::stock);
        System.out.println("open");
        long end = System.nanoTime() + 600_000_000_000L;
        while (System.nanoTime() < end) {
            Thread.sleep(20);
            count(7);
        }
        System.exit(0);
    }

    /** Where a debugger stops. */
    static int count(int step) {
        int next = step + 1;
        sold += next;
        return next;
    }

    interface Work {
        void step() throws Exception;
    }

    static void start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                while (true) {
                    work.step();
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    static void idle() throws Exception {
        synchronized (Shop.class) {
            Shop.class.wait(700);
        }
    }

    /** Holds the till for a while, so that the other has to wait. */
    static void serve() throws Exception {
        synchronized (till) {
            Thread.sleep(120);
        }
        long until = System.nanoTime() + 60_000_000;
        while (System.nanoTime() < until) {
            sold++;
        }
    }

    static void stock() throws Exception {
        synchronized (shelf) {
            shelf.add(new byte[10_000 + shelf.size()]);
            if (shelf.size() > 500) {
                shelf.poll();
            }
        }
        Thread.sleep(2);
    }
}
