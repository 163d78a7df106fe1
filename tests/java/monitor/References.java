import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;

/**
 * Arrays that only a reference of each kind leads to, each kind of array one of its own, and one that nothing leads to. No collection takes place
 * after they were made. A line of standard input says when to go on.
 */
public class References {
    static WeakReference<long[]> weak;
    static PhantomReference<byte[]> phantom;
    static final ReferenceQueue<byte[]> QUEUE = new ReferenceQueue<>();
    static Object[] strong;

    @SuppressWarnings("removal")
    static final class Finalizable {
        final char[] held = new char[1_000_000];

        @Override
        protected void finalize() {
            strong = new Object[] {held};
        }
    }

    public static void main(String[] arguments) throws Exception {
        make();
        System.out.println("ready");
        while (System.in.read() != '\n') {
        }
        System.out.println("done");
    }

    static void make() {
        System.gc();
        weak = new WeakReference<>(new long[250_000]);
        phantom = new PhantomReference<>(new byte[3_000_000], QUEUE);
        new Finalizable();
        int[] garbage = new int[500_000];
        garbage[0] = 1;
    }
}
