import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** Makes objects before, in and after a phase that is traced by itself, while other threads make some all the time. */
public class Phases {
    static class Before {
        Object held;
    }

    static class During {
        Object held;
    }

    static class After {}

    static class Steady {
        Steady next;
    }

    static final List<Object> KEPT = new ArrayList<>();
    static volatile boolean done;

    static void before() {
        for (int i = 0; i < 10; i++) {
            Before made = new Before();
            made.held = new int[i];
            KEPT.add(made);
            new Before();
        }
    }

    void during(int depth) {
        if (depth > 0) {
            during(depth - 1);
            return;
        }
        for (Object object : KEPT) {
            During made = new During();
            made.held = object;
            ((Before) object).held = made;
        }
        Supplier<During> lambda = During::new;
        lambda.get();
    }

    static void after() {
        for (int i = 0; i < 10; i++) {
            new After();
        }
    }

    /** Deep stacks, constructors and exceptions at whatever moment tracing begins and ends. */
    static int steady(int depth) {
        Steady made = new Steady();
        made.next = new Steady();
        if (depth == 0) {
            throw new IllegalStateException();
        }
        try {
            return steady(depth - 1);
        } catch (IllegalStateException e) {
            if (depth % 3 == 0) {
                return depth;
            }
            throw e;
        }
    }

    /** Has tracing begin or end from outside, which takes a moment. */
    static void signal(String property) throws Exception {
        String name = System.getProperty(property);
        if (name != null) {
            File file = new File(name);
            file.deleteOnExit();
            if (!file.createNewFile()) {
                throw new AssertionError(name);
            }
            Thread.sleep(1_000);
        }
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.getInteger("threads", 0);
        CountDownLatch running = new CountDownLatch(count);
        Thread[] threads = new Thread[count];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                running.countDown();
                while (!done) {
                    steady(10);
                    // Seconds of this would be a hundred million records.
                    LockSupport.parkNanos(100_000);
                }
            });
            threads[i].start();
        }
        running.await();
        before();
        signal("begin");
        new Phases().during(3);
        signal("end");
        after();
        done = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(KEPT.size());
    }
}
