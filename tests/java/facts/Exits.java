import java.util.concurrent.CountDownLatch;

/** Ends by System.exit while daemon threads start threads that soon end: some end after the call. */
public class Exits {
    static final int STARTERS = 3;

    static void start(CountDownLatch started) {
        for (int i = 0; ; i++) {
            Thread thread = new Thread(() -> new Object().hashCode(), "short-" + i);
            thread.setDaemon(true);
            thread.start();
            try {
                thread.join();
            } catch (InterruptedException e) {
                return;
            }
            if (i == 20) {
                started.countDown();
            }
        }
    }

    public static void main(String[] args) throws InterruptedException {
        CountDownLatch started = new CountDownLatch(STARTERS);
        for (int i = 0; i < STARTERS; i++) {
            Thread thread = new Thread(() -> start(started), "starter-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        started.await();
        System.out.println("exit");
        System.exit(0);
    }
}
