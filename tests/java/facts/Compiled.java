/**
 * Loops that were compiled before tracing begins and go on behind it. Nothing in them keeps a compiler from reading only once what
 * says that tracing is on: no call that is not inlined, no volatile field, no lock.
 */
public class Compiled {
    static class Node {
        Node next;
    }

    static class Made {
        int size;
    }

    /** What a loop looks at in each round, at places that differ, so that no compiler reads ahead. */
    static class Loop {
        final Node[] goesOn = new Node[8];
        final long[] rounds = new long[8];

        Loop() {
            for (int i = 0; i < goesOn.length; i++) {
                goesOn[i] = new Node();
            }
        }

        long rounds() {
            long sum = 0;
            for (int i = 0; i < rounds.length; i++) {
                sum += rounds[i];
            }
            return sum;
        }

        /** Until it has gone so many rounds more. */
        void await(long more) throws InterruptedException {
            long enough = rounds() + more;
            while (rounds() < enough) {
                Thread.sleep(1);
            }
        }
    }

    static final Loop[] LOOPS = {new Loop(), new Loop(), new Loop()};
    static int size;

    static void stores(Loop loop) {
        Node[] goesOn = loop.goesOn;
        long[] rounds = loop.rounds;
        for (int i = 0;; i++) {
            Node node = goesOn[i & 7];
            if (node == null) {
                return;
            }
            node.next = node;
            rounds[i & 7]++;
        }
    }

    static void allocates(Loop loop) {
        Node[] goesOn = loop.goesOn;
        long[] rounds = loop.rounds;
        for (int i = 0;; i++) {
            if (goesOn[i & 7] == null) {
                return;
            }
            size += new Made().size;
            rounds[i & 7]++;
        }
    }

    static void calls(Loop loop) {
        Node[] goesOn = loop.goesOn;
        long[] rounds = loop.rounds;
        for (int i = 0;; i++) {
            if (goesOn[i & 7] == null) {
                return;
            }
            callee();
            rounds[i & 7]++;
        }
    }

    static void callee() {
        size++;
    }

    static void begin() {
    }

    public static void main(String[] args) throws InterruptedException {
        Thread[] threads = {
            new Thread(() -> stores(LOOPS[0])), new Thread(() -> allocates(LOOPS[1])), new Thread(() -> calls(LOOPS[2]))
        };
        for (int i = 0; i < threads.length; i++) {
            threads[i].start();
            LOOPS[i].await(10_000_000);
        }
        begin();
        for (int i = 0; i < threads.length; i++) {
            LOOPS[i].await(1000);
            for (int j = 0; j < LOOPS[i].goesOn.length; j++) {
                LOOPS[i].goesOn[j] = null;
            }
            threads[i].join();
        }
        System.out.println("done");
    }
}
