import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;

/** {@code Threads platform|virtual COUNT AT_ONCE}: so many threads, few at a time, each of which does a little work. */
public class Threads {
    static final class Node {
        final Node next;
        final int value;

        Node(Node next, int value) {
            this.next = next;
            this.value = value;
        }
    }

    /** Some objects, and one switch to other threads in the midst of them. */
    static int work(int number) {
        Node list = null;
        for (int i = 0; i < 10; i++) {
            list = new Node(list, number + i);
        }
        Thread.yield();
        int sum = 0;
        for (Node node = list; node != null; node = node.next) {
            sum += node.value;
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ThreadFactory factory = arguments[0].equals("virtual") ? virtual() : Thread::new;
        int count = Integer.parseInt(arguments[1]), atOnce = Integer.parseInt(arguments[2]);
        Semaphore free = new Semaphore(atOnce);
        AtomicLong sum = new AtomicLong();
        for (int i = 0; i < count; i++) {
            int number = i;
            free.acquire();
            factory.newThread(() -> {
                sum.addAndGet(work(number));
                free.release();
            }).start();
        }
        free.acquire(atOnce);
        System.out.println("check " + sum);
    }

    /** By reflection: this file is compiled for older releases too. */
    private static ThreadFactory virtual() throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        return (ThreadFactory) Class.forName("java.lang.Thread$Builder").getMethod("factory").invoke(builder);
    }
}
