/** Objects that only stacks hold: each dies behind the last record that mentions it. */
public class Stacks {
    interface Task {
        void run();
    }

    static void other() {}

    static int count;

    // Never used, returned, passed

    static class Unused {}

    static void unused() {
        new Unused(); // dies Unused: E Unused.<init> Unused
        other();
    }

    static class Returned {
        void use() {}
    }

    static Returned make() {
        return new Returned(); // dies Returned: E Returned.use Returned
    }

    static void returned() {
        Returned returned = make();
        other();
        returned.use();
        other();
    }

    static class ReturnedInVain {}

    static ReturnedInVain makeInVain() {
        return new ReturnedInVain(); // dies ReturnedInVain: E ReturnedInVain.<init> ReturnedInVain
    }

    static void returnedInVain() {
        makeInVain();
        other();
    }

    static class PassedDown {
        void use() {}
    }

    static void passed(PassedDown passed, int frames) {
        if (frames == 0) {
            passed.use();
        } else {
            passed(passed, frames - 1);
        }
    }

    static void passedDown() {
        passed(new PassedDown(), 20); // dies PassedDown: E PassedDown.use PassedDown
    }

    static class Ignored {}

    static void ignore(Ignored ignored) {
        other();
    }

    static void passedAndIgnored() {
        ignore(new Ignored()); // dies Ignored: E Ignored.<init> Ignored
    }

    static class First {}

    static class Second {}

    static void pair(First first, Second second) {}

    /** The first waits on the operand stack for the second. */
    static void operands() {
        pair(new First(), new Second()); // dies First: E First.<init> First
        // dies First all: R First
        // dies Second: E Second.<init> Second
    }

    static class Receiver {
        void run() {
            other();
            other();
        }
    }

    /** The exit of a frame mentions its receiver. */
    static void receiver() {
        new Receiver().run(); // dies Receiver: E Receiver.run Receiver
    }

    static class Outlived {
        Outlived next() {
            return null;
        }
    }

    static void localOverwritten() {
        Outlived outlived = new Outlived(); // dies Outlived: E Outlived.next Outlived
        outlived = outlived.next();
        other();
        count += outlived == null ? 1 : 0;
    }

    // Used, but in ways that leave no record

    static class NumberRead {
        int number = 7;
    }

    static void numberRead() {
        NumberRead read = new NumberRead(); // dies NumberRead: E NumberRead.<init> NumberRead
        // dies NumberRead all: R NumberRead
        other();
        count += read.number;
        other();
    }

    static class NumberWritten {
        int number;
    }

    static void numberWritten() {
        NumberWritten written = new NumberWritten(); // dies NumberWritten: E NumberWritten.<init> NumberWritten
        // dies NumberWritten all: R NumberWritten
        other();
        written.number = 3;
        other();
    }

    static class Compared {}

    static void compared() {
        Object compared = new Compared(); // dies Compared: E Compared.<init> Compared
        // dies Compared all: R Compared
        other();
        count += compared == Stacks.class ? 1 : 0;
        other();
    }

    static class CheckedForNull {}

    static void checkedForNull() {
        Object checked = new CheckedForNull(); // dies CheckedForNull: E CheckedForNull.<init> CheckedForNull
        // dies CheckedForNull all: R CheckedForNull
        other();
        count += checked != null ? 1 : 0;
        other();
    }

    static class Cast {}

    static void cast() {
        Object object = new Cast(); // dies Cast: E Cast.<init> Cast
        // dies Cast all: R Cast
        other();
        Cast cast = (Cast) object;
        other();
    }

    static class Asked {}

    static void asked() {
        Object asked = new Asked(); // dies Asked: E Asked.<init> Asked
        // dies Asked all: R Asked
        other();
        count += asked instanceof Runnable ? 1 : 0;
        other();
    }

    static class Hashed {}

    /** A native method mentions none of its arguments. */
    static void hashed() {
        Object hashed = new Hashed(); // dies Hashed: E Hashed.<init> Hashed
        // dies Hashed all: R Hashed
        other();
        System.identityHashCode(hashed);
        other();
    }

    static class NativeReceiver {}

    static void nativeReceiver() {
        Object receiver = new NativeReceiver(); // dies NativeReceiver: E NativeReceiver.<init> NativeReceiver
        // dies NativeReceiver all: R NativeReceiver
        other();
        receiver.getClass();
        other();
    }

    static class Fenced {}

    static void fenced() {
        Fenced fenced = new Fenced(); // dies Fenced: E Fenced.<init> Fenced
        // dies Fenced all: R Fenced
        other();
        java.lang.ref.Reference.reachabilityFence(fenced);
        other();
    }

    static class Locked {}

    static void locked() {
        synchronized (new Locked()) { // dies Locked: E Locked.<init> Locked
        // dies Locked all: R Locked
            other();
        }
        other();
    }

    static class LockedByMethod {
        synchronized void run() {
            other();
        }
    }

