/** What an agent that behaves badly has to leave alone: a thread of its own kind that makes objects, and the main thread with a sum. */
public final class Rough {
    static final class Made {
        int number;
        Made next;
    }

    static volatile Made last;

    static int made(int number) {
        Made made = new Made();
        made.number = number;
        last = made;
        return made.number;
    }

    public static void main(String[] args) throws Exception {
        Thread held = new Thread(() -> {
            while (true) {
                made(1);
            }
        }, "held");
        held.setDaemon(true);
        held.start();
        int odd = 0;
        for (int number = 0; number < 20_000; number++) {
            odd += made(number) & 1;
            if (number % 5_000 == 0) {
                System.gc();
                Thread.sleep(50);
            }
        }
        System.out.println("Rough-before " + odd);
    }
}
