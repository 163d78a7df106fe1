import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A default serialVersionUID is a hash over the members of a class: what rewriting adds must not count. */
public class SerialVersions {
    static class Plain implements Serializable {
        int number = 1;
        String text = "a";
        transient Object left = new Object();
    }

    static class WithInitializer implements Serializable {
        static final List<Object> ALL = new ArrayList<>();

        static {
            ALL.add("x");
        }

        private Object own = ALL;

        private void hidden() {}

        public Object seen() {
            return (Runnable & Serializable) () -> System.out.println(own);
        }
    }

    static class Sub extends Plain implements Comparable<Sub> {
        Plain other = new Plain();

        Sub() {
            super();
        }

        private Sub(int number) {
            this.number = number;
        }

        @Override
        public int compareTo(Sub that) {
            return number - that.number;
        }

        @Override
        protected void finalize() {}
    }

    interface Named extends Serializable {
        Object NAME = new Object();

        default String name() {
            return NAME.toString();
        }
    }

    enum Colour implements Named {
        RED,
        GREEN {
            @Override
            public String name2() {
                return "g";
            }
        };

        public String name2() {
            return name();
        }
    }

    static class MyThread extends Thread implements Serializable {
        Object etPos;
    }

    class Inner implements Serializable {
        Object outer = SerialVersions.this.getClass();
    }

    static boolean hasOwn(Class<?> type) {
        try {
            return type.getDeclaredField("serialVersionUID") != null;
        } catch (NoSuchFieldException computed) {
            return false;
        }
    }

    static void print(Class<?> type) {
        ObjectStreamClass description = ObjectStreamClass.lookup(type);
        if (description != null) {
            System.out.println(type.getName() + " " + Long.toHexString(description.getSerialVersionUID()) + " "
                + List.of(description.getFields()));
        }
    }

    /** Those of one package: to walk through the whole image takes longer than all the rest. */
    static List<String> classesOf(String name) throws Exception {
        Path folder = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules", "java.base", name.replace('.', '/'));
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString())
                .filter(file -> file.endsWith(".class") && !file.contains("HeapProxy"))
                .map(file -> name + '.' + file.substring(0, file.length() - 6)).sorted().collect(Collectors.toList());
        }
    }

    public static void main(String[] args) throws Exception {
        for (Class<?> type : SerialVersions.class.getDeclaredClasses()) {
            System.out.println("declared " + type.getName());
        }
        List.of(Plain.class, WithInitializer.class, Sub.class, Named.class, Colour.class, MyThread.class, Inner.class)
            .forEach(SerialVersions::print);
        print(new Object[0].getClass());
        // Classes of the JDK without a number of their own.
        for (String part : List.of("java.lang", "java.lang.invoke", "java.io", "java.net", "java.security", "java.text",
                "java.time", "java.util", "java.util.concurrent")) {
            for (String name : classesOf(part)) {
                Class<?> type = Class.forName(name, false, null);
                if (Serializable.class.isAssignableFrom(type) && !type.isEnum() && !hasOwn(type)) {
                    print(type);
                }
            }
        }
        HashMap<String, Object> map = new HashMap<>();
        map.put("sub", new Sub());
        map.put("colour", Colour.GREEN);
        map.put("error", new IllegalStateException("kept"));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(map);
        }
        Object read = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
        System.out.println(((HashMap<?, ?>) read).keySet().stream().sorted().collect(Collectors.toList()) + " " + bytes.size());
        ((Throwable) ((HashMap<?, ?>) read).get("error")).printStackTrace(System.out);
    }
}
