/** Makes known numbers of objects at known lines, of which some live. */
public class Sites {
    static final Object[] KEPT = new Object[100];

    static class Item {
        long a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t;
    }

    static Item item() {
        return new Item(); // line 10
    }

    public static void main(String[] arguments) {
        for (int round = 0; round < 2000; round++) {
            Item item = item();
            item.t = round;
            if (round < KEPT.length) {
                KEPT[round] = item;
            }
        }
        System.out.println("done");
    }
}
