// needs: 21
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Virtual threads: pinned, parked, many, with deep stacks, with monitors. */
public class VirtualThreads {
    static final Object LOCK = new Object();
    static int shared;

    static int deep(int depth) throws InterruptedException {
        if (depth == 0) {
            Thread.sleep(1);
            return 0;
        }
        Object[] kept = {depth};
        return deep(depth - 1) + (int) kept[0];
    }

    static void overflow() {
        overflow();
    }

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        AtomicInteger sum = new AtomicInteger();
        for (int index = 0; index < 200; index++) {
            threads.add(Thread.ofVirtual().name("v-" + index).start(() -> {
                try {
                    sum.addAndGet(deep(50));
                    synchronized (LOCK) {
                        shared++;
                        Thread.sleep(0, 1000);
                    }
                } catch (InterruptedException never) {
                    throw new AssertionError(never);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(sum + " " + shared);
        BlockingQueue<Object> queue = new ArrayBlockingQueue<>(2);
        Thread producer = Thread.startVirtualThread(() -> {
            for (int index = 0; index < 300; index++) {
                try {
                    queue.put(new int[] {index});
                } catch (InterruptedException never) {
                    throw new AssertionError(never);
                }
            }
        });
        int total = 0;
        for (int index = 0; index < 300; index++) {
            total += ((int[]) queue.take())[0];
        }
        producer.join();
        System.out.println(total);
        Thread fails = Thread.ofVirtual().name("fails").unstarted(() -> {
            throw new IllegalStateException("in a virtual thread");
        });
        fails.setUncaughtExceptionHandler((thread, thrown) -> System.out.println(thread.getName() + " " + thrown + " at " + thrown.getStackTrace().length));
        fails.start();
        fails.join();
        Thread overflows = Thread.ofVirtual().start(() -> {
            for (int round = 0; round < 3; round++) {
                try {
                    overflow();
                } catch (StackOverflowError error) {
                    System.out.println("overflow " + (error.getStackTrace().length > 100));
                }
            }
        });
        overflows.join();
        Thread parked = Thread.ofVirtual().start(() -> {
            try {
                Thread.sleep(100_000);
            } catch (InterruptedException expected) {
                System.out.println("interrupted " + Thread.currentThread().isVirtual());
            }
        });
        while (parked.getState() != Thread.State.TIMED_WAITING) {
            Thread.sleep(2);
        }
        System.out.println(parked.getStackTrace().length > 2);
        parked.interrupt();
        parked.join();
        try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            System.out.println(executor.submit(() -> Thread.currentThread().getClass().getSimpleName()).get());
        }
    }
}
