// not instrumented
// needs: 17
// library: Definers.c
// java: --add-exports java.base/jdk.internal.misc=ALL-UNNAMED

import java.io.InputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.security.ProtectionDomain;
import java.util.function.IntUnaryOperator;

/**
 * All ways in which Java code defines classes while it runs. {@code Copied} is defined several times. Not instrumented, so that
 * the class files it reads are as they were.
 */
public class Definers {
    static final int CALLS = 40;

    public interface Shape {
        Object made(int n);
    }

    /** Loaded as it is, too; its copies have the same name. */
    public static class Copied implements Shape {
        Object held;
        static Object last;

        public Object made(int n) {
            held = new int[n]; // @copied
            last = this;
            return held;
        }
    }

    /** Defines classes from bytes in one of the ways there are. */
    static class Custom extends ClassLoader {
        final int way;

        Custom(int way) {
            super(Definers.class.getClassLoader());
            this.way = way;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Definers$Copied")) {
                return super.loadClass(name, resolve);
            }
            Class<?> loaded = findLoadedClass(name);
            if (loaded != null) {
                return loaded;
            }
            byte[] bytes = bytes(name);
            switch (way) {
                case 0:
                    return defineClass(name, bytes, 0, bytes.length);
                case 1:
                    byte[] padded = new byte[bytes.length + 10];
                    System.arraycopy(bytes, 0, padded, 3, bytes.length);
                    return defineClass(name, padded, 3, bytes.length, (ProtectionDomain) null);
                case 2:
                    return defineClass(name, ByteBuffer.wrap(bytes), null);
                default:
                    ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length + 10);
                    direct.position(5);
                    direct.put(bytes);
                    direct.limit(direct.position()).position(5);
                    Class<?> defined = defineClass(name, direct, null);
                    System.out.println("direct buffer left at " + direct.position());
                    return defined;
            }
        }
    }

    static byte[] bytes(String name) {
        try (InputStream in = Definers.class.getResourceAsStream("/" + name.replace('.', '/') + ".class")) {
            return in.readAllBytes();
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    static Shape custom(int way) throws Exception {
        return (Shape) new Custom(way).loadClass("Definers$Copied").getConstructor().newInstance();
    }

    /** As libraries do that know no better; the class belongs to a package of its loader. */
    static Shape byUnsafe() throws Exception {
        Class<?> unsafe = Class.forName("jdk.internal.misc.Unsafe");
        byte[] bytes = bytes("Definers$Copied");
        Method define = unsafe.getMethod(
                "defineClass", String.class, byte[].class, int.class, int.class, ClassLoader.class, ProtectionDomain.class);
        ClassLoader loader = new ClassLoader(Definers.class.getClassLoader()) {};
        Object defined = define.invoke(
                unsafe.getMethod("getUnsafe").invoke(null), "Definers$Copied", bytes, 0, bytes.length, loader, null);
        return (Shape) ((Class<?>) defined).getConstructor().newInstance();
    }

    static native Class<?> define(ClassLoader loader, byte[] bytes);

    static Shape byJni() throws Exception {
        ClassLoader loader = new ClassLoader(Definers.class.getClassLoader()) {};
        return (Shape) define(loader, bytes("Definers$Copied")).getConstructor().newInstance();
    }

    static Shape hidden() throws Exception {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        byte[] bytes = bytes("Definers$Copied");
        Class<?> type = lookup.defineHiddenClass(bytes, true, MethodHandles.Lookup.ClassOption.NESTMATE).lookupClass();
        return (Shape) type.getConstructor().newInstance();
    }

    static Object proxied() {
        InvocationHandler handler = (proxy, method, arguments) -> method.getName() + arguments[0];
        Shape shape = (Shape) Proxy.newProxyInstance(Definers.class.getClassLoader(), new Class<?>[] {Shape.class}, handler);
        return shape.made(3);
    }

    public static Object reflected(int n) {
        return new long[n]; // @reflected
    }

    static void reflection() throws Exception {
        Method method = Definers.class.getMethod("reflected", int.class);
        for (int i = 0; i < CALLS; i++) {
            method.invoke(null, i);
        }
    }

    static void handles() throws Throwable {
        MethodHandle handle =
                MethodHandles.lookup().findStatic(Definers.class, "reflected", MethodType.methodType(Object.class, int.class));
        MethodHandle bound = MethodHandles.insertArguments(handle, 0, 7);
        MethodHandle filtered = MethodHandles.filterReturnValue(bound, MethodHandles.identity(Object.class));
        for (int i = 0; i < CALLS; i++) {
            Object result = filtered.invoke();
        }
    }

    static String concat(int n, Object o) {
        return "n=" + n + " o=" + o + '!';
    }

    static int lambdas(int n) {
        IntUnaryOperator plus = x -> x + n;
        IntUnaryOperator twice = x -> 2 * x;
        return plus.andThen(twice).applyAsInt(n);
    }

    /** What is no class is refused as ever. */
    static void malformed() {
        byte[] good = bytes("Definers$Copied");
        byte[] cut = java.util.Arrays.copyOf(good, good.length / 2);
        byte[] future = good.clone();
        future[7] = (byte) 200;
        byte[] noise = new byte[100];
        byte[] longer = java.util.Arrays.copyOf(good, good.length + 1);
        byte[] badName = new String(good, java.nio.charset.StandardCharsets.ISO_8859_1).replace("made", "ma;e")
                .getBytes(java.nio.charset.StandardCharsets.ISO_8859_1);
        for (byte[] bytes : new byte[][] {cut, future, noise, longer, badName, new byte[0]}) {
            try {
                new Defines().define(bytes, 0, bytes.length);
            } catch (LinkageError refused) {
                System.out.println(refused);
            }
            try {
                define(new Defines(), bytes);
            } catch (LinkageError refused) {
                System.out.println("native: " + refused);
            }
        }
        for (int[] range : new int[][] {{-1, 5}, {0, good.length + 1}, {5, -1}}) {
            try {
                new Defines().define(good, range[0], range[1]);
            } catch (IndexOutOfBoundsException refused) {
                System.out.println(refused);
            }
        }
        try {
            Defines twice = new Defines();
            twice.define(good, 0, good.length);
            twice.define(good, 0, good.length);
        } catch (LinkageError refused) {
            System.out.println(refused.toString().replaceAll("@[0-9a-f]+", "@"));
        }
    }

    static class Defines extends ClassLoader {
        Class<?> define(byte[] bytes, int offset, int length) {
            return defineClass(null, bytes, offset, length);
        }
    }

    public static void main(String[] args) throws Throwable {
        for (int way = 0; way < 4; way++) {
            System.out.println(custom(way).made(way + 1).getClass());
        }
        System.out.println(new Copied().made(9).getClass());
        System.loadLibrary("native");
        System.out.println(byUnsafe().made(8).getClass());
        System.out.println(byJni().made(9).getClass());
        System.out.println(hidden().made(5).getClass());
        System.out.println(hidden().made(6).getClass());
        System.out.println(proxied());
        reflection();
        handles();
        System.out.println(concat(3, "x") + concat(4, "y"));
        System.out.println(lambdas(4));
        malformed();
    }
}
