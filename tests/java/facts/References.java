import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;

/** References are cleared: by the program, and by the collector. */
public class References {
    static class Leaf {}

    static class Weak extends WeakReference<Leaf> {
        Weak(Leaf leaf, ReferenceQueue<Leaf> queue) {
            super(leaf, queue);
        }
    }

    static class Phantom extends PhantomReference<Leaf> {
        Phantom(Leaf leaf, ReferenceQueue<Leaf> queue) {
            super(leaf, queue);
        }
    }

    static void byProgram(Weak cleared, Weak enqueued) {
        cleared.clear();
        enqueued.enqueue();
    }

    static int byCollector(ReferenceQueue<Leaf> queue) throws InterruptedException {
        Reference<?>[] kept = {new Weak(new Leaf(), queue), new Phantom(new Leaf(), queue)};
        int seen = 0;
        for (int i = 0; i < 200 && seen < kept.length; i++) {
            System.gc();
            while (queue.remove(50) != null) {
                seen++;
            }
        }
        return seen;
    }

    public static void main(String[] args) throws Exception {
        Leaf held = new Leaf();
        byProgram(new Weak(held, null), new Weak(held, new ReferenceQueue<>()));
        System.out.println("cleared " + byCollector(new ReferenceQueue<>()) + (held == null));
    }
}
