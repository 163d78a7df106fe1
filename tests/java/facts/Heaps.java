import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;

/** A heap that changes between calls of mark: what et-trace heap shows of it is what the VM's own dump has. */
public class Heaps {
    static class Leaf {
        final int number;
        final long weight = 1;
        Leaf next;

        Leaf(int number) {
            this.number = number;
        }
    }

    static class Tree {
        final String name;
        Tree left;
        Tree right;
        Leaf[] leaves = new Leaf[5];
        double[] numbers = new double[100];

        Tree(String name, int depth) {
            this.name = name;
            if (depth > 0) {
                left = new Tree(name + "l", depth - 1);
                right = new Tree(name + "r", depth - 1);
            }
            for (int i = 0; i < 3; i++) {
                leaves[i] = new Leaf(i);
                leaves[i].next = i == 0 ? null : leaves[i - 1];
            }
        }
    }

    static class Holder {
        final Object[][] tables = new Object[4][8];
        Runnable task = () -> tables[0][0] = null;
    }

    static Tree root;
    static Map<String, Leaf> byName = new HashMap<>();
    static WeakReference<Leaf> weak;
    static Holder holder;

    static void mark() {}

    /** Before the first mark. */
    static void fill() {
        root = new Tree("t", 4);
        for (int i = 0; i < 100; i++) {
            byName.put("leaf " + i, new Leaf(i));
        }
        weak = new WeakReference<>(byName.get("leaf 7"));
        holder = new Holder();
    }

    /** Before the second mark. */
    static void cut() {
        root.left = null;
        for (int i = 0; i < 50; i++) {
            byName.remove("leaf " + i);
        }
    }

    /** Before the third. */
    static void grow() {
        for (int i = 0; i < 10; i++) {
            holder.tables[i % 4][i % 8] = new Tree("grown", 1);
        }
    }

    static void dump() throws Exception {
        File file = new File("vm.hprof");
        file.delete();
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(file.getPath(), true);
    }

    public static void main(String[] args) throws Exception {
        fill();
        mark();
        cut();
        mark();
        grow();
        // Classes of the dumper are loaded before.
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        mark();
        dump();
        mark();
    }
}
