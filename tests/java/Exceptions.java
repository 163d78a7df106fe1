/** Thrown, passed on, caught; by programs and by the VM. */
public class Exceptions {
    static class Failure extends RuntimeException {}

    static void caughtHere() {
        try {
            throw new Failure(); // @here
        } catch (Failure expected) {
            return;
        }
    }
    /* expect caughtHere own
     * N #1 Failure @here
     * M Failure.<init> #1
     * E Failure.<init> #1
     * T Exceptions.caughtHere !#1
     * H Exceptions.caughtHere !#1
     */

    static void one() {
        two();
    }

    static void two() {
        new Exceptions().three(); // @receiver
    }

    void three() {
        throw new Failure(); // @three
    }

    static void threeFrames() {
        try {
            one();
        } catch (RuntimeException expected) {
            return;
        }
    }
    /* expect threeFrames own
     * M Exceptions.one
     * M Exceptions.two
     * N #1 Exceptions @receiver
     * M Exceptions.<init> #1
     * E Exceptions.<init> #1
     * M Exceptions.three #1
     * N #2 Failure @three
     * M Failure.<init> #2
     * E Failure.<init> #2
     * T Exceptions.three #1 !#2
     * X Exceptions.three #1 !#2
     * X Exceptions.two !#2
     * X Exceptions.one !#2
     * H Exceptions.threeFrames !#2
     */

    static int divide(int a, int b) {
        return a / b;
    }

    static int length(Object[] array) {
        return array.length;
    }

    static Object at(Object[] array, int index) {
        return array[index];
    }

    static String cast(Object object) {
        return (String) object;
    }

    /** What the VM throws has no athrow: it shows where it leaves. */
    static void fromTheVm(Object[] empty) {
        try {
            divide(1, 0);
        } catch (ArithmeticException expected) {
        }
        try {
            length(null);
        } catch (NullPointerException expected) {
        }
        try {
            at(empty, 0);
        } catch (ArrayIndexOutOfBoundsException expected) {
        }
        try {
            cast(empty);
        } catch (ClassCastException expected) {
        }
    }
    /* expect fromTheVm own
     * M Exceptions.divide
     * T Exceptions.divide !#1(java.lang.ArithmeticException)
     * X Exceptions.divide !#1
     * H Exceptions.fromTheVm !#1
     * M Exceptions.length
     * T Exceptions.length !#2(java.lang.NullPointerException)
     * X Exceptions.length !#2
     * H Exceptions.fromTheVm !#2
     * M Exceptions.at
     * T Exceptions.at !#3(java.lang.ArrayIndexOutOfBoundsException)
     * X Exceptions.at !#3
     * H Exceptions.fromTheVm !#3
     * M Exceptions.cast
     * T Exceptions.cast !#4(java.lang.ClassCastException)
     * X Exceptions.cast !#4
     * H Exceptions.fromTheVm !#4
     */

    static void noop() {}

    static void leavesByFinally() {
        try {
            throw new Failure(); // @finally
        } finally {
            noop();
        }
    }

    /** A finally block is a handler that throws again. */
    static void finallyBlock() {
        try {
            leavesByFinally();
        } catch (Failure expected) {
            return;
        }
    }
    /* expect finallyBlock own
     * M Exceptions.leavesByFinally
     * N #1 Failure @finally
     * M Failure.<init> #1
     * E Failure.<init> #1
     * T Exceptions.leavesByFinally !#1
     * H Exceptions.leavesByFinally !#1
     * M Exceptions.noop
     * E Exceptions.noop
     * T Exceptions.leavesByFinally !#1
     * X Exceptions.leavesByFinally !#1
     * H Exceptions.finallyBlock !#1
     */

