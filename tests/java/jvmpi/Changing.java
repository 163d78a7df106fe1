import java.io.InputStream;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** Defines classes all the time, and forgets what it has made of them: dumps show what is new, or dead when they arrive. */
public class Changing {
    static final int THREADS = 3;
    static final int HELD = 60;
    static final long LONGEST = Long.getLong("milliseconds", 1500) * 1_000_000;

    public static class Copied {
        Object other;
    }

    static final AtomicReferenceArray<Object> HELD_ONES = new AtomicReferenceArray<>(HELD);
    static byte[] bytes;

    static final class Loader extends ClassLoader {
        Class<?> copy() {
            return defineClass("Changing$Copied", bytes, 0, bytes.length);
        }
    }

    static void work() {
        long start = System.nanoTime();
        try {
            for (int at = 0; System.nanoTime() - start < LONGEST; at = (at + 1) % HELD) {
                Object[] made = {new Loader().copy().getConstructor().newInstance(), new long[] {at}};
                HELD_ONES.set(at, made);
            }
        } catch (ReflectiveOperationException exception) {
            throw new IllegalStateException(exception);
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (InputStream in = Changing.class.getResourceAsStream("Changing$Copied.class")) {
            bytes = in.readAllBytes();
        }
        Thread[] threads = new Thread[THREADS];
        for (int number = 0; number < THREADS; number++) {
            threads[number] = new Thread(Changing::work, "worker " + number);
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("done");
    }
}
