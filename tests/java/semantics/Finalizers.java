import java.lang.ref.Cleaner;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Finalizers run once, resurrection works, references are cleared and queued. */
@SuppressWarnings({"deprecation", "removal"})
public class Finalizers {
    static final AtomicInteger FINALIZED = new AtomicInteger();
    static final AtomicInteger CLEANED = new AtomicInteger();
    static final List<Object> BACK = new ArrayList<>();

    static class Busy {
        final Object kept = new Object();

        @Override
        protected void finalize() {
            FINALIZED.incrementAndGet();
        }
    }

    static class Returns {
        @Override
        protected void finalize() throws Throwable {
            synchronized (BACK) {
                BACK.add(this);
            }
            super.finalize();
        }
    }

    static class Fails {
        Fails() {
            throw new IllegalStateException();
        }

        @Override
        protected void finalize() {
            FINALIZED.incrementAndGet();
        }
    }

    static class Empty {
        @Override
        protected void finalize() {}
    }

    static void make() {
        for (int index = 0; index < 100; index++) {
            new Busy();
            new Empty();
            if (index < 10) {
                new Returns();
                try {
                    new Fails();
                } catch (IllegalStateException expected) {
                    continue;
                }
            }
        }
    }

    interface Condition {
        boolean holds();
    }

    static void collectUntil(String what, Condition condition) throws InterruptedException {
        for (int round = 0; round < 200 && !condition.holds(); round++) {
            System.gc();
            System.runFinalization();
            Thread.sleep(10);
        }
        System.out.println(what + ": " + condition.holds());
    }

    static boolean full(AtomicInteger count, int wanted) {
        return count.get() == wanted;
    }

    public static void main(String[] args) throws Exception {
        make();
        collectUntil("finalized", () -> full(FINALIZED, 110));
        collectUntil("back again", () -> {
            synchronized (BACK) {
                return BACK.size() == 10;
            }
        });
        BACK.clear();
        System.gc();
        Thread.sleep(50);
        System.out.println("not twice: " + BACK.size());

        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        WeakReference<Object> weak = new WeakReference<>(new Object(), queue);
        PhantomReference<Object> phantom = new PhantomReference<>(new int[3], queue);
        SoftReference<Object> soft = new SoftReference<>(new Object());
        WeakHashMap<Object, Object> map = new WeakHashMap<>();
        map.put(new Object(), "value");
        Cleaner cleaner = Cleaner.create();
        cleaner.register(new Object(), CLEANED::incrementAndGet);
        collectUntil("weak", () -> weak.get() == null && weak.isEnqueued());
        collectUntil("map", map::isEmpty);
        collectUntil("cleaner", () -> full(CLEANED, 1));
        int queued = 0;
        for (int round = 0; round < 100 && queued < 2; round++) {
            System.gc();
            if (queue.remove(20) != null) {
                queued++;
            }
        }
        System.out.println("queued " + queued + " " + (phantom.get() == null) + " " + (soft.get() != null));
        weak.clear();
        soft.clear();
        System.out.println(soft.get());
    }
}