    static void replaced() {
        try {
            try {
                throw new Failure(); // @original
            } catch (Failure original) {
                throw new IllegalStateException(); // @replacement
            }
        } catch (IllegalStateException expected) {
            return;
        }
    }
    /* expect replaced own
     * N #1 Failure @original
     * M Failure.<init> #1
     * E Failure.<init> #1
     * T Exceptions.replaced !#1
     * H Exceptions.replaced !#1
     * N #2 java.lang.IllegalStateException @replacement
     * T Exceptions.replaced !#2
     * H Exceptions.replaced !#2
     */

    static class Base {
        Base(boolean fail) {
            if (fail) {
                throw new Failure(); // @inSuper
            }
        }
    }

    static class Derived extends Base {
        Derived() {
            super(true);
        }
    }

    /** Out of `super(…)`: no handler can stand in Derived.<init>, its exit is worked out. */
    static void outOfSuper() {
        try {
            new Derived(); // @derived
        } catch (Failure expected) {
            return;
        }
    }
    /* expect outOfSuper own
     * N #1 Derived @derived
     * M Derived.<init> #1
     * M Base.<init> #1
     * N #2 Failure @inSuper
     * M Failure.<init> #2
     * E Failure.<init> #2
     * T Base.<init> #1 !#2
     * X Base.<init> #1 !#2
     * X Derived.<init> #1 !#2
     * H Exceptions.outOfSuper !#2
     */

    static class Argument extends Base {
        Argument() {
            super(fail());
        }

        static boolean fail() {
            throw new Failure(); // @inArgument
        }
    }

    /** Before `super(…)`: the object is there, though Object's constructor never ran. */
    static void beforeSuper() {
        try {
            new Argument(); // @argument
        } catch (Failure expected) {
            return;
        }
    }
    /* expect beforeSuper own
     * N #1 Argument @argument
     * M Argument.<init> #1
     * M Argument.fail
     * N #2 Failure @inArgument
     * M Failure.<init> #2
     * E Failure.<init> #2
     * T Argument.fail !#2
     * X Argument.fail !#2
     * X Argument.<init> #1 !#2
     * H Exceptions.beforeSuper !#2
     */

    static class AfterSuper {
        AfterSuper() {
            throw new Failure(); // @afterSuper
        }
    }

    static void afterSuper() {
        try {
            new AfterSuper(); // @after
        } catch (Failure expected) {
            return;
        }
    }
    /* expect afterSuper own
     * N #1 AfterSuper @after
     * M AfterSuper.<init> #1
     * N #2 Failure @afterSuper
     * M Failure.<init> #2
     * E Failure.<init> #2
     * T AfterSuper.<init> #1 !#2
     * X AfterSuper.<init> #1 !#2
     * H Exceptions.afterSuper !#2
     */

    synchronized void lockedFailure() {
        throw new Failure(); // @locked
    }

    static void outOfMonitor(Exceptions self) {
        try {
            self.lockedFailure();
        } catch (Failure expected) {
            return;
        }
    }
    /* expect outOfMonitor own
     * M Exceptions.lockedFailure #1(Exceptions)
     * N #2 Failure @locked
     * M Failure.<init> #2
     * E Failure.<init> #2
     * T Exceptions.lockedFailure #1 !#2
     * X Exceptions.lockedFailure #1 !#2
     * H Exceptions.outOfMonitor !#2
     */

    static void nullThrown() {
        try {
            throw null;
        } catch (NullPointerException expected) {
            return;
        }
    }
    /* expect nullThrown own
     * T Exceptions.nullThrown !#1(java.lang.NullPointerException)
     * H Exceptions.nullThrown !#1
     */

    public static void main(String[] args) {
        Exceptions self = new Exceptions();
        for (int i = 0; i < 2; i++) {
            caughtHere();
            threeFrames();
            fromTheVm(new Object[0]);
            finallyBlock();
            replaced();
            outOfSuper();
            beforeSuper();
            afterSuper();
            outOfMonitor(self);
            nullThrown();
        }
        System.out.println("exceptions");
    }
}
