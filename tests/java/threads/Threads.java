/**
 * Threads THREADS TURNS own|shared: so many threads, which do so many turns in all, each of fifty small objects and fifty calls.
 * With `own` no thread ever sees an object of another; with `shared` all of them store into the same array, and call and change what
 * they find there.
 */
public class Threads {
    private static final int SIZE = 50;
    private static final Node[] SHARED = new Node[64];

    static final class Node {
        Node next;
        int value;

        Node(int value) {
            this.value = value;
        }

        int add(int more) {
            return value + more;
        }
    }

    static int own(int turns) {
        int sum = 0;
        for (int turn = 0; turn < turns; turn++) {
            Node last = null;
            for (int at = 0; at < SIZE; at++) {
                Node node = new Node(at);
                node.next = last;
                last = node;
                sum = node.add(sum);
            }
        }
        return sum;
    }

    static int shared(int turns) {
        int sum = 0;
        for (int turn = 0; turn < turns; turn++) {
            for (int at = 0; at < SIZE; at++) {
                Node node = new Node(at);
                Node other = SHARED[at];
                SHARED[at] = node;
                if (other != null) {
                    other.next = null;
                    sum = other.add(sum);
                }
            }
        }
        return sum;
    }

    public static void main(String[] args) throws InterruptedException {
        int turns = Integer.parseInt(args[1]);
        boolean shares = args[2].equals("shared");
        Thread[] threads = new Thread[Integer.parseInt(args[0])];
        int[] sums = new int[threads.length * 64];
        for (int index = 0; index < threads.length; index++) {
            int mine = index;
            int share = turns / threads.length + (index < turns % threads.length ? 1 : 0);
            threads[index] = new Thread(() -> sums[mine * 64] = shares ? shared(share) : own(share), "worker-" + index);
            threads[index].start();
        }
        int sum = 0;
        for (int index = 0; index < threads.length; index++) {
            threads[index].join();
            sum += sums[index * 64];
        }
        System.out.println(sum == 42 ? "done." : "done");
    }
}
