import java.util.Random;

/**
 * Ends while daemon threads allocate on stacks that are nearly always new, so that one of them is in the midst of a walk when the VM suspends
 * it for good.
 */
public class Ends {
    private static final int DEPTH = 40;
    private static volatile Object last;

    private Ends() {
    }

    private static void left(Random random, int depth) {
        if (depth == 0) {
            last = new Object();
        } else if (random.nextBoolean()) {
            left(random, depth - 1);
        } else {
            right(random, depth - 1);
        }
    }

    private static void right(Random random, int depth) {
        if (depth == 0) {
            last = new int[1];
        } else if (random.nextBoolean()) {
            right(random, depth - 1);
        } else {
            left(random, depth - 1);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        for (int number = 0; number < 4; number++) {
            Random random = new Random(number);
            Thread thread = new Thread(() -> {
                while (true) {
                    left(random, DEPTH);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(200);
    }
}
