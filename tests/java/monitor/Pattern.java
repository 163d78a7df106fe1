import java.lang.ref.SoftReference;

/**
 * A heap of a known pattern: so many arrays of each kind, one that only a soft reference holds, and objects of a class of its own, of which half
 * die. A line of standard input says when to go on.
 */
public class Pattern {
    static final class Item {
        long number;
    }

    static final int COUNT = 400;
    static Object[] kept = new Object[4 * COUNT];
    static Item[] items = new Item[1000];
    static SoftReference<short[]> soft;

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < COUNT; i++) {
            kept[4 * i] = new byte[10_000];
            kept[4 * i + 1] = new char[5_000];
            kept[4 * i + 2] = new int[2_500];
            kept[4 * i + 3] = new long[1_250];
        }
        for (int i = 0; i < items.length; i++) {
            items[i] = new Item();
        }
        for (int i = 0; i < items.length; i += 2) {
            items[i] = null;
        }
        soft = new SoftReference<>(new short[1_000_000]);
        System.gc();
        System.out.println("ready");
        while (System.in.read() != '\n') {
        }
        System.out.println(kept.length + " " + items.length + " " + (soft.get() != null));
    }
}
