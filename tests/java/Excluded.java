// instrument: --exclude Excluded$Hidden

/** A class that is left out tells nothing itself; its objects and what it calls still show. */
public class Excluded {
    static class Leaf {}

    static class Hidden {
        Object held;

        Hidden(Object held) {
            this.held = held;
        }

        void work() {
            new int[3].clone();
            seen();
        }
    }

    static void seen() {}

    static void mixed() {
        new Hidden(new Leaf()).work(); // @hidden
    }
    /* expect mixed own
     * N #1 Leaf @hidden
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * N #2 Hidden @hidden
     * M Excluded.seen
     * E Excluded.seen
     */

    public static void main(String[] args) {
        mixed();
        mixed();
        System.out.println("excluded");
    }
}
