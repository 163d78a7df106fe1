import java.lang.ref.WeakReference;

/** Has objects in all states that a mark word can be in when tracing begins. All else is the same in each run. */
public class Initial {
    static class Node {
        final Node next;
        Object other;

        Node(Node next) {
            this.next = next;
        }
    }

    static class Hashed extends Node {
        Hashed(Node next) {
            super(next);
        }
    }

    static class Locked extends Node {
        Locked(Node next) {
            super(next);
        }
    }

    /** Waits for itself, which inflates its lock. */
    static class Waited extends Node implements Runnable {
        Waited(Node next) {
            super(next);
        }

        @Override
        public synchronized void run() {
            try {
                wait();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static final int WAITED = Integer.getInteger("waited", 10);

    static Node first;
    static Node[][] all = new Node[3][50];
    static Waited[] waited = new Waited[WAITED];
    static WeakReference<Node> weak;

    public static void main(String[] args) throws InterruptedException {
        for (int i = 0; i < 50; i++) {
            first = all[0][i] = new Node(first);
            first = all[1][i] = new Hashed(first);
            first.hashCode();
            first.other = new int[i];
        }
        weak = new WeakReference<>(first);
        Thread[] threads = new Thread[WAITED];
        for (int i = 0; i < WAITED; i++) {
            threads[i] = new Thread(waited[i] = new Waited(first));
            threads[i].start();
            while (threads[i].getState() != Thread.State.WAITING) {
                Thread.yield();
            }
        }
        lock(20);
        for (int i = 0; i < WAITED; i++) {
            synchronized (waited[i]) {
                waited[i].notifyAll();
            }
            threads[i].join();
        }
        System.out.println("done");
    }

    static void lock(int depth) {
        if (depth == 0) {
            begin();
            return;
        }
        Locked node = new Locked(first);
        all[2][depth] = node;
        synchronized (node) {
            lock(depth - 1);
        }
    }

    static void begin() {
        first.other = new Node(null);
    }
}
