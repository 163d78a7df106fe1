import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/** Locks are taken and given back as written, whatever ends a method. */
public class Monitors {
    static final Object LOCK = new Object();
    static int counter;

    static synchronized void fails() {
        throw new IllegalStateException("locked: " + Thread.holdsLock(Monitors.class));
    }

    synchronized Object inner(int depth) {
        return depth == 0 ? Thread.holdsLock(this) : inner(depth - 1);
    }

    static void blocks() {
        synchronized (LOCK) {
            synchronized (Monitors.class) {
                synchronized (LOCK) {
                    counter++;
                    if (counter % 2 == 0) {
                        throw new IllegalArgumentException();
                    }
                }
            }
        }
    }

    static void expect(String what, Runnable body) {
        try {
            body.run();
            System.out.println(what + ": nothing");
        } catch (RuntimeException thrown) {
            System.out.println(what + ": " + thrown);
        }
        System.out.println("  held: " + Thread.holdsLock(LOCK) + Thread.holdsLock(Monitors.class));
    }

    static class Channel {
        private Object slot;

        synchronized void put(Object value) throws InterruptedException {
            while (slot != null) {
                wait();
            }
            slot = value;
            notifyAll();
        }

        synchronized Object take() throws InterruptedException {
            while (slot == null) {
                wait();
            }
            Object value = slot;
            slot = null;
            notifyAll();
            return value;
        }
    }

    public static void main(String[] args) throws Exception {
        expect("wait without the lock", () -> {
            try {
                LOCK.wait();
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        });
        expect("notify without the lock", LOCK::notifyAll);
        expect("synchronized method", Monitors::fails);
        expect("blocks", Monitors::blocks);
        expect("blocks", Monitors::blocks);
        expect("null", () -> {
            Object none = null;
            synchronized (none) {
                counter++;
            }
        });
        System.out.println(new Monitors().inner(5));
        expect("unlock", () -> new ReentrantLock().unlock());

        Channel channel = new Channel();
        Thread producer = new Thread(() -> {
            try {
                for (int index = 0; index < 500; index++) {
                    channel.put(new int[] {index});
                }
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        });
        producer.start();
        long sum = 0;
        for (int index = 0; index < 500; index++) {
            sum += ((int[]) channel.take())[0];
        }
        producer.join();
        System.out.println(sum);

        // Contended, so that locks are inflated.
        Thread[] threads = new Thread[4];
        CountDownLatch start = new CountDownLatch(1);
        int[] count = new int[1];
        for (int index = 0; index < threads.length; index++) {
            threads[index] = new Thread(() -> {
                try {
                    start.await();
                } catch (InterruptedException never) {
                    throw new AssertionError(never);
                }
                for (int round = 0; round < 2000; round++) {
                    Object fresh = new Object();
                    synchronized (fresh) {
                        synchronized (LOCK) {
                            count[0]++;
                        }
                    }
                }
            });
            threads[index].start();
        }
        start.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(count[0]);
        Thread waiter = new Thread(() -> {
            synchronized (LOCK) {
                try {
                    LOCK.wait();
                } catch (InterruptedException expected) {
                    System.out.println("interrupted, held " + Thread.holdsLock(LOCK));
                }
            }
        });
        waiter.start();
        while (waiter.getState() != Thread.State.WAITING) {
            Thread.sleep(2);
        }
        waiter.interrupt();
        waiter.join();
        synchronized (LOCK) {
            LOCK.wait(20);
            LOCK.wait(1, 1);
        }
        System.out.println("end");
    }
}
