// java: -Xss1m
/** Stack overflows where the hooks have no room either. */
public class Overflown {
    static int caught;

    static int down() {
        return down() + 1;
    }

    /** An array in each frame: its hook is where the stack ends. */
    static int arrays(int depth) {
        int[] array = {depth};
        return arrays(depth + 1) + array[0];
    }

    public static void main(String[] args) {
        for (int i = 0; i < 20; i++) {
            try {
                if (i % 2 == 0) {
                    down();
                } else {
                    arrays(0);
                }
            } catch (StackOverflowError error) {
                caught++;
            }
        }
        System.out.println(caught);
    }
}
