/** Class initialisers run once, at first use, in the thread that comes first. */
public class Statics {
    static class Leaf {}

    static class First {
        static Object held = new Leaf(); // @first

        static void touch() {}
    }

    static void byCall() {
        First.touch();
    }
    /* expect byCall first own
     * M First.<clinit>
     * N #1 Leaf @first
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * U First.held null -> #1
     * E First.<clinit>
     * M First.touch
     * E First.touch
     */

    static class Second {
        static Object held;
        static Object early = new Leaf(); // @second
    }

    /** The store initialises the class first, so its update comes after the initialiser. */
    static void byStore() {
        Second.held = null;
    }
    /* expect byStore first own
     * M Second.<clinit>
     * N #1 Leaf @second
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * U Second.early null -> #1
     * E Second.<clinit>
     * U Second.held null -> null
     */

    static class Parent {
        static Object parent = new Leaf(); // @parent
    }

    static class Child extends Parent {
        static Object child = parent;
    }

    static void parentFirst() {
        new Child(); // @child
    }
    /* expect parentFirst first own
     * M Parent.<clinit>
     * N #1 Leaf @parent
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * U Parent.parent null -> #1
     * E Parent.<clinit>
     * M Child.<clinit>
     * U Child.child null -> #1
     * E Child.<clinit>
     * N #2 Child @child
     * M Child.<init> #2
     * M Parent.<init> #2
     * E Parent.<init> #2
     * E Child.<init> #2
     */

    interface Constants {
        Object CONSTANT = new Leaf(); // @constant

        static Object get() {
            return CONSTANT;
        }
    }

    static void interfaceConstant() {
        Constants.get();
    }
    /* expect interfaceConstant first own
     * M Constants.<clinit>
     * N #1 Leaf @constant
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * U Constants.CONSTANT null -> #1
     * E Constants.<clinit>
     * M Constants.get
     * E Constants.get
     */

    public static void main(String[] args) {
        new Leaf();
        byCall();
        byStore();
        parentFirst();
        interfaceConstant();
        System.out.println("statics");
    }
}
