// java: -Xss1m
/** A stack that overflows, again and again, and a program that goes on afterwards. */
public class Overflow {
    static class Leaf {}

    static int depth;

    static void descend() {
        depth++;
        descend();
    }

    static void overflow() {
        try {
            descend();
        } catch (StackOverflowError expected) {
            return;
        }
    }

    static void after() {
        new Leaf(); // @after
    }
    /* expect after
     * N #1 Leaf @after
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     */

    public static void main(String[] args) {
        for (int i = 0; i < 20; i++) {
            depth = 0;
            overflow();
            if (depth < 100) {
                throw new AssertionError(depth);
            }
            after();
        }
        System.out.println("overflow");
    }
}
