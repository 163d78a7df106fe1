/** Methods whose entry and exit are one event, and such as look like it. */
public class Leaves {
    static int count;
    int size;
    long total;
    Leaves next;
    static volatile Leaves shared = new Leaves();

    int size() {
        return size;
    }

    void setSize(int value) {
        size = value;
    }

    int grow() {
        return ++size;
    }

    int larger(int other) {
        if (other > size) {
            return other;
        }
        return size;
    }

    static int twice(int n) {
        return n + n;
    }

    static int made() {
        return count;
    }

    static synchronized void make() {
        count++;
    }

    int sizeOf(Leaves other) {
        return other.size;
    }

    int half(int n) {
        return size / n;
    }

    static boolean reads() {
        Leaves leaves = shared;
        leaves.setSize(3);
        leaves.grow();
        return leaves.size() == 4 && leaves.larger(9) == 9 && leaves.larger(1) == 4;
    }
    /* expect reads
     * M Leaves.setSize #1(Leaves)
     * E Leaves.setSize #1
     * M Leaves.grow #1
     * E Leaves.grow #1
     * M Leaves.size #1
     * E Leaves.size #1
     * M Leaves.larger #1
     * E Leaves.larger #1
     * M Leaves.larger #1
     * E Leaves.larger #1
     */

    static int ofClass() {
        make();
        return twice(made());
    }
    /* expect ofClass
     * M Leaves.make
     * E Leaves.make
     * M Leaves.made
     * E Leaves.made
     * M Leaves.twice
     * E Leaves.twice
     */

    /** What the VM throws stands between the entry and the exit of the method that it is thrown in. */
    static int fails() {
        try {
            return shared.sizeOf(null);
        } catch (NullPointerException e) {
            return -1;
        }
    }
    /* expect fails own
     * M Leaves.sizeOf #1(Leaves)
     * T Leaves.sizeOf #1 !#2(java.lang.NullPointerException)
     * X Leaves.sizeOf #1 !#2
     * H Leaves.fails !#2
     */

    static int divides() {
        try {
            return shared.half(2) + shared.half(0);
        } catch (ArithmeticException e) {
            return -1;
        }
    }
    /* expect divides own
     * M Leaves.half #1(Leaves)
     * E Leaves.half #1
     * M Leaves.half #1
     * T Leaves.half #1 !#2(java.lang.ArithmeticException)
     * X Leaves.half #1 !#2
     * H Leaves.divides !#2
     */

    /** A new object is seen before the leaf that is called on it. */
    static int fresh() {
        return new Leaves().size(); // @fresh
    }
    /* expect fresh
     * N #1 Leaves @fresh
     * M Leaves.<init> #1
     * E Leaves.<init> #1
     * M Leaves.size #1
     * E Leaves.size #1
     */

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            System.out.println(reads() + " " + ofClass() + " " + fails() + " " + divides() + " " + fresh());
        }
    }
}
