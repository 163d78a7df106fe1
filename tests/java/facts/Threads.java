/** Several threads, each with known work, in an order that is known where they wait for each other. */
public class Threads {
    static class Leaf {}

    static volatile Object handed;

    static void work(int leaves) {
        for (int i = 0; i < leaves; i++) {
            handed = new Leaf(); // @leaf
        }
    }

    /** One after the other: the records of one are all before those of the next. */
    static void inTurn() throws InterruptedException {
        for (int i = 1; i <= 3; i++) {
            int leaves = i;
            Thread thread = new Thread(() -> work(leaves), "turn-" + i);
            thread.start();
            thread.join();
        }
    }

    static void busy(int leaves) {
        for (int i = 0; i < leaves; i++) {
            new Leaf(); // @busy
        }
    }

    /** All at once: each has its own records, complete. */
    static void together() throws InterruptedException {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> busy(5_000), "busy-" + i);
        }
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static Object ball;

    static synchronized void hit(Object mine, int times) {
        for (int i = 0; i < times; i++) {
            ball = mine;
            Threads.class.notifyAll();
            while (ball == mine && i + 1 < times) {
                try {
                    Threads.class.wait();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
        }
    }

    /** Two threads write the same slot in turns: what each replaces is what the other wrote. */
    static void pingPong() throws InterruptedException {
        Thread ping = new Thread(() -> hit("ping", 50), "ping");
        Thread pong = new Thread(() -> hit("pong", 50), "pong");
        ping.start();
        pong.start();
        ping.join();
        pong.join();
    }

    public static void main(String[] args) throws InterruptedException {
        inTurn();
        together();
        pingPong();
        System.out.println("threads");
    }
}
