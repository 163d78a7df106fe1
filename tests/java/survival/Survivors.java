import java.util.ArrayList;
import java.util.List;

/**
 * Keeps objects through known numbers of collections: those of class Of0 through none, of Of1 through one and so on, and of
 * Always to the end. Some of these are locked, and waited for, while the heap is walked.
 */
public class Survivors {
    static final int ROUNDS = 6;
    static final int EACH = 200;

    static class Of0 {}

    static class Of1 {}

    static class Of3 {}

    static class Always {}

    static class Locked {}

    static final List<Object> always = new ArrayList<>();
    static final List<Object[]> ones = new ArrayList<>();
    static final List<Object[]> threes = new ArrayList<>();

    static Object[] make(int kind) {
        Object[] made = new Object[EACH];
        for (int at = 0; at < EACH; at++) {
            made[at] = kind == 1 ? new Of1() : new Of3();
        }
        return made;
    }

    static void drop() {
        for (int at = 0; at < EACH; at++) {
            new Of0();
        }
    }

    static void keep() {
        for (int at = 0; at < EACH; at++) {
            always.add(new Always());
        }
    }

    static void holdLock(Locked lock, boolean waits) {
        Thread thread = new Thread(() -> {
            synchronized (lock) {
                try {
                    // Inflates the lock; without, it is on the stack or in the mark word.
                    if (waits) {
                        lock.wait();
                    } else {
                        Thread.sleep(3_600_000);
                    }
                } catch (InterruptedException end) {
                    // The program ends.
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    static void round() throws InterruptedException {
        drop();
        keep();
        ones.add(make(1));
        threes.add(make(3));
        System.gc();
        // A walk needs some time.
        Thread.sleep(250);
        ones.remove(0);
        if (threes.size() == 3) {
            threes.remove(0);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        for (int at = 0; at < 10; at++) {
            Locked lock = new Locked();
            always.add(lock);
            holdLock(lock, at % 2 == 0);
        }
        Thread.sleep(100);
        for (int number = 0; number < ROUNDS; number++) {
            round();
        }
        System.out.println(always.size());
    }
}
