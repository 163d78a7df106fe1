/** Sleeps a known number of times, and is woken from one sleep. */
public class Sleeps {
    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < 7; round++) {
            Thread.sleep(3);
        }
        Thread.sleep(250);
        Thread.currentThread().interrupt();
        try {
            Thread.sleep(100_000);
        } catch (InterruptedException woken) {
            System.out.println("woken");
        }
    }
}
