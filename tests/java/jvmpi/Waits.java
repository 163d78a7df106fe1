/** Waits known numbers of times, and has a monitor that two threads want. */
public class Waits {
    static final Object LOCK = new Object();
    static volatile boolean wanted;

    static void want() {
        wanted = true;
        synchronized (LOCK) {
            wanted = false;
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < 20; round++) {
            synchronized (Waits.class) {
                Waits.class.wait(1);
            }
        }
        for (int round = 0; round < 5; round++) {
            Thread other = new Thread(Waits::want, "other");
            synchronized (LOCK) {
                other.start();
                while (other.getState() != Thread.State.BLOCKED) {
                    Thread.sleep(1);
                }
            }
            other.join();
        }
        System.out.println("done");
    }
}
