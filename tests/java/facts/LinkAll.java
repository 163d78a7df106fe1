import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Links, and so verifies, classes, and writes down how each came out: jar, class, and {@code linked} or the error,
 * separated by tabs.
 *
 * <pre>
 * LinkAll REPORT                               every class of the JDK it runs on
 * LinkAll REPORT JAR... [-neighbours JAR...]   every class of the jars, each jar with a loader of its own that finds
 *                                              the rest in the other jars
 * </pre>
 */
public class LinkAll {
    public static void main(String[] args) throws IOException {
        List<File> jars = new ArrayList<>();
        List<File> all = new ArrayList<>();
        for (int i = 1, own = 1; i < args.length; i++) {
            if (args[i].equals("-neighbours")) {
                own = 0;
                continue;
            }
            all.add(new File(args[i]));
            if (own == 1) {
                jars.add(new File(args[i]));
            }
        }
        try (PrintWriter report = new PrintWriter(args[0], StandardCharsets.UTF_8)) {
            if (jars.isEmpty()) {
                link("jdk", ofTheJdk(), LinkAll.class.getClassLoader(), report);
            }
            // Kept open: a jar's directory is then read once, however many loaders look into it.
            List<JarFile> open = new ArrayList<>();
            for (File jar : all) {
                open.add(new JarFile(jar));
            }
            for (File jar : jars) {
                List<URL> urls = new ArrayList<>();
                urls.add(jar.toURI().toURL());
                for (File other : all) {
                    if (!other.equals(jar)) {
                        urls.add(other.toURI().toURL());
                    }
                }
                URL[] path = urls.toArray(new URL[0]);
                try (URLClassLoader loader = new URLClassLoader(path, ClassLoader.getPlatformClassLoader())) {
                    link(jar.getName(), ofAJar(jar), loader, report);
                }
            }
            for (JarFile jar : open) {
                jar.close();
            }
        }
    }

    private static void link(String where, Iterable<String> names, ClassLoader loader, PrintWriter report) {
        for (String file : names) {
            String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
            if (!name.endsWith("module-info") && !name.endsWith("package-info")) {
                report.println(where + "\t" + name + "\t" + outcome(name, loader));
            }
        }
        report.flush();
    }

    private static String outcome(String name, ClassLoader loader) {
        try {
            Class<?> type = Class.forName(name, false, loader);
            // Each of these links a class, does not initialise it, and then fails if a type it mentions is missing.
            try {
                type.getDeclaredFields();
            } catch (NoClassDefFoundError mayHaveLinked) {
                try {
                    type.getDeclaredConstructors();
                } catch (NoClassDefFoundError stillUnknown) {
                    type.getDeclaredMethods();
                }
            }
            return "linked";
        } catch (Throwable error) {
            return error.toString().replaceAll("\\s+", " ");
        }
    }

    private static List<String> ofTheJdk() throws IOException {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        try (Stream<Path> files = Files.walk(modules)) {
            return files.filter(path -> path.toString().endsWith(".class"))
                    .map(path -> path.subpath(2, path.getNameCount()).toString())
                    .collect(Collectors.toList());
        }
    }

    /** Those for newer Java versions included: the loader takes the one for this version. */
    private static TreeSet<String> ofAJar(File file) throws IOException {
        TreeSet<String> names = new TreeSet<>();
        try (JarFile jar = new JarFile(file)) {
            for (JarEntry entry : java.util.Collections.list(jar.entries())) {
                String name = entry.getName();
                if (jar.isMultiRelease() && name.startsWith("META-INF/versions/")) {
                    int release = name.indexOf('/', "META-INF/versions/".length());
                    name = release < 0 ? name : name.substring(release + 1);
                }
                if (name.endsWith(".class") && !name.startsWith("META-INF/")) {
                    names.add(name);
                }
            }
        }
        return names;
    }
}
