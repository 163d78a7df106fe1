/** Exceptions, what they hold, and what was on its way when they came. */
public class Thrown {
    static void other() {}

    static class Caught extends RuntimeException {}

    static void caught() {
        try {
            throw new Caught(); // dies Caught: H Thrown.caught !Caught
        } catch (Caught expected) {
            other();
        }
    }

    static class Far extends RuntimeException {
        final Cargo cargo = new Cargo(); // dies Cargo: H Thrown.threeFrames !Far
    }

    static class Cargo {}

    static void one() {
        two();
    }

    static void two() {
        three();
    }

    static void three() {
        throw new Far(); // dies Far: H Thrown.threeFrames !Far
    }

    static void threeFrames() {
        try {
            one();
        } catch (Far expected) {
            other();
        }
    }

    static class Asked extends RuntimeException {}

    static void asked() {
        try {
            throw new Asked(); // dies Asked: E java.lang.Throwable.getMessage Asked
        } catch (Asked expected) {
            other();
            expected.getMessage();
            other();
        }
    }

    static class Again extends RuntimeException {}

    static void byFinally() {
        try {
            throw new Again(); // dies Again: H Thrown.thrownAgain !Again
        } finally {
            other();
        }
    }

    static void thrownAgain() {
        try {
            byFinally();
        } catch (Again expected) {
            other();
        }
    }

    static class Original extends RuntimeException {}

    static class Replacement extends RuntimeException {}

    static void replaced() {
        try {
            try {
                throw new Original(); // dies Original: H Thrown.replaced !Original
            } catch (Original original) {
                throw new Replacement(); // dies Replacement: H Thrown.replaced !Replacement
            }
        } catch (Replacement expected) {
            other();
        }
    }

    static class Cause extends RuntimeException {}

    static class Wrapper extends RuntimeException {
        Wrapper(Throwable cause) {
            super(cause);
        }
    }

    static void wrapped() {
        try {
            try {
                throw new Cause(); // dies Cause: H Thrown.wrapped !Wrapper
            } catch (Cause cause) {
                throw new Wrapper(cause); // dies Wrapper: H Thrown.wrapped !Wrapper
            }
        } catch (Wrapper expected) {
            other();
        }
    }

    static class Resource implements AutoCloseable {
        @Override
        public void close() {
            throw new InClose(); // dies InClose: H Thrown.suppressed !InBody
        }
    }

    static class InBody extends RuntimeException {}

    static class InClose extends RuntimeException {}

    static void suppressed() {
        try (Resource resource = new Resource()) { // dies Resource: X Resource.close Resource !InClose
            throw new InBody(); // dies InBody: H Thrown.suppressed !InBody
        } catch (InBody expected) {
            other();
        }
    }

    static int divide(int zero) {
        return 1 / zero;
    }

    static void byTheVm() {
        try {
            divide(0); // dies java.lang.ArithmeticException: H Thrown.byTheVm !java.lang.ArithmeticException
        } catch (ArithmeticException expected) {
            other();
        }
    }

    // Constructors that fail

    static class Failure extends RuntimeException {}

    static class Failed {
        Failed() {
            other();
            throw new Failure(); // dies Failure: H Thrown.inConstructor !Failure
        }
    }

    static void inConstructor() {
        try {
            new Failed(); // dies Failed: X Failed.<init> Failed !Failure
        } catch (Failure expected) {
            other();
        }
    }

    static class BaseFailure extends RuntimeException {}

    static class FailedBase {
        FailedBase() {
            throw new BaseFailure();
        }
    }

    static class FailedInBase extends FailedBase {
        FailedInBase() {
            super();
        }
    }

    static void inSuper() {
        try {
            new FailedInBase(); // dies FailedInBase: X FailedInBase.<init> FailedInBase !BaseFailure
        } catch (BaseFailure expected) {
            other();
        }
    }

    static class ArgumentFailure extends RuntimeException {}

    static class FailedInArgument extends Exception {
        FailedInArgument() {
            super(fail());
        }

        static String fail() {
            throw new ArgumentFailure();
        }
    }

    static void beforeSuper() {
        try {
            new FailedInArgument(); // dies FailedInArgument: X FailedInArgument.<init> FailedInArgument !ArgumentFailure
        } catch (ArgumentFailure expected) {
            other();
        }
    }

    static class EscapedAndFailed {
        static EscapedAndFailed kept;

        EscapedAndFailed() {
            kept = this;
            throw new Escape();
        }
    }

    static class Escape extends RuntimeException {}

    static void escapedAndFailed() {
        try {
            new EscapedAndFailed(); // dies EscapedAndFailed: U EscapedAndFailed.kept EscapedAndFailed -> null
        } catch (Escape expected) {
            other();
        }
        EscapedAndFailed.kept = null;
        other();
    }

    // What frames held that an exception ended

    static class InFrame {
        void use() {}
    }

    static class Ended extends RuntimeException {}

    static void ended() {
        InFrame held = new InFrame(); // dies InFrame: E InFrame.use InFrame
        held.use();
        throw new Ended();
    }

    static class ReceiverOfThrow {
        void fail() {
            other();
            throw new Ended();
        }
    }

    static void framesEnd() {
        try {
            ended();
        } catch (Ended expected) {
            other();
        }
        try {
            new ReceiverOfThrow().fail(); // dies ReceiverOfThrow: X ReceiverOfThrow.fail ReceiverOfThrow !Ended
        } catch (Ended expected) {
            other();
        }
    }

    static class Uncaught extends RuntimeException {}

    static class Fails extends Thread {
        @Override
        public void run() {
            throw new Uncaught(); // dies Uncaught: X Fails.run Fails !Uncaught
            // dies Uncaught all: R Uncaught
        }
    }

    static void uncaught() throws InterruptedException {
        Fails fails = new Fails();
        fails.setUncaughtExceptionHandler((thread, exception) -> other());
        fails.start();
        fails.join();
    }

    public static void main(String[] args) throws InterruptedException {
        caught();
        threeFrames();
        asked();
        thrownAgain();
        replaced();
        wrapped();
        suppressed();
        byTheVm();
        inConstructor();
        inSuper();
        beforeSuper();
        escapedAndFailed();
        framesEnd();
        uncaught();
        System.out.println("thrown");
    }
}
