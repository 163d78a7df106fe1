/**
 * A heap that stays while others come and go: short arrays behind long ways, and threads that keep the collector at work and make garbage of other
 * kinds. What is held never changes, and nothing else in the program is an array of shorts. A line of standard input says when to go on.
 */
public class Churn {
    static final class Node {
        final short[] held = new short[4];
        final Node next;
        Object other;

        Node(Node next) {
            this.next = next;
        }
    }

    static final int LISTS = 200;
    static final int LENGTH = 250;
    static final Node[] lists = new Node[LISTS];
    static volatile boolean isOver;
    static volatile Object last;

    static void churn() {
        Object[] kept = new Object[500];
        for (int number = 0; !isOver; number++) {
            kept[number % kept.length] = new byte[200 + number % 800];
            last = new Object[] {last, kept[number * 31 % kept.length]};
            if (number % 100 == 0) {
                last = null;
            }
            // Holders are written to, as programs do.
            lists[number % LISTS].other = kept[number % kept.length];
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int list = 0; list < LISTS; list++) {
            for (int length = 0; length < LENGTH; length++) {
                lists[list] = new Node(lists[list]);
            }
        }
        Thread[] threads = new Thread[2];
        for (int number = 0; number < threads.length; number++) {
            threads[number] = new Thread(Churn::churn, "churn");
            threads[number].start();
        }
        System.out.println("ready");
        while (System.in.read() != '\n') {
        }
        isOver = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("quiet");
        while (System.in.read() != '\n') {
        }
        System.out.println("done");
    }
}
