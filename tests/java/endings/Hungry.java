/** Takes memory until there is none. */
public class Hungry {
    static class Piece {
        Piece before;
        long[] weight = new long[1000];
    }

    static Piece last;

    public static void main(String[] args) {
        System.out.println("ready");
        while (true) {
            Piece piece = new Piece();
            piece.before = last;
            last = piece;
        }
    }
}
