import java.util.concurrent.CountDownLatch;

/** Has a monitor that two threads wait for at the same time: the one that gets it first hands it to the other. */
public class Handed {
    static final Object LOCK = new Object();

    static void guest(CountDownLatch done) {
        synchronized (LOCK) {
            done.countDown();
        }
        try {
            // Of a thread that has ended nothing more is told.
            done.await();
        } catch (InterruptedException nobodyDoes) {
            throw new AssertionError(nobodyDoes);
        }
    }

    static void awaitBlocked(Thread thread) throws InterruptedException {
        while (thread.getState() != Thread.State.BLOCKED) {
            Thread.sleep(1);
        }
        // It is blocked before the VM says what it waits for.
        Thread.sleep(100);
    }

    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < 10; round++) {
            CountDownLatch done = new CountDownLatch(2);
            Thread[] guests = new Thread[2];
            synchronized (LOCK) {
                for (int number = 0; number < 2; number++) {
                    guests[number] = new Thread(() -> guest(done), "guest");
                    guests[number].start();
                    awaitBlocked(guests[number]);
                }
            }
            for (Thread guest : guests) {
                guest.join();
            }
        }
        System.out.println("done");
    }
}
