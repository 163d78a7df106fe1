import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.Arrays;
import sun.misc.Unsafe;

/** Objects that no `new` and no array bytecode makes. */
public class MadeByVm {
    static class Leaf implements Cloneable {
        Object held;

        Leaf copy() throws CloneNotSupportedException {
            return (Leaf) super.clone();
        }
    }

    static class Bud extends Leaf {
        @Override
        Leaf copy() throws CloneNotSupportedException {
            return (Leaf) clone();
        }

        @Override
        protected Object clone() throws CloneNotSupportedException {
            return super.clone();
        }
    }

    static Object kept;

    static void arrayClone(Leaf[] leaves) {
        kept = null;
        leaves.clone();
    }
    /* expect arrayClone own
     * U MadeByVm.kept null -> null
     * V #1 Leaf[3]
     * U #1[0] null -> #2(Leaf)
     * U #1[2] null -> #2
     */

    static void arrayOfNumbers(int[] numbers) {
        numbers.clone();
    }
    /* expect arrayOfNumbers
     * V #1 int[4]
     */

    static void objectClone(Leaf leaf) throws CloneNotSupportedException {
        leaf.copy();
    }
    /* expect objectClone
     * M Leaf.copy #1(Leaf)
     * V #2 Leaf
     * U #2.held null -> #1
     * E Leaf.copy #1
     */

    /** Both calls of clone are hooked; one object is made. */
    static void overriddenClone(Bud bud) throws CloneNotSupportedException {
        bud.copy();
    }
    /* expect overriddenClone
     * M Bud.copy #1(Bud)
     * M Bud.clone #1
     * V #2 Bud
     * E Bud.clone #1
     * E Bud.copy #1
     */

    static void newInstanceOfArray() {
        Array.newInstance(Leaf.class, 3);
    }
    /* expect newInstanceOfArray own
     * V #1 Leaf[3]
     */

    static void newInstanceOfArrays() {
        Array.newInstance(Leaf.class, 2, 1); // @dimensions
    }
    /* expect newInstanceOfArrays own
     * A #1 int[2] @dimensions
     * V #2 Leaf[2][]
     * V #3 Leaf[1]
     * U #2[0] null -> #3
     * V #4 Leaf[1]
     * U #2[1] null -> #4
     */

    static void copyOf(Leaf[] leaves) {
        Arrays.copyOf(leaves, 2);
    }
    /* expect copyOf own
     * V #1 Leaf[2]
     * U #1[0] null -> #2(Leaf)
     */

    static void copyOfRange(Leaf[] leaves) {
        Arrays.copyOfRange(leaves, 2, 4);
    }
    /* expect copyOfRange own
     * V #1 Leaf[2]
     * U #1[0] null -> #2(Leaf)
     */

    static void allocateInstance(Unsafe unsafe) throws InstantiationException {
        unsafe.allocateInstance(Leaf.class);
    }
    /* expect allocateInstance own
     * V #1 Leaf
     */

    /** The object is there before its constructor runs, and has one record. */
    static void constructorHandle(MethodHandle handle) throws Throwable {
        Leaf leaf = (Leaf) handle.invokeExact();
        leaf.held = leaf;
    }
    /* expect constructorHandle own
     * V #1 Leaf
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * U #1.held null -> #1
     */

    static Object constant() {
        return "said once only";
    }
    /* expect constant first
     * V #1 java.lang.String
     * V #2 byte[14]
     * U #1.value null -> #2
     */

    static void box(Object array) {
        Array.get(array, 1);
    }
    /* expect box
     * V #1 java.lang.Integer
     */

    public static void main(String[] args) throws Throwable {
        Leaf leaf = new Leaf();
        leaf.held = leaf;
        Leaf[] leaves = {leaf, null, leaf};
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Unsafe unsafe = (Unsafe) field.get(null);
        MethodHandle handle = MethodHandles.lookup().findConstructor(Leaf.class, MethodType.methodType(void.class));
        Object constant = null;
        for (int i = 0; i < 2; i++) {
            arrayClone(leaves);
            arrayOfNumbers(new int[4]);
            objectClone(leaf);
            overriddenClone(new Bud());
            newInstanceOfArray();
            newInstanceOfArrays();
            copyOf(leaves);
            copyOfRange(leaves);
            allocateInstance(unsafe);
            constructorHandle(handle);
            constant = constant();
            box(new int[] {1000, 2000});
        }
        System.out.println("made " + constant + kept);
    }
}
