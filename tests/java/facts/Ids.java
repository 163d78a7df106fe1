import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Set;

/**
 * Objects whose mark words are wanted for everything: locks that threads fight for and wait at, identity hashes, collections.
 * Three threads make {@code -Drounds} nodes each and keep the last {@value #KEPT} of every fiftieth.
 */
public class Ids {
    static final int KEPT = 200;
    static final int ROUNDS = Integer.getInteger("rounds", 10_000);

    static class Node {
        final int number;
        int hash;
        Node before;

        Node(int number) {
            this.number = number;
        }
    }

    static volatile Object contended = new Object();
    static Object sink;

    static class Worker extends Thread {
        final Node[] kept = new Node[KEPT];

        @Override
        public void run() {
            Node last = null;
            for (int i = 0; i < ROUNDS; i++) {
                Node node = new Node(i);
                sink = new byte[i % 100];
                if (i % 10 == 0) {
                    fight(i);
                }
                if (i % 50 == 0) {
                    int slot = i / 50 % KEPT;
                    kept[slot] = node;
                    if (i % 100 == 0) {
                        // Locked before anybody asks for its hash.
                        synchronized (node) {
                            node.hash = System.identityHashCode(node);
                        }
                    } else {
                        node.hash = System.identityHashCode(node);
                    }
                    node.before = last;
                    if (last != null) {
                        // Chains would keep all of them.
                        last.before = null;
                    }
                    last = node;
                }
                if (i % 5_000 == 0) {
                    System.gc();
                    check(kept);
                }
            }
            check(kept);
        }
    }

    static void fight(int i) {
        Object lock = contended;
        synchronized (lock) {
            if (i % 1_000 == 0) {
                try {
                    lock.wait(1);
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                contended = new Object();
            }
        }
    }

    static void check(Node[] nodes) {
        IdentityHashMap<Node, Integer> numbers = new IdentityHashMap<>();
        for (Node node : nodes) {
            if (node != null) {
                numbers.put(node, node.number);
            }
        }
        for (Node node : nodes) {
            if (node == null) {
                continue;
            }
            same(node);
            synchronized (node) {
                same(node);
            }
            same(node);
            if (numbers.get(node) != node.number) {
                throw new AssertionError("an object is not found by its hash");
            }
        }
    }

    static void same(Node node) {
        if (System.identityHashCode(node) != node.hash) {
            throw new AssertionError("a hash has changed");
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Worker[] workers = new Worker[3];
        for (int i = 0; i < workers.length; i++) {
            workers[i] = new Worker();
            workers[i].start();
        }
        Set<Integer> hashes = new HashSet<>();
        int kept = 0;
        for (Worker worker : workers) {
            worker.join();
            for (Node node : worker.kept) {
                if (node != null) {
                    kept++;
                    hashes.add(node.hash);
                }
            }
        }
        // The VM's own hashes repeat once in a few thousand runs.
        System.out.println(kept + " kept, hashes are " + (hashes.size() == kept ? "all different" : "not all different"));
    }
}
