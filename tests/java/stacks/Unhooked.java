import java.lang.reflect.Constructor;

// no expectations: tests/tests/stacks.rs says what is on which line

/** Objects that code without hooks makes: a class that is left out, native code, and the VM. */
public class Unhooked {
    static final int TIMES = 10;

    static class Leaf { }

    /** Left out. */
    static class Plain {
        final Leaf leaf = new Leaf();

        static Leaf make() {
            return new Leaf();
        }
    }

    /** Its constructor calls one without hooks. */
    static class Derived extends Plain { }

    public static void main(String[] args) throws Exception {
        int thrown = 0;
        Constructor<Leaf> constructor = Leaf.class.getDeclaredConstructor();
        for (int i = 0; i < TIMES; i++) {
            new Plain();
            new Derived();
            Plain.make();
            constructor.newInstance();
            thrown += thrown(null) + thrown(new int[0]);
        }
        System.out.println(thrown);
    }

    static int thrown(int[] array) {
        try {
            return array[0];
        } catch (NullPointerException | ArrayIndexOutOfBoundsException e) {
            return 1;
        }
    }
}
