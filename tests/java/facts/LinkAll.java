import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Links, and so verifies, every class of the JDK it runs on, or of the jars given; prints those that the verifier
 * refuses. Classes whose neighbours are missing link as far as they can.
 */
public class LinkAll {
    public static void main(String[] args) throws IOException {
        ClassLoader loader = LinkAll.class.getClassLoader();
        List<String> names = new ArrayList<>();
        if (args.length == 0) {
            names.addAll(ofTheJdk());
        } else {
            URL[] urls = new URL[args.length];
            for (int i = 0; i < args.length; i++) {
                urls[i] = new File(args[i]).toURI().toURL();
                try (JarFile jar = new JarFile(args[i])) {
                    jar.stream().map(entry -> entry.getName())
                            .filter(name -> name.endsWith(".class") && !name.startsWith("META-INF/"))
                            .forEach(names::add);
                }
            }
            loader = new URLClassLoader(urls, loader);
        }
        List<String> refused = new ArrayList<>();
        int linked = 0;
        for (String file : names) {
            String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
            if (name.endsWith("module-info") || name.endsWith("package-info")) {
                continue;
            }
            try {
                // Asking for its fields links a class and does not initialise it.
                Class.forName(name, false, loader).getDeclaredFields();
                linked++;
            } catch (VerifyError | ClassFormatError e) {
                refused.add(name + ": " + e);
            } catch (Throwable missingNeighbour) {
                // It refers to what is not there, also without us.
            }
        }
        Collections.sort(refused);
        refused.forEach(System.out::println);
        System.out.println(linked + " linked, " + refused.size() + " refused");
    }

    private static List<String> ofTheJdk() throws IOException {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        try (Stream<Path> files = Files.walk(modules)) {
            return files.filter(path -> path.toString().endsWith(".class"))
                    .map(path -> path.subpath(2, path.getNameCount()).toString())
                    .collect(Collectors.toList());
        }
    }
}
