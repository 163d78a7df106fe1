/** Returns objects that nobody keeps: more than the heap has room for, in one call of main. */
public final class Returns {
    static byte[] make() {
        return new byte[1000];
    }

    public static void main(String[] args) {
        long sum = 0;
        for (int count = 0; count < 60_000; count++) {
            sum += make().length;
        }
        System.out.println(sum);
    }
}
