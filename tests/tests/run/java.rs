//! Test programs.

/// Allocates an object of its own class and prints its arguments.
pub const MAIN: &str = "
import java.util.*;
public class Main {
    static class Leaf {}
    public static void main(String[] arguments) {
        System.out.println(Arrays.toString(arguments) + new Leaf().getClass().getName());
    }
}";

/// Reads its input and exits with 7.
pub const READER: &str = "
public class Reader {
    static class Line { final String text; Line(String text) { this.text = text; } }
    public static void main(String[] arguments) throws Exception {
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        String text;
        while ((text = in.readLine()) != null) System.out.println(new Line(text).text.length());
        System.err.println(\"on stderr\");
        System.exit(7);
    }
}";

/// Prints a line, and waits until a signal ends it.
pub const WAITING: &str = "
public class Waiting {
    public static void main(String[] arguments) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> { System.out.println(\"ended\"); System.out.flush(); }));
        System.out.println(\"ready\");
        Thread.sleep(60_000);
    }
}";

/// Uses two libraries, and prints resources that it finds.
pub const APP: &str = "
public class App {
    static class Own {}
    public static void main(String[] arguments) throws Exception {
        System.out.println(new Own().getClass() + \" \" + new one.One() + \" \" + new two.Two());
        var found = App.class.getClassLoader().getResources(\"settings.txt\");
        while (found.hasMoreElements()) {
            try (var in = found.nextElement().openStream()) { System.out.print(new String(in.readAllBytes())); }
        }
    }
}";
pub const ONE: &str = "package one; public class One { public String toString() { return \"one\"; } }";
pub const TWO: &str = "package two; public class Two { public String toString() { return \"two\"; } }";

/// A launcher like Spring Boot's, which reads the libraries nested in its own jar.
pub const LAUNCHER: &str = "
package boot;
import java.io.*;
import java.util.*;
import java.util.jar.*;
public class Launcher extends ClassLoader {
    final Map<String, byte[]> classes = new HashMap<>();
    Launcher() { super(null); }
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        byte[] bytes = classes.get(name.replace('.', '/') + \".class\");
        if (bytes == null) throw new ClassNotFoundException(name);
        return defineClass(name, bytes, 0, bytes.length);
    }
    public static void main(String[] arguments) throws Exception {
        Launcher loader = new Launcher();
        File own = new File(Launcher.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (JarFile jar = new JarFile(own)) {
            for (JarEntry entry : Collections.list(jar.entries())) {
                String name = entry.getName();
                if (name.startsWith(\"BOOT-INF/classes/\") && !entry.isDirectory()) {
                    try (InputStream in = jar.getInputStream(entry)) {
                        loader.classes.put(name.substring(17), in.readAllBytes());
                    }
                } else if (name.startsWith(\"BOOT-INF/lib/\") && name.endsWith(\".jar\")) {
                    JarInputStream in = new JarInputStream(jar.getInputStream(entry));
                    JarEntry inner;
                    while ((inner = in.getNextJarEntry()) != null) loader.classes.put(inner.getName(), in.readAllBytes());
                }
            }
            String start = jar.getManifest().getMainAttributes().getValue(\"Start-Class\");
            Class<?> main = loader.loadClass(start);
            main.getMethod(\"main\", String[].class).invoke(null, (Object) arguments);
        }
    }
}";

/// The same as App, without resources.
pub const BOOTED: &str = "
public class Booted {
    public static void main(String[] arguments) {
        System.out.println(new one.One() + \" \" + new two.Two() + arguments.length);
    }
}";

/// An agent that counts what it sees.
pub const AGENT: &str = "
package agent;
public class Agent {
    static class Seen {}
    public static void premain(String options, java.lang.instrument.Instrumentation instrumentation) {
        System.out.println(\"agent \" + options + \" \" + new Seen().getClass().getName());
    }
}";
