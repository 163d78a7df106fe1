import java.util.ArrayList;
import java.util.List;

/** Works in several threads until its standard input ends. */
public class Waits {
    static volatile boolean done;
    static volatile Object last;

    static Object work(int depth) {
        Object[] made = {depth, new ArrayList<>(List.of(depth))};
        last = made;
        return depth == 0 ? made : work(depth - 1);
    }

    /** Most of the time, for the trace's sake. */
    static void rest() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException goOn) {
            // It ends when it is told to.
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[2];
        for (int index = 0; index < threads.length; index++) {
            threads[index] = new Thread(() -> {
                while (!done) {
                    work(20);
                    rest();
                }
            }, "worker-" + index);
            threads[index].start();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) {
            work(5);
        }
        done = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done");
    }
}