    static void lockedByMethod() {
        new LockedByMethod().run(); // dies LockedByMethod: E LockedByMethod.run LockedByMethod
    }

    static void numbers() {
        int[] numbers = new int[77]; // @numbers
        // dies @numbers: A int[77]
        // dies @numbers all: R int[] in Stacks.numbers
        other();
        count += numbers[3];
        other();
    }

    static void measured() {
        long[] measured = new long[78]; // @measured
        // dies @measured: A long[78]
        // dies @measured all: R long[] in Stacks.measured
        other();
        count += measured.length;
        other();
    }

    static class Element {
        void use() {}
    }

    static void elements() {
        Element[] elements = {new Element()}; // @elements
        // dies @elements: U Element[][0] null -> Element
        // dies @elements refs: R Element[]
        // dies Element: E Element.use Element
        other();
        Element element = elements[0];
        other();
        element.use();
        other();
    }

    static class Field {
        void use() {}
    }

    static class FieldHolder {
        Field field;
    }

    /** The holder is gone, what it held is not. */
    static void fieldRead() {
        FieldHolder holder = new FieldHolder(); // dies FieldHolder: U FieldHolder.field null -> Field
        // dies FieldHolder refs: R FieldHolder
        holder.field = new Field(); // dies Field: E Field.use Field
        other();
        Field field = holder.field;
        other();
        field.use();
        other();
    }

    // Constructors

    static class FromOutside {
        void use() {}
    }

    /** Captured variables are stored before `super(…)`. */
    static void anonymous() {
        FromOutside outside = new FromOutside(); // dies FromOutside: E 1.run 1
        Task task = new Task() { // dies 1: E 1.run 1
            @Override
            public void run() {
                outside.use();
                other();
            }
        };
        other();
        task.run();
        other();
    }

    static class Outer {
        class Inner {
            void run() {}
        }
    }

    static void innerClass() {
        Outer outer = new Outer(); // dies Outer: E Outer$Inner.run Outer$Inner
        Outer.Inner inner = outer.new Inner(); // dies Outer$Inner: E Outer$Inner.run Outer$Inner
        other();
        inner.run();
        other();
    }

    static class Base {
        Base(Object argument) {}
    }

    static class ForSuper {}

    static class Derived extends Base {
        Derived() {
            super(new ForSuper()); // dies ForSuper: E ForSuper.<init> ForSuper
        }
    }

    static void argumentOfSuper() {
        new Derived(); // dies Derived: E Derived.<init> Derived
        other();
    }

    static class Escaped {
        static Escaped kept;

        Escaped() {
            kept = this;
        }
    }

    static void escaped() {
        new Escaped(); // dies Escaped: U Escaped.kept Escaped -> null
        other();
        Escaped.kept = null;
        other();
    }

    // Lambdas, varargs

    interface Lambda {
        void call();
    }

    static class Captured {
        void use() {}
    }

    static void lambda() {
        Captured captured = new Captured(); // dies Captured: E $Lambda.call $Lambda
        Lambda task = () -> captured.use();
        other();
        task.call();
        other();
    }

    static class Bound {
        void use() {
            other();
        }
    }

    static void methodReference() {
        Task task = new Bound()::use; // dies Bound: E $Lambda.run $Lambda
        other();
        task.run();
        other();
    }

    static class Vararg {}

    static int many(Vararg... varargs) {
        return varargs.length;
    }

    static void varargs() {
        count += many(new Vararg(), null, null); // @varargs
        // dies Vararg: U Vararg[][2] null -> null
        // dies Vararg all: R Vararg[]
        // dies @varargs: U Vararg[][2] null -> null
        // dies @varargs all: R Vararg[]
        other();
    }

    static class Walk implements java.util.Iterator<String> {
        int left = 3;

        @Override
        public boolean hasNext() {
            return left > 0;
        }

        @Override
        public String next() {
            left--;
            return "step";
        }
    }

    static class Steps implements Iterable<String> {
        @Override
        public java.util.Iterator<String> iterator() {
            return new Walk(); // dies Walk: E Walk.hasNext Walk
        }
    }

    static void iterator() {
        for (String step : new Steps()) { // dies Steps: E Steps.iterator Steps
            count += step.length();
        }
        other();
    }

    public static void main(String[] args) {
        unused();
        returned();
        returnedInVain();
        passedDown();
        passedAndIgnored();
        operands();
        receiver();
        localOverwritten();
        numberRead();
        numberWritten();
        compared();
        checkedForNull();
        cast();
        asked();
        hashed();
        nativeReceiver();
        fenced();
        locked();
        lockedByMethod();
        numbers();
        measured();
        elements();
        fieldRead();
        anonymous();
        innerClass();
        argumentOfSuper();
        escaped();
        lambda();
        methodReference();
        varargs();
        iterator();
        System.out.println("stacks " + count);
    }
}
