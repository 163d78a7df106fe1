/** A second program, which dies and comes back. It ends by itself after ten minutes. */
public class Mill {
    public static void main(String[] arguments) throws Exception {
        System.out.println("open");
        long end = System.nanoTime() + 600_000_000_000L;
        long sum = 0;
        while (System.nanoTime() < end) {
            sum += new int[1000].length;
            Thread.sleep(5);
        }
        System.out.println(sum);
    }
}
