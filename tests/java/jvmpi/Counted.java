import java.util.ArrayList;
import java.util.List;

/** Makes known numbers of objects and calls on several threads. */
public class Counted {
    static final int THREADS = 4;
    static final int ROUNDS = Integer.getInteger("rounds", 500);

    static final class Node {
        final long value;
        Node next;

        Node(long value) {
            this.value = value;
        }

        long twice() {
            return value * 2;
        }
    }

    static final class Thrown extends RuntimeException {
        Thrown() {
            super(null, null, false, false);
        }
    }

    static Node chain;
    static long total;
    static final Object LOCK = new Object();

    static int recurse(int depth) {
        return depth == 0 ? 0 : 1 + recurse(depth - 1);
    }

    static void fail(int round) {
        if (round % 10 == 0) {
            throw new Thrown();
        }
    }

    static void work() {
        Node last = null;
        long sum = 0;
        for (int round = 0; round < ROUNDS; round++) {
            Node node = new Node(round);
            node.next = round % 50 == 0 ? last : null;
            last = node;
            sum += node.twice();
            byte[] bytes = new byte[1000];
            bytes[round] = 1;
            try {
                fail(round);
            } catch (Thrown thrown) {
                sum++;
            }
            sum += recurse(3);
        }
        synchronized (LOCK) {
            total += sum;
            Node held = new Node(1L << 40);
            held.next = chain;
            chain = held;
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < THREADS; number++) {
            Thread thread = new Thread(Counted::work, "worker " + number);
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        // What the threads made dies, but for what is in the chain.
        System.gc();
        System.out.println(total);
    }
}
