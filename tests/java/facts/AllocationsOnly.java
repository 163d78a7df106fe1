// instrument: --events alloc

/** Hooked for allocations only. */
public class AllocationsOnly {
    static class Leaf {}

    static class Holder {
        Object held;

        Holder() {
            this(new Leaf()); // @inside
        }

        Holder(Object held) {
            this.held = held;
        }
    }

    static Object last;

    public static void main(String[] args) {
        for (int i = 0; i < 4; i++) {
            last = new Holder(); // @holder
            last = new Leaf[i][1]; // @table
        }
        try {
            throw new IllegalStateException();
        } catch (IllegalStateException expected) {
            System.out.println("allocations");
        }
    }
}
