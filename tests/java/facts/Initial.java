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

    /** Waits for itself, which inflates its lock: its frames must be found all the same. */
    static class Waited extends Thread {
        final Node next;

        Waited(Node next) {
            this.next = next;
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
    static final int MANY = Integer.getInteger("many", 0);

    static Node first;
    static Node many;
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
        for (int i = 0; i < MANY; i++) {
            many = new Node(many);
        }
        weak = new WeakReference<>(first);
        // Only the class mirror refers to what that leaves behind.
        Initial.class.getDeclaredFields();
        for (int i = 0; i < WAITED; i++) {
            waited[i] = new Waited(first);
            waited[i].start();
            while (waited[i].getState() != Thread.State.WAITING) {
                Thread.yield();
            }
        }
        lock(20);
        for (int i = 0; i < WAITED; i++) {
            synchronized (waited[i]) {
                waited[i].notifyAll();
            }
            waited[i].join();
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
