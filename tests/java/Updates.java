/** Reference slots: fields, statics, elements; what they held before; stores that throw tell nothing. */
public class Updates {
    static class Leaf {}

    static class Box {
        Object held;
        long number;
        String text;
        Object[] many;
    }

    static class SubBox extends Box {}

    static Object ours;

    static class Other {
        static Object theirs;
    }

    static void field() {
        Box box = new Box(); // @box
        Leaf leaf = new Leaf(); // @leaf
        box.held = leaf;
        box.held = box;
        box.held = null;
        box.number = 5;
    }
    /* expect field
     * N #1 Box @box
     * M Box.<init> #1
     * E Box.<init> #1
     * N #2 Leaf @leaf
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * U #1.held null -> #2
     * U #1.held #2 -> #1
     * U #1.held #1 -> null
     */

    /** The instruction names SubBox.held; the slot is Box.held all the same. */
    static void inherited() {
        SubBox sub = new SubBox(); // @sub
        sub.held = sub;
        Box box = sub;
        box.held = null;
    }
    /* expect inherited
     * N #1 SubBox @sub
     * M SubBox.<init> #1
     * M Box.<init> #1
     * E Box.<init> #1
     * E SubBox.<init> #1
     * U #1.held null -> #1
     * U #1.held #1 -> null
     */

    static void ownStatic() {
        ours = new Leaf(); // @ours
        ours = null;
    }
    /* expect ownStatic
     * N #1 Leaf @ours
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * U Updates.ours null -> #1
     * U Updates.ours #1 -> null
     */

    static void othersStatic() {
        Other.theirs = new Leaf(); // @theirs
        Other.theirs = null;
    }
    /* expect othersStatic
     * N #1 Leaf @theirs
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * U Other.theirs null -> #1
     * U Other.theirs #1 -> null
     */

    static void elements() {
        Object[] array = new Object[3]; // @array
        array[1] = array;
        array[1] = new Leaf(); // @element
        array[2] = array[1];
        array[1] = null;
    }
    /* expect elements
     * A #1 java.lang.Object[3] @array
     * U #1[1] null -> #1
     * N #2 Leaf @element
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * U #1[1] #1 -> #2
     * U #1[2] null -> #2
     * U #1[1] #2 -> null
     */

    /** The value of an assignment is used again: the hook must leave the stack as it found it. */
    static void assignmentsAsValues() {
        Box box = new Box(); // @valueBox
        Object[] array = new Object[2]; // @valueArray
        ours = box.held = array[1] = box;
        ours = null;
    }
    /* expect assignmentsAsValues
     * N #1 Box @valueBox
     * M Box.<init> #1
     * E Box.<init> #1
     * A #2 java.lang.Object[2] @valueArray
     * U #2[1] null -> #1
     * U #1.held null -> #1
     * U Updates.ours null -> #1
     * U Updates.ours #1 -> null
     */

    static void nullOrigin(Box none) {
        try {
            none.held = ours;
        } catch (NullPointerException expected) {
            return;
        }
    }
    /* expect nullOrigin own
     * T Updates.nullOrigin !#1(java.lang.NullPointerException)
     * H Updates.nullOrigin !#1
     */

    static void nullArray(Object[] none) {
        try {
            none[0] = ours;
        } catch (NullPointerException expected) {
            return;
        }
    }
    /* expect nullArray own
     * T Updates.nullArray !#1(java.lang.NullPointerException)
     * H Updates.nullArray !#1
     */

    static void wrongType(Object[] strings) {
        try {
            strings[0] = new Leaf(); // @wrong
        } catch (ArrayStoreException expected) {
            return;
        }
    }
    /* expect wrongType own
     * N #1 Leaf @wrong
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * T Updates.wrongType !#2(java.lang.ArrayStoreException)
     * H Updates.wrongType !#2
     */

    static void outOfBounds(Object[] short1) {
        try {
            short1[1] = null;
        } catch (ArrayIndexOutOfBoundsException expected) {
            return;
        }
    }
    /* expect outOfBounds own
     * T Updates.outOfBounds !#1(java.lang.ArrayIndexOutOfBoundsException)
     * H Updates.outOfBounds !#1
     */

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            field();
            inherited();
            ownStatic();
            othersStatic();
            elements();
            assignmentsAsValues();
            nullOrigin(null);
            nullArray(null);
            wrongType(new String[1]);
            outOfBounds(new Object[1]);
        }
        System.out.println("updates " + ours);
    }
}
