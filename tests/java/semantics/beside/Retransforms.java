import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/** An agent that looks at classes, transforms and redefines them, and the program that it is for. */
public class Retransforms {
    static Instrumentation instrumentation;
    static final Set<String> SEEN = ConcurrentHashMap.newKeySet();

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
        given.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] bytes) {
                if (name != null && (name.startsWith("Retransforms") || name.equals("java/util/ArrayList"))) {
                    SEEN.add(name + " " + (type != null));
                    return type == null ? null : bytes;
                }
                return null;
            }
        }, true);
    }

    static class Target {
        Object field = new Object();

        Object make() {
            return new Object[] {field};
        }
    }

    public static void main(String[] args) throws Exception {
        Target target = new Target();
        target.make();
        instrumentation.retransformClasses(Target.class, ArrayList.class);
        System.out.println(target.make() != null && new ArrayList<>(Set.of(1)).contains(1));
        try (InputStream in = Retransforms.class.getResourceAsStream("Retransforms$Target.class")) {
            instrumentation.redefineClasses(new ClassDefinition(Target.class, in.readAllBytes()));
        }
        System.out.println(new Target().make() != null);
        System.out.println(new TreeSet<>(SEEN));
        System.out.println(instrumentation.getObjectSize(new Object[10]) > 40);
    }
}
