import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;

/** Objects whose fate is known, by the trace and by the collector. Each class has a fate. */
public class Fates {
    static class Dropped {}

    static class Replaced {
        byte[] load = new byte[100];
    }

    static class Circle {
        Circle next;
    }

    static class Element {}

    static class Weakly {}

    static class Held {}

    static class Finalized {
        @Override
        protected void finalize() {
            finalized = true;
        }
    }

    /** Dead in the trace, which knows that nothing mentions it again; a slot that need not be cleared holds it. */
    static class Softly {}

    /** As above, but a variable does. */
    static class Local {
        int value = 1;
    }

    static volatile boolean finalized;
    static volatile Object slot;
    static Object kept;
    static Object soft;
    static Object weak;
    static Object[] array = new Object[10];

    /** The collector tells of what it freed a little later. */
    static void collect() {
        System.gc();
        try {
            Thread.sleep(100);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void drop() {
        for (int i = 0; i < 1000; i++) {
            slot = new Dropped();
        }
        slot = null;
        Circle first = new Circle();
        first.next = new Circle();
        first.next.next = first;
        new Finalized();
    }

    static void hold() {
        kept = new Held();
        slot = new Replaced();
        array[3] = new Element();
        weak = new WeakReference<>(new Weakly());
        soft = new SoftReference<>(new Softly());
    }

    static void holdLocally() throws InterruptedException {
        Thread thread = new Thread(() -> {
            Local local = new Local();
            synchronized (Fates.class) {
                slot = null;
                Fates.class.notify();
                while (local.value > 0) {
                    try {
                        Fates.class.wait();
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }
        });
        thread.setDaemon(true);
        synchronized (Fates.class) {
            thread.start();
            Fates.class.wait();
        }
    }

    public static void main(String[] args) throws InterruptedException {
        drop();
        hold();
        collect();
        slot = null;
        array[3] = null;
        collect();
        for (int i = 0; i < 100 && !finalized; i++) {
            collect();
        }
        holdLocally();
        System.out.println("finalized " + finalized);
    }
}
