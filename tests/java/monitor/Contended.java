import java.io.IOException;

/**
 * Contention and waits that are known: each line on standard output is what a thread profiler must tell. Lines of standard input say when to go on.
 */
public class Contended {
    static final class Lock {}

    static final class Bell {}

    static final Lock LOCK = new Lock();
    static final Bell BELL = new Bell();

    public static void main(String[] arguments) throws Exception {
        await("ready");
        Thread holder = new Thread(Contended::hold, "holder");
        Thread waiter = new Thread(new ThreadGroup("guests"), Contended::enter, "waiter <&\">");
        holder.start();
        synchronized (BELL) {
            while (!held) {
                BELL.wait();
            }
        }
        waiter.start();
        holder.join();
        waiter.join();
        System.out.println("contended holder=" + holder.getId() + " waiter=" + waiter.getId() + " held_ms=" + heldMs);
        Thread sleeper = new Thread(Contended::timedWait, "timed");
        sleeper.start();
        sleeper.join();
        Thread notified = new Thread(Contended::notifiedWait, "notified");
        notified.start();
        Thread.sleep(350);
        synchronized (LOCK) {
            LOCK.notifyAll();
        }
        notified.join();
        System.out.println("waited timed=" + sleeper.getId() + " timed_us=" + timedUs + " notified=" + notified.getId()
            + " notified_us=" + notifiedUs);
        await("done");
    }

    static volatile boolean held;
    static volatile long heldMs;
    static volatile long timedUs;
    static volatile long notifiedUs;

    static void await(String what) throws IOException {
        System.out.println(what);
        while (System.in.read() != '\n') {
        }
    }

    static void hold() {
        synchronized (LOCK) {
            synchronized (BELL) {
                held = true;
                BELL.notifyAll();
            }
            sleep(400);
        }
    }

    static void enter() {
        long start = System.nanoTime();
        synchronized (LOCK) {
            heldMs = (System.nanoTime() - start) / 1_000_000;
        }
    }

    static void timedWait() {
        synchronized (LOCK) {
            long start = System.nanoTime();
            try {
                LOCK.wait(150);
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
            timedUs = (System.nanoTime() - start) / 1000;
        }
    }

    static void notifiedWait() {
        synchronized (LOCK) {
            long start = System.nanoTime();
            try {
                LOCK.wait();
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
            notifiedUs = (System.nanoTime() - start) / 1000;
        }
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException never) {
            throw new AssertionError(never);
        }
    }
}
