import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.util.Arrays;

/**
 * Loads and links (so verifies) each class of a folder that is not too new, and compares what its main prints with
 * the original's.
 */
public class LinkAll {
    public static void main(String[] args) throws Exception {
        File originals = new File(args[0]);
        File rewritten = new File(args[1]);
        String[] files = rewritten.list();
        Arrays.sort(files);
        int newest = Integer.parseInt(System.getProperty("java.specification.version")) + 44;
        int linked = 0;
        int skipped = 0;
        int run = 0;
        for (String file : files) {
            String name = file.replace(".class", "");
            if (Files.readAllBytes(new File(rewritten, file).toPath())[7] > newest) {
                skipped++;
                continue;
            }
            try {
                Class<?> type = load(rewritten, name);
                // Reflection over the methods links the class first.
                type.getDeclaredMethods();
                linked++;
                Method main = mainOf(type);
                if (main != null) {
                    String expected = output(mainOf(load(originals, name)));
                    String found = output(main);
                    if (!found.equals(expected)) {
                        System.out.println("FAILED " + name + ": printed [" + found + "], the original [" + expected + "]");
                    }
                    run++;
                }
            } catch (Throwable error) {
                System.out.println("FAILED " + name + ": " + error.toString().replaceAll("\\s+", " "));
            }
        }
        System.out.println("linked " + linked + " skipped " + skipped + " run " + run);
    }

    private static Class<?> load(File folder, String name) throws Exception {
        return Class.forName(name, false, new URLClassLoader(new URL[] {folder.toURI().toURL()}, null));
    }

    private static Method mainOf(Class<?> type) {
        try {
            return type.getDeclaredMethod("main", String[].class);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    private static String output(Method main) throws Throwable {
        PrintStream before = System.out;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        System.setOut(new PrintStream(bytes, true));
        try {
            main.setAccessible(true);
            main.invoke(null, (Object) new String[0]);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        } finally {
            System.setOut(before);
        }
        return bytes.toString();
    }
}
