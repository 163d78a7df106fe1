import java.util.ArrayList;
import java.util.List;

/** What becomes of objects, by hand: `tests/tests/analyses.rs` has the numbers. With `-Dfactor=3` it makes more of some, with `-Dcollect=true` there is a collection. */
public class Lives {
    static class Local {
        int value = 1;

        int get() {
            return value;
        }
    }

    static class Returned {
        int get() {
            return 1;
        }
    }

    static class Shared {
        int value;

        int get() {
            return value;
        }
    }

    static class Box {
        Item item;

        Box(Item item) {
            this.item = item;
        }

        int get() {
            return 1;
        }
    }

    static class Item {}

    static class Kept {
        Object payload;
    }

    static final List<Kept> KEPT = new ArrayList<>();
    static volatile Shared handedOver;
    static int sum;

    /** Nobody else sees it, and it dies no later than this returns. */
    static void local() {
        Local local = new Local();
        sum += local.get();
    }

    static Returned give() {
        return new Returned();
    }

    /** It outlives `give`, and dies here. */
    static void take() {
        sum += give().get();
    }

    /** A box and its item die together. */
    static void boxed() {
        Box box = new Box(new Item());
        sum += box.get();
    }

    /** It is alive at the end. */
    static void keep() {
        KEPT.add(new Kept());
    }

    public static void main(String[] arguments) throws InterruptedException {
        int factor = Integer.getInteger("factor", 1);
        for (int i = 0; i < 100; i++) {
            local();
        }
        for (int i = 0; i < 50 * factor; i++) {
            take();
        }
        for (int i = 0; i < 40; i++) {
            boxed();
        }
        for (int i = 0; i < 2000 * factor; i++) {
            keep();
        }
        if (Boolean.getBoolean("collect")) {
            System.gc();
        }
        for (int i = 0; i < 10; i++) {
            Shared shared = new Shared();
            Thread thread = new Thread(() -> sum += shared.get());
            thread.start();
            thread.join();
        }
        System.out.println(sum > 0);
    }
}
