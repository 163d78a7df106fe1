/** What constructors do before and while they call `super(…)` or `this(…)`. */
public class Constructors {
    static class Leaf {}

    static class Base {
        Object held;

        Base(Object held) {
            this.held = held;
        }
    }

    static class Allocates extends Base {
        Allocates() {
            super(new Leaf()); // @leafBeforeSuper
        }
    }

    /** The leaf made before `super(…)` must not take the site of the object under construction. */
    static void allocatesBeforeSuper() {
        new Allocates(); // @allocates
    }
    /* expect allocatesBeforeSuper
     * N #1 Allocates @allocates
     * M Allocates.<init> #1
     * N #2 Leaf @leafBeforeSuper
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * M Base.<init> #1
     * U #1.held null -> #2
     * E Base.<init> #1
     * E Allocates.<init> #1
     */

    static class Chained {
        Object held;

        Chained() {
            this(new Leaf()); // @leafBeforeThis
        }

        Chained(Object held) {
            this.held = held;
        }
    }

    static void chained() {
        new Chained(); // @chained
    }
    /* expect chained
     * N #1 Chained @chained
     * M Chained.<init> #1
     * N #2 Leaf @leafBeforeThis
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * M Chained.<init> #1
     * U #1.held null -> #2
     * E Chained.<init> #1
     * E Chained.<init> #1
     */

    static class Calls extends Base {
        Calls() {
            super(help());
        }

        static Object help() {
            return null;
        }
    }

    static void callsBeforeSuper() {
        new Calls(); // @calls
    }
    /* expect callsBeforeSuper
     * N #1 Calls @calls
     * M Calls.<init> #1
     * M Calls.help
     * E Calls.help
     * M Base.<init> #1
     * U #1.held null -> null
     * E Base.<init> #1
     * E Calls.<init> #1
     */

    class Inner {
        Constructors outer() {
            return Constructors.this;
        }
    }

    Inner makeInner() {
        return new Inner(); // @inner
    }

    /** `this$0` is set before `super()`; its update can only be told after it. */
    static void inner() {
        new Constructors().makeInner(); // @outer
    }
    /* expect inner
     * N #1 Constructors @outer
     * M Constructors.<init> #1
     * E Constructors.<init> #1
     * M Constructors.makeInner #1
     * N #2 Inner @inner
     * M Inner.<init> #2
     * U #2.this$0 null -> #1
     * E Inner.<init> #2
     * E Constructors.makeInner #1
     */

    abstract static class Job {
        abstract Object result();
    }

    /** A captured variable is a field set before `super()`, too. */
    static void captured() {
        Leaf leaf = new Leaf(); // @capturedLeaf
        new Job() { // @capturing
            @Override
            Object result() {
                return leaf;
            }
        };
    }
    /* expect captured
     * N #1 Leaf @capturedLeaf
     * M Leaf.<init> #1
     * E Leaf.<init> #1
     * N #2 1 @capturing
     * M 1.<init> #2
     * M Job.<init> #2
     * E Job.<init> #2
     * U #2.val$leaf null -> #1
     * E 1.<init> #2
     */

    static class Deep3 {
        Deep3() {
            new Leaf(); // @deepLeaf
        }
    }

    static class Deep2 extends Deep3 {}

    static class Deep1 extends Deep2 {
        Deep1() {
            new Leaf(); // @shallowLeaf
        }
    }

    /** One object, three constructors; what they allocate has sites of its own. */
    static void deep() {
        new Deep1(); // @deep
    }
    /* expect deep
     * N #1 Deep1 @deep
     * M Deep1.<init> #1
     * M Deep2.<init> #1
     * M Deep3.<init> #1
     * N #2 Leaf @deepLeaf
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * E Deep3.<init> #1
     * E Deep2.<init> #1
     * N #3 Leaf @shallowLeaf
     * M Leaf.<init> #3
     * E Leaf.<init> #3
     * E Deep1.<init> #1
     */

    /** A constructor whose argument is an object of the very same class, in construction at the same time. */
    static class Same extends Base {
        Same(Object held) {
            super(held);
        }

        Same() {
            this(new Same(null)); // @sameInside
        }
    }

    static void same() {
        new Same(); // @same
    }
    /* expect same
     * N #1 Same @same
     * M Same.<init> #1
     * N #2 Same @sameInside
     * M Same.<init> #2
     * M Base.<init> #2
     * U #2.held null -> null
     * E Base.<init> #2
     * E Same.<init> #2
     * M Same.<init> #1
     * M Base.<init> #1
     * U #1.held null -> #2
     * E Base.<init> #1
     * E Same.<init> #1
     * E Same.<init> #1
     */

    static class Leaks {
        static Leaks last;

        Leaks() {
            last = this;
        }
    }

    /** `this` escapes from its constructor. */
    static void leaks() {
        Leaks.last = null;
        new Leaks(); // @leaks
    }
    /* expect leaks
     * U Leaks.last #1(Leaks) -> null
     * N #2 Leaks @leaks
     * M Leaks.<init> #2
     * U Leaks.last null -> #2
     * E Leaks.<init> #2
     */

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            allocatesBeforeSuper();
            chained();
            callsBeforeSuper();
            inner();
            captured();
            deep();
            same();
            leaks();
        }
        System.out.println("constructors");
    }
}
