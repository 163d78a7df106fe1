import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/** {@code Loaders unloaded|kept COUNT}: so many class loaders, each of which defines a class of its own. */
public class Loaders {
    /** What each loader defines. */
    public static final class Work implements IntUnaryOperator {
        private Integer last;

        @Override
        public int applyAsInt(int number) {
            int sum = 0;
            for (int i = 0; i < 10; i++) {
                last = Integer.valueOf(1_000 + number + i);
                sum += last;
            }
            return sum;
        }
    }

    static final class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass(Work.class.getName(), bytes, 0, bytes.length);
        }
    }

    public static void main(String[] arguments) throws Exception {
        boolean areKept = arguments[0].equals("kept");
        int count = Integer.parseInt(arguments[1]);
        List<Object> kept = new ArrayList<>();
        byte[] bytes;
        try (InputStream in = Loaders.class.getResourceAsStream("Loaders$Work.class")) {
            bytes = in.readAllBytes();
        }
        long sum = 0;
        for (int i = 0; i < count; i++) {
            Object work = new Loader().define(bytes).getDeclaredConstructor().newInstance();
            sum += ((IntUnaryOperator) work).applyAsInt(i);
            if (areKept) {
                kept.add(work);
            } else if (i % 500 == 499) {
                System.gc();
            }
        }
        System.out.println("check " + sum + " " + kept.size());
    }
}
