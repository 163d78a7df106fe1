import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;

/** Ways to make and to change objects, each so often that C2 compiles it. Every method counts its turns. */
public class Hot {
    static final int TURNS = 20_000;

    static class Leaf implements Cloneable {
        Object held;

        Leaf copy() {
            try {
                return (Leaf) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static class Twig {}

    static class Bough {}

    static long sum;

    static void arrayClone(Leaf[] leaves) {
        for (int i = 0; i < TURNS; i++) {
            sum += leaves.clone().length;
        }
    }

    static void numbersClone(long[] numbers) {
        for (int i = 0; i < TURNS; i++) {
            sum += numbers.clone().length;
        }
    }

    static void objectClone(Leaf leaf) {
        for (int i = 0; i < TURNS; i++) {
            sum += leaf.copy().held == null ? 0 : 1;
        }
    }

    static void newInstance() {
        for (int i = 0; i < TURNS; i++) {
            sum += ((Leaf[]) Array.newInstance(Leaf.class, 2)).length;
        }
    }

    static void copyOf(Leaf[] leaves) {
        for (int i = 0; i < TURNS; i++) {
            sum += Arrays.copyOf(leaves, 1).length;
        }
    }

    static void copyOfRange(Leaf[] leaves) {
        for (int i = 0; i < TURNS; i++) {
            sum += Arrays.copyOfRange(leaves, 1, 3).length;
        }
    }

    static void copyOfNumbers(long[] numbers) {
        for (int i = 0; i < TURNS; i++) {
            sum += Arrays.copyOf(numbers, 7).length;
        }
    }

    static void boxes() {
        for (int i = 0; i < TURNS; i++) {
            Long box = 1000L + i;
            sum += box;
        }
    }

    static void varargs() {
        for (int i = 0; i < TURNS; i++) {
            sum += count(null, null);
        }
    }

    static int count(Leaf... leaves) {
        return leaves.length;
    }

    static void builders() {
        for (int i = 0; i < TURNS; i++) {
            sum += new StringBuilder().append("turn ").append(i).toString().length();
        }
    }

    static void concatenations() {
        for (int i = 0; i < TURNS; i++) {
            sum += ("turn " + i).length();
        }
    }

    static void wideStrings(char[] wide) {
        for (int i = 0; i < TURNS; i++) {
            sum += new String(wide).length();
        }
    }

    static void nullPointers(Leaf none) {
        for (int i = 0; i < TURNS; i++) {
            try {
                sum += none.held == null ? 0 : 1;
            } catch (NullPointerException e) {
                sum++;
            }
        }
    }

    static void reflection(Constructor<Twig> constructor) throws Exception {
        for (int i = 0; i < TURNS; i++) {
            sum += constructor.newInstance() == null ? 0 : 1;
        }
    }

    static void handles(MethodHandle constructor) throws Throwable {
        for (int i = 0; i < TURNS; i++) {
            sum += (Bough) constructor.invokeExact() == null ? 0 : 1;
        }
    }

    static void arraycopies(Leaf[] from, Leaf[] to) {
        for (int i = 0; i < TURNS; i++) {
            System.arraycopy(from, i & 1, to, 0, 1);
        }
    }

    static void references(AtomicReference<Object> reference, Leaf a, Leaf b) {
        for (int i = 0; i < TURNS; i++) {
            sum += reference.compareAndSet(a, b) ? 1 : 0;
            sum += reference.getAndSet(a) == b ? 1 : 0;
        }
    }

    public static void main(String[] args) throws Throwable {
        Leaf a = new Leaf();
        Leaf b = new Leaf();
        Constructor<Twig> constructor = Twig.class.getDeclaredConstructor();
        MethodHandle handle = MethodHandles.lookup().findConstructor(Bough.class, MethodType.methodType(void.class));
        arrayClone(new Leaf[] {a, null, b});
        numbersClone(new long[3]);
        objectClone(a);
        newInstance();
        copyOf(new Leaf[] {a, null, b});
        copyOfRange(new Leaf[] {a, null, b});
        copyOfNumbers(new long[5]);
        boxes();
        varargs();
        builders();
        concatenations();
        wideStrings(new char[] {'\u20ac', 'x'});
        nullPointers(null);
        reflection(constructor);
        handles(handle);
        arraycopies(new Leaf[] {a, b}, new Leaf[1]);
        references(new AtomicReference<>(a), a, b);
        System.out.println("hot " + sum);
    }
}
