/** Scalars: each object its own site, also when `new` stands in the arguments of another constructor. */
public class Objects {
    static class Leaf {}

    static class Pair {
        Object left;
        Object right;

        Pair(Object left, Object right) {
            this.left = left;
            this.right = right;
        }
    }

    static void one() {
        new Leaf(); // @one
    }
    /* expect one
     * N #1 Leaf @one
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     */

    static void nested() {
        new Pair(new Leaf(), new Pair(new Leaf(), null)); // @nested
    }
    /* expect nested
     * N #1 Leaf @nested
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * N #2 Leaf @nested
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * N #3 Pair @nested
     * M Pair.<init> #3
     * U #3.left null -> #2
     * U #3.right null -> null
     * E Pair.<init> #3
     * N #4 Pair @nested
     * M Pair.<init> #4
     * U #4.left null -> #1
     * U #4.right null -> #3
     * E Pair.<init> #4
     */

    static void loop() {
        for (int i = 0; i < 3; i++) {
            new Leaf(); // @loop
        }
    }
    /* expect loop
     * N #1 Leaf @loop
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * N #2 Leaf @loop
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * N #3 Leaf @loop
     * M Leaf.<init> #3
     * E Leaf.<init> #3
     */

    /** Branches between `new` and its constructor: the pair cannot be found by looking backwards. */
    static void chosen(boolean left) {
        new Pair(left ? new Leaf() : null, left ? null : new Leaf()); // @chosen
    }
    /* expect chosen
     * N #1 Leaf @chosen
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * N #2 Pair @chosen
     * M Pair.<init> #2
     * U #2.left null -> #1
     * U #2.right null -> null
     * E Pair.<init> #2
     */

    /** Objects of classes that are not ours pass the same hooks. */
    static void plainObject() {
        new Object(); // @object
    }
    /* expect plainObject
     * N #1 java.lang.Object @object
     */

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            one();
            nested();
            loop();
            chosen(false);
            chosen(true);
            plainObject();
        }
        System.out.println("objects");
    }
}
