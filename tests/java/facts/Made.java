import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;

/** Makes objects in every way there is, often enough for the compilers, a known number of times each. */
public class Made {
    static final int TIMES = 20_000;

    static class ByNew {}

    static class ByReflection {}

    static class ByClone implements Cloneable {
        @Override
        public ByClone clone() {
            try {
                return (ByClone) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static class Element {}

    static class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    static Object[] kept = new Object[64];

    static void keep(int i, Object object) {
        kept[i & 63] = object;
    }

    static void byBytecode() {
        for (int i = 0; i < TIMES; i++) {
            keep(i, new ByNew());
            keep(i, new Element[2]);
            keep(i, new Element[1][1][1]);
        }
    }

    static void byReflection() throws ReflectiveOperationException {
        for (int i = 0; i < TIMES; i++) {
            keep(i, ByReflection.class.getDeclaredConstructor().newInstance());
            keep(i, Array.newInstance(ByReflection.class, 3));
        }
    }

    static void byClone() {
        ByClone one = new ByClone();
        ByClone[] array = {one};
        for (int i = 0; i < TIMES; i++) {
            keep(i, one.clone());
            keep(i, array.clone());
            keep(i, Arrays.copyOf(array, 2));
            keep(i, Arrays.copyOfRange(array, 0, 1));
        }
    }

    static void byTheLibrary(int salt) {
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < TIMES; i++) {
            int n = i + salt + 1000;
            String text = "n" + n + " of " + TIMES;
            Supplier<Object> lambda = () -> text.length() + n;
            list.add(lambda.get());
            list.add(Long.valueOf(n));
            list.add(new StringBuilder().append(n).append(text).reverse().toString());
            list.add(String.format("%d", 1 + (n & 1)).concat(text.substring(1)));
            if (list.size() > 1000) {
                keep(i, list.toArray(new Object[0]));
                list.clear();
            }
        }
    }

    static int byTheVm() {
        int caught = 0;
        for (int i = 0; i < TIMES / 10; i++) {
            try {
                keep(i, ((Object[]) kept[99 + i]).length);
            } catch (ArrayIndexOutOfBoundsException e) {
                caught++;
            }
            try {
                throw new Failure();
            } catch (Failure e) {
                caught += e.getStackTrace().length > 0 ? 1 : 0;
            }
        }
        return caught;
    }

    public static void main(String[] args) throws Exception {
        byBytecode();
        byReflection();
        byClone();
        byTheLibrary(args.length);
        System.out.println(byTheVm());
    }
}
