// not instrumented
// needs: 17
// (On 11 a capturing lambda is made by a factory method of its class, with other records.)

import java.util.function.Function;
import java.util.function.Supplier;

/** Nobody rewrote this program before the run: its classes are when they are loaded, and so is what they make. */
public class AtRunTime {
    static class Leaf {
        Object held;

        Leaf(Object held) {
            this.held = held;
        }

        Object twice() {
            return new Object[][] {new Object[1], {this}}; // @grid
        }
    }

    static Leaf first;

    static void objects() {
        first = new Leaf("x"); // @leaf
        first.twice();
        try {
            new Leaf(first).held = Integer.parseInt("no"); // @second
        } catch (NumberFormatException expected) {
            first = null;
        }
    }
    /* expect objects own
     * N #1 Leaf @leaf
     * M Leaf.<init> #1
     * U #1.held null -> #2(java.lang.String)
     * E Leaf.<init> #1
     * U AtRunTime.first null -> #1
     * M Leaf.twice #1
     * A #3 java.lang.Object[2][] @grid
     * A #4 java.lang.Object[1] @grid
     * U #3[0] null -> #4
     * A #5 java.lang.Object[1] @grid
     * U #5[0] null -> #1
     * U #3[1] null -> #5
     * E Leaf.twice #1
     * N #6 Leaf @second
     * M Leaf.<init> #6
     * U #6.held null -> #1
     * E Leaf.<init> #6
     * H AtRunTime.objects !#7(java.lang.NumberFormatException)
     * U AtRunTime.first #1 -> null
     */

    static Object notCapturing() {
        Supplier<Object> supplier = () -> new Leaf(null); // @fromLambda
        return supplier.get();
    }
    /* expect notCapturing own
     * M $Lambda.get #1($Lambda)
     * M AtRunTime.lambda$notCapturing$0
     * N #2 Leaf @fromLambda
     * M Leaf.<init> #2
     * U #2.held null -> null
     * E Leaf.<init> #2
     * E AtRunTime.lambda$notCapturing$0
     * E $Lambda.get #1
     */

    static Object capturing(Object what) {
        Function<Object, Object> function = ignored -> what;
        return function.apply("");
    }
    /* expect capturing own
     * V #1 $Lambda
     * M $Lambda.<init> #1
     * U #1.arg$1 null -> #2(java.lang.String)
     * E $Lambda.<init> #1
     * M $Lambda.apply #1
     * M AtRunTime.lambda$capturing$1
     * E AtRunTime.lambda$capturing$1
     * E $Lambda.apply #1
     */

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            objects();
            notCapturing();
            capturing("captured");
        }
        System.out.println("at run time");
    }
}
