import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.util.function.Supplier;

/** Makes {@value #LOADERS} loaders, each with a class, its lambda and a proxy, and keeps none of them. */
public class Loaders {
    static final int LOADERS = 500;
    static final int BETWEEN_COLLECTIONS = 10;
    /** The runtime learns of what was unloaded some time after it was. */
    static final int PATIENCE_MILLIS = 300;

    /** Is defined anew by each loader. */
    public static class Template implements Supplier<int[]> {
        static Object last;
        Object field = new int[10];

        public int[] get() {
            last = new Template();
            Supplier<int[]> lambda = () -> (int[]) field;
            return lambda.get();
        }
    }

    static class Loader extends ClassLoader {
        Loader() {
            super(Loaders.class.getClassLoader());
        }

        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    static int use(byte[] bytes) throws Exception {
        Loader loader = new Loader();
        Supplier<?> made = (Supplier<?>) loader.define(bytes).getDeclaredConstructor().newInstance();
        Object proxy = Proxy.newProxyInstance(loader, new Class<?>[] { Supplier.class }, (self, method, arguments) -> made.get());
        return ((int[]) ((Supplier<?>) proxy).get()).length;
    }

    public static void main(String[] arguments) throws Exception {
        byte[] bytes;
        try (InputStream in = Loaders.class.getResourceAsStream("Loaders$Template.class")) {
            bytes = in.readAllBytes();
        }
        int sum = 0;
        for (int i = 1; i <= LOADERS; i++) {
            sum += use(bytes);
            if (i % BETWEEN_COLLECTIONS == 0) {
                System.gc();
            }
        }
        Thread.sleep(PATIENCE_MILLIS);
        System.out.println(sum);
    }
}
