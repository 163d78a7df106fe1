import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** The agent of its own jar: `Launcher-Agent-Class`. Its classes and lambdas can be archived as well. */
public class Launched {
    static Instrumentation seen;

    public static void agentmain(String args, Instrumentation instrumentation) {
        seen = instrumentation;
    }

    static class Leaf {
        Leaf next;
    }

    public static void main(String[] args) {
        List<Supplier<Leaf>> makers = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            Leaf before = new Leaf();
            makers.add(() -> {
                Leaf leaf = new Leaf();
                leaf.next = before;
                return leaf;
            });
        }
        System.out.println(makers.stream().map(Supplier::get).filter(leaf -> leaf.next.next == null).count());
        System.out.println(seen == null ? "no agent" : "sized " + (seen.getObjectSize(new Leaf()) > 0));
    }
}
