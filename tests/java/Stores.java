import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;

/** Reference slots that change without a putfield, putstatic or aastore in the program. */
public class Stores {
    static class Leaf {}

    static class Box {
        volatile Object held;
        Leaf leaf;
    }

    static Object ours;

    static void arraycopy(Leaf[] from, Leaf[] to) {
        System.arraycopy(from, 0, to, 1, 2);
    }
    /* expect arraycopy
     * U #1(Leaf[])[1] null -> #2(Leaf)
     * U #1[2] null -> #3(Leaf)
     */

    /** Only slots that change are told: b b -> a b. */
    static void overlapping(Leaf a, Leaf b) {
        Leaf[] array = {a, b, b}; // @overlapping
        System.arraycopy(array, 0, array, 1, 2);
    }
    /* expect overlapping
     * A #1 Leaf[3] @overlapping
     * U #1[0] null -> #2(Leaf)
     * U #1[1] null -> #3(Leaf)
     * U #1[2] null -> #3
     * U #1[1] #3 -> #2
     */

    /** What comes before the element that does not fit is copied. */
    static void partly(Object[] from, Leaf[] to) {
        try {
            System.arraycopy(from, 0, to, 0, 3);
        } catch (ArrayStoreException expected) {
            return;
        }
    }
    /* expect partly own
     * U #1(Leaf[])[0] null -> #2(Leaf)
     * T Stores.partly !#3(java.lang.ArrayStoreException)
     * H Stores.partly !#3
     */

    static void failing(Object from, Leaf[] to) {
        try {
            System.arraycopy(from, 0, to, 3, 2);
        } catch (ArrayIndexOutOfBoundsException | ArrayStoreException expected) {
            return;
        }
    }
    /* expect failing own
     * T Stores.failing !#1(java.lang.ArrayStoreException)
     * H Stores.failing !#1
     */

    static void fill(Leaf[] array, Leaf leaf) {
        Arrays.fill(array, leaf);
    }
    /* expect fill own
     * U #1(Leaf[])[0] null -> #2(Leaf)
     * U #1[1] null -> #2
     */

    static void arraySet(Leaf[] array, Leaf leaf) {
        Array.set(array, 1, leaf);
    }
    /* expect arraySet
     * U #1(Leaf[])[1] null -> #2(Leaf)
     */

    static void updater(AtomicReferenceFieldUpdater<Box, Object> held, Box box, Leaf a, Leaf b) {
        held.set(box, a);
        held.compareAndSet(box, b, b);
        held.compareAndSet(box, a, b);
        held.getAndSet(box, null);
        held.lazySet(box, a);
    }
    /* expect updater own
     * U #1(Box).held null -> #2(Leaf)
     * U #1.held #2 -> #3(Leaf)
     * U #1.held #3 -> null
     * U #1.held null -> #2
     */

    static void handleOfField(VarHandle held, Box box, Leaf a, Leaf b) {
        held.set(box, (Object) a);
        held.setRelease(box, (Object) b);
        held.compareAndSet(box, (Object) a, (Object) a);
        held.weakCompareAndSetPlain(box, (Object) a, (Object) a);
        Object old = held.compareAndExchange(box, (Object) b, (Object) a);
        old = held.getAndSet(box, (Object) null);
    }
    /* expect handleOfField own
     * U #1(Box).held null -> #2(Leaf)
     * U #1.held #2 -> #3(Leaf)
     * U #1.held #3 -> #2
     * U #1.held #2 -> null
     */

    static void handleOfElements(VarHandle elements, Leaf[] array, Leaf a) {
        elements.set(array, 0, a);
        elements.setVolatile(array, 1, a);
        elements.compareAndSet(array, 0, a, (Leaf) null);
    }
    /* expect handleOfElements own
     * U #1(Leaf[])[0] null -> #2(Leaf)
     * U #1[1] null -> #2
     * U #1[0] #2 -> null
     */

    static void handleOfStatic(VarHandle slot, Leaf a) {
        slot.setVolatile((Object) a);
        slot.set((Object) null);
    }
    /* expect handleOfStatic own
     * U Stores.ours null -> #1(Leaf)
     * U Stores.ours #1 -> null
     */

    static void reflection(Field held, Box box, Leaf a) throws IllegalAccessException {
        held.set(box, a);
        held.set(box, null);
    }
    /* expect reflection own
     * U #1(Box).leaf null -> #2(Leaf)
     * U #1.leaf #2 -> null
     */

    /** The store is in a class that the JDK makes for such handles. */
    static void setter(MethodHandle setter, Box box, Leaf a) throws Throwable {
        setter.invokeExact(box, a);
    }
    /* expect setter own
     * U #1(Box).leaf null -> #2(Leaf)
     */

    public static void main(String[] args) throws Throwable {
        Leaf a = new Leaf();
        Leaf b = new Leaf();
        AtomicReferenceFieldUpdater<Box, Object> updater =
            AtomicReferenceFieldUpdater.newUpdater(Box.class, Object.class, "held");
        VarHandle held = MethodHandles.lookup().findVarHandle(Box.class, "held", Object.class);
        VarHandle slot = MethodHandles.lookup().findStaticVarHandle(Stores.class, "ours", Object.class);
        VarHandle elements = MethodHandles.arrayElementVarHandle(Leaf[].class);
        Field leaf = Box.class.getDeclaredField("leaf");
        MethodHandle setter = MethodHandles.lookup().findSetter(Box.class, "leaf", Leaf.class);
        for (int i = 0; i < 2; i++) {
            arraycopy(new Leaf[] {a, b}, new Leaf[3]);
            overlapping(a, b);
            partly(new Object[] {a, "text", b}, new Leaf[3]);
            failing(new int[5], new Leaf[5]);
            fill(new Leaf[2], a);
            arraySet(new Leaf[2], a);
            updater(updater, new Box(), a, b);
            handleOfField(held, new Box(), a, b);
            handleOfElements(elements, new Leaf[2], a);
            handleOfStatic(slot, a);
            reflection(leaf, new Box(), a);
            setter(setter, new Box(), a);
        }
        System.out.println("stores " + ours);
    }
}
