// needs: 21

import java.util.ArrayList;
import java.util.List;

/** Virtual threads that are unmounted inside methods, and mounted again elsewhere. */
public class Virtual {
    static int deep(int depth) throws InterruptedException {
        if (depth == 0) {
            Thread.sleep(1);
            return 0;
        }
        return 1 + deep(depth - 1);
    }

    static void work() {
        try {
            for (int round = 0; round < 10; round++) {
                deep(5);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 50; number++) {
            threads.add(Thread.ofVirtual().start(Virtual::work));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done");
    }
}
