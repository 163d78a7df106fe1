import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Reflection sees what the source says, in its order, and nothing that rewriting added. */
public class Reflected {
    static class Busy<T extends Comparable<T>> {
        private final T value;
        protected static Object shared = new Object();
        volatile int[][] table = new int[2][3];

        Busy(T value) {
            this.value = value;
        }

        @Deprecated
        synchronized T replace(@SuppressWarnings("x") final T other, long... more) throws java.io.IOException {
            Runnable task = () -> shared = other;
            task.run();
            return value;
        }

        static <E extends Exception> void fail(E error) throws E {
            try {
                throw error;
            } finally {
                shared = error;
            }
        }
    }

    interface Shape {
        double area();

        default Object self() {
            return this;
        }
    }

    enum Size implements Shape {
        SMALL, LARGE;

        @Override
        public double area() {
            return ordinal();
        }
    }

    static class Other extends Thread {
        int etPos = 7;
    }

    static void show(Class<?> type) {
        System.out.println(type.toGenericString() + " " + type.getModifiers() + " " + Arrays.toString(type.getInterfaces())
            + " " + Arrays.toString(type.getAnnotations()) + " " + type.getEnclosingClass() + " " + type.getNestHost());
        for (Field field : type.getDeclaredFields()) {
            System.out.println("  " + field.toGenericString() + " " + field.isSynthetic());
        }
        for (Constructor<?> constructor : type.getDeclaredConstructors()) {
            System.out.println("  " + constructor.toGenericString() + parameters(constructor.getParameters()));
        }
        Method[] methods = type.getDeclaredMethods();
        Arrays.sort(methods, (one, other) -> one.toString().compareTo(other.toString()));
        for (Method method : methods) {
            System.out.println("  " + method.toGenericString() + parameters(method.getParameters()) + " " + method.isSynthetic()
                + Arrays.toString(method.getAnnotations()));
        }
    }

    static String parameters(Parameter[] parameters) {
        return Arrays.stream(parameters).map(one -> one.toString() + one.isSynthetic()).collect(Collectors.joining(",", "(", ")"));
    }

    /** Members of classes of the JDK, as a number each: there are many. */
    static void count(Class<?> type) {
        String members = Stream.of(type.getDeclaredFields(), type.getDeclaredConstructors(), type.getDeclaredMethods())
            .flatMap(Arrays::stream).map(Object::toString).sorted().collect(Collectors.joining("\n"));
        System.out.println(type.getName() + " " + Integer.toHexString(members.hashCode()));
    }

    public static void main(String[] args) throws Exception {
        for (Class<?> type : List.of(Busy.class, Shape.class, Size.class, Other.class, Reflected.class)) {
            show(type);
        }
        Other other = new Other();
        System.out.println(other.etPos + " " + Other.class.getDeclaredField("etPos").get(other));
        for (String name : List.of("etPos", "etEnd", "etTicket", "etSite", "etEvents")) {
            try {
                System.out.println("Thread has " + Thread.class.getDeclaredField(name));
            } catch (NoSuchFieldException expected) {
                System.out.println("no " + expected.getMessage());
            }
        }
        for (Field field : Thread.class.getDeclaredFields()) {
            System.out.println(field);
        }
        for (String part : List.of("java.lang", "java.util")) {
            Path folder = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules", "java.base", part.replace('.', '/'));
            // To walk through the whole image takes longer than all the rest.
            try (Stream<Path> files = Files.list(folder)) {
                List<String> names = files.map(file -> file.getFileName().toString())
                    .filter(name -> name.matches("\\w+\\.class") && !name.contains("HeapProxy")).sorted()
                    .collect(Collectors.toList());
                for (String name : names) {
                    count(Class.forName(part + '.' + name.substring(0, name.length() - 6), false, null));
                }
            }
        }
    }
}
