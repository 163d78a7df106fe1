import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

// no expectations: tests/tests/stacks.rs compares the stacks that the program prints with those in the trace

/** Allocates on many stacks, and says which: the methods of this class with their lines, outermost first, and how often. */
public class Stacks {
    static final class Leaf implements Cloneable {
        /** The VM makes this one. */
        Leaf copy() {
            try { return tell((Leaf) super.clone()); } catch (CloneNotSupportedException e) { throw new IllegalStateException(e); }
        }
    }

    private static final StackWalker WALKER = StackWalker.getInstance();
    private static final Map<String, Integer> TOLD = new TreeMap<>();
    private static long seed = 42;

    /** On the line on which the object was made. */
    static synchronized Leaf tell(Leaf leaf) {
        List<String> frames = WALKER.walk(all -> all.skip(1)
            .filter(frame -> frame.getClassName().startsWith("Stacks") && !frame.getClassName().contains("$$"))
            .map(frame -> frame.getClassName() + "." + frame.getMethodName() + ":" + frame.getLineNumber())
            .collect(Collectors.toList()));
        Collections.reverse(frames);
        TOLD.merge(String.join(";", frames), 1, Integer::sum);
        return leaf;
    }

    static int random(int below) {
        seed = seed * 6364136223846793005L + 1442695040888963407L;
        return (int) (seed >>> 33) % below;
    }

    // A walk at random: two calls on a line, calls in loops, and exceptions that leave several frames.

    static void walk(int depth) {
        if (depth == 0) { tell(new Leaf()); return; }
        switch (random(6)) {
            case 0: one(depth - 1); two(depth - 1); break;
            case 1: one(depth - 1); break;
            case 2: two(depth - 1);
                tell(new Leaf());
                break;
            case 3: for (int i = 0; i < 2; i++) { one(depth - 1); } break;
            case 4:
                try {
                    thrown(depth - 1);
                } catch (IllegalStateException e) {
                    tell(new Leaf());
                }
                one(depth - 1);
                break;
            default: tell(new Leaf());
        }
    }

    static void one(int depth) { walk(depth); }

    static void two(int depth) {
        synchronized (TOLD) { walk(depth / 2); }
        try { walk(depth / 2); } finally { tell(new Leaf()); }
    }

    static void thrown(int depth) {
        if (depth == 0) throw new IllegalStateException();
        tell(new Leaf());
        thrown(depth - 1);
    }

    static Leaf deep(int depth) { return depth == 0 ? tell(new Leaf()) : deep(depth - 1); }

    static class Made {
        final Leaf leaf;

        Made(Leaf leaf) { this.leaf = leaf; }

        Made(int depth) {
            this(depth == 0 ? tell(new Leaf()) : new Made(depth - 1).leaf);
            tell(new Leaf());
        }
    }

    static class Initialized {
        static final Leaf LEAF = tell(new Leaf());

        static void touch() { tell(new Leaf()); }
    }

    public static void reflected() { tell(new Leaf()); }

    public static void failing() { tell(new Leaf()); throw new IllegalStateException(); }

    static void run(Thread thread) throws InterruptedException {
        thread.start();
        thread.join();
    }

    /** On a virtual thread, which is unmounted on the way, where there are such. */
    static void virtually(Runnable body) throws Exception {
        try {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            ((Thread) start.invoke(null, body)).join();
        } catch (NoSuchMethodException | InvocationTargetException e) {
            // Before 21; in 19 and 20 only with --enable-preview.
        }
    }

    public static void main(String[] arguments) throws Throwable {
        for (int i = 0; i < 200; i++) walk(12);
        deep(0); deep(1); deep(900);
        for (int i = 0; i < 30; i++) deep(i % 3).copy();
        for (int i = 0; i < 2; i++) new Made(3);
        Initialized.touch(); Initialized.touch();
        reads(); readsOther();
        for (int i = 0; i < 10; i++) { onOneLine(); behindCaught(); }
        List<Integer> numbers = new ArrayList<>(List.of(3, 1, 2));
        for (int i = 0; i < 20; i++) {
            numbers.sort((a, b) -> { tell(new Leaf()); return a - b; });
            numbers.stream().map(number -> tell(new Leaf())).forEach(leaf -> one(0));
            Callable<Leaf> called = () -> tell(new Leaf());
            called.call();
        }
        Method reflected = Stacks.class.getMethod("reflected");
        Method failing = Stacks.class.getMethod("failing");
        for (int i = 0; i < 40; i++) {
            reflected.invoke(null);
            try { failing.invoke(null); } catch (InvocationTargetException e) { tell(new Leaf()); }
            one(0);
        }
        run(new Thread(() -> deep(3)));
        for (int i = 0; i < 3; i++) {
            virtually(() -> { one(0); Thread.yield(); sleep(); deep(2); });
        }
        TOLD.forEach((stack, count) -> System.out.println(count + " " + stack));
    }

    // The VM calls an initializer by itself, on another line than the last call of the method.

    static class Read { static final Leaf LEAF = tell(new Leaf()); }

    static class Other { static final Leaf LEAF = tell(new Leaf()); }

    static Leaf reads() {
        one(0);
        return same(Read.LEAF);
    }

    static Leaf readsOther() {
        two(0);
        return same(Other.LEAF);
    }

    static Leaf same(Leaf leaf) { return leaf; }

    // Several calls on a line: the VM calls an initializer between two of them; a method without hooks catches what one with hooks has thrown, which
    // leaves the thread with the value of that one's last call.

    static class Third { static final Leaf LEAF = tell(new Leaf()); }

    static Leaf onOneLine() { return last(deep(1), same(Third.LEAF), random(2) == 0 ? deep(0) : deep(2), new Made(1).leaf, deep(1)); }

    static Leaf last(Leaf... leaves) { return leaves[leaves.length - 1]; }

    static final MethodHandle CAUGHT = caught();

    static MethodHandle caught() {
        try {
            MethodHandle failing = MethodHandles.lookup().findStatic(Stacks.class, "deepFailing", MethodType.methodType(void.class));
            return MethodHandles.catchException(failing, IllegalStateException.class, MethodHandles.empty(MethodType.methodType(void.class, IllegalStateException.class)));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final IllegalStateException SAVED = new IllegalStateException();

    /** Its last call is that of `behindCaught`: the thread keeps the value of this one. */
    static void deepFailing() { deep(1); throw SAVED; }

    static void behindCaught() throws Throwable { CAUGHT.invokeExact(); deep(1); tell(new Leaf()); deep(2); }

    static void sleep() {
        try { Thread.sleep(2); } catch (InterruptedException e) { throw new IllegalStateException(e); }
        tell(new Leaf());
    }
}
