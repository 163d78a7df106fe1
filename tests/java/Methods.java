/** Entries, exits and receivers of every kind of method. */
public class Methods {
    static void noop() {}

    void instance() {}

    private int priv(int x) {
        return x + 1;
    }

    static long wide(long a, double b, long c) {
        return a + (long) b + c;
    }

    static Object reference(Object o) {
        return o;
    }

    static void kinds(Methods self) {
        noop();
        self.instance();
        self.priv(1);
        wide(1L, 2.0, 3L);
        reference(self);
    }
    /* expect kinds
     * M Methods.noop
     * E Methods.noop
     * M Methods.instance #1(Methods)
     * E Methods.instance #1
     * M Methods.priv #1
     * E Methods.priv #1
     * M Methods.wide
     * E Methods.wide
     * M Methods.reference
     * E Methods.reference
     */

    interface Shape {
        default int sides() {
            return corners();
        }

        int corners();

        static Shape triangle() {
            return new Triangle(); // @triangle
        }
    }

    static class Triangle implements Shape {
        @Override
        public int corners() {
            return 3;
        }
    }

    static class Odd extends Triangle {
        @Override
        public int corners() {
            return super.corners() + sides(0);
        }

        int sides(int n) {
            return n;
        }
    }

    static void interfaces() {
        Shape.triangle().sides();
    }
    /* expect interfaces
     * M Shape.triangle
     * N #1 Triangle @triangle
     * M Triangle.<init> #1
     * E Triangle.<init> #1
     * E Shape.triangle
     * M Shape.sides #1
     * M Triangle.corners #1
     * E Triangle.corners #1
     * E Shape.sides #1
     */

    static void overridden(Shape odd) {
        odd.corners();
    }
    /* expect overridden
     * M Odd.corners #1(Odd)
     * M Triangle.corners #1
     * E Triangle.corners #1
     * M Odd.sides #1
     * E Odd.sides #1
     * E Odd.corners #1
     */

    static int factorial(int n) {
        if (n <= 1) {
            return 1;
        }
        return n * factorial(n - 1);
    }

    static void recursion() {
        factorial(3);
    }
    /* expect recursion
     * M Methods.factorial
     * M Methods.factorial
     * M Methods.factorial
     * E Methods.factorial
     * E Methods.factorial
     * E Methods.factorial
     */

    synchronized void locked() {
        synchronized (Methods.class) {
            noop();
        }
    }

    static synchronized void lockedStatic() {}

    static void monitors(Methods self) {
        self.locked();
        lockedStatic();
    }
    /* expect monitors
     * M Methods.locked #1(Methods)
     * M Methods.noop
     * E Methods.noop
     * E Methods.locked #1
     * M Methods.lockedStatic
     * E Methods.lockedStatic
     */

    /** Every way out of a method is an exit. */
    static int ways(int n) {
        switch (n) {
            case 0:
                return 10;
            case 1:
                if (n > 0) {
                    return 11;
                }
                break;
            default:
                for (int i = 0; ; i++) {
                    if (i == n) {
                        return i;
                    }
                }
        }
        return -1;
    }

    static void returns() {
        ways(0);
        ways(1);
        ways(7);
    }
    /* expect returns
     * M Methods.ways
     * E Methods.ways
     * M Methods.ways
     * E Methods.ways
     * M Methods.ways
     * E Methods.ways
     */

    /** Assigns to `this` as other code may not: parameters may be overwritten, the receiver stays. */
    int overwrites(Object other) {
        other = null;
        return other == null ? 1 : 0;
    }

    static void overwritten(Methods self) {
        self.overwrites(self);
    }
    /* expect overwritten
     * M Methods.overwrites #1(Methods)
     * E Methods.overwrites #1
     */

    public static void main(String[] args) {
        Methods self = new Methods();
        Odd odd = new Odd();
        long sum = 0;
        for (int i = 0; i < 2; i++) {
            kinds(self);
            interfaces();
            overridden(odd);
            recursion();
            monitors(self);
            returns();
            overwritten(self);
            sum += wide(i, 2.5, 4) + ways(i) + factorial(5);
        }
        System.out.println("methods " + sum);
    }
}
