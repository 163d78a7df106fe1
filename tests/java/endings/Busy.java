import java.util.Random;

/** Prints, makes events, ends with a code of its own. With `wait` it stands still in between until a line comes in. */
public class Busy {
    static class Node {
        Node next;
        Object what;
    }

    static Node[] table = new Node[512];

    static void hang(int at, int from) {
        Node node = new Node();
        // The other thread may find the node in the table and clear its field: looked at once.
        Node next = table[from];
        node.next = next;
        node.what = "what";
        table[at] = node;
        if (next != null) {
            next.next = null;
        }
    }

    static void work(int turns, int seed) {
        Random random = new Random(seed);
        for (int turn = 0; turn < turns; turn++) {
            hang(random.nextInt(512), random.nextInt(512));
        }
    }

    public static void main(String[] args) throws Exception {
        Runnable first = () -> work(2000, 1);
        first.run();
        System.out.println("ready");
        if (args.length > 1 && args[1].equals("wait")) {
            System.in.read();
        }
        int turns = Integer.parseInt(args[0]);
        Thread other = new Thread(() -> work(turns, 2), "other");
        other.start();
        work(turns, 3);
        other.join();
        int live = 0;
        for (Node node : table) {
            live += node == null ? 0 : 1;
        }
        System.out.println("done " + (live > 0));
        System.exit(7);
    }
}
