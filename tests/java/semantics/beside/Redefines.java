import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;

/** An agent that gives a class that runs the bytes it had before it was rewritten. */
public class Redefines {
    static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    static class Item {}

    static class Target {
        Item held;

        Item make() {
            held = new Item();
            return held;
        }

        /** Redefines the class of the frame it runs in. */
        Item around(Path classFile) throws Exception {
            held = null;
            instrumentation.redefineClasses(new ClassDefinition(Target.class, Files.readAllBytes(classFile)));
            return make();
        }
    }

    public static void main(String[] args) throws Exception {
        Path plain = Path.of(args[0], "Redefines$Target.class");
        Target target = new Target();
        for (int i = 0; i < 50; i++) {
            target.make();
        }
        target.around(plain);
        for (int i = 0; i < 49; i++) {
            target.make();
        }
        instrumentation.redefineClasses(new ClassDefinition(Target.class, Files.readAllBytes(plain)));
        System.out.println(target.make() == target.held);
    }
}
