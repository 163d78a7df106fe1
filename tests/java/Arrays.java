/** Arrays of every element type, their lengths, inner arrays, and what they hold from the start. */
public class Arrays {
    static class Leaf {}

    static void kinds() {
        boolean[] z = new boolean[1]; // @boolean
        byte[] b = new byte[2]; // @byte
        char[] c = new char[3]; // @char
        short[] s = new short[4]; // @short
        int[] i = new int[5]; // @int
        long[] j = new long[6]; // @long
        float[] f = new float[7]; // @float
        double[] d = new double[8]; // @double
        Leaf[] l = new Leaf[9]; // @leaf
        int[][] m = new int[10][]; // @outerOnly
        Object[] none = new Object[0]; // @none
    }
    /* expect kinds
     * A #1 boolean[1] @boolean
     * A #2 byte[2] @byte
     * A #3 char[3] @char
     * A #4 short[4] @short
     * A #5 int[5] @int
     * A #6 long[6] @long
     * A #7 float[7] @float
     * A #8 double[8] @double
     * A #9 Leaf[9] @leaf
     * A #10 int[10][] @outerOnly
     * A #11 java.lang.Object[0] @none
     */

    /** The sizes of the VM: 16 bytes of header, elements, rounded up to 8. */
    static void sizes() {
        byte[] nothing = new byte[0]; // @nothing
        byte[] little = new byte[1]; // @little
        long[] longs = new long[3]; // @longs
        Object[] references = new Object[3]; // @references
    }
    /* expect sizes size
     * A #1 byte[0] @nothing size=16
     * A #2 byte[1] @little size=24
     * A #3 long[3] @longs size=40
     * A #4 java.lang.Object[3] @references size=32
     */

    static void initialised() {
        Object[] pair = {new Leaf(), null}; // @pair
        int[] numbers = {1, 2, 3}; // @numbers
    }
    /* expect initialised
     * A #1 java.lang.Object[2] @pair
     * N #2 Leaf @pair
     * M Leaf.<init> #2
     * E Leaf.<init> #2
     * U #1[0] null -> #2
     * U #1[1] null -> null
     * A #3 int[3] @numbers
     */

    static void twoDimensions() {
        int[][] table = new int[2][3]; // @table
    }
    /* expect twoDimensions
     * A #1 int[2][] @table
     * A #2 int[3] @table
     * U #1[0] null -> #2
     * A #3 int[3] @table
     * U #1[1] null -> #3
     */

    /** The third dimension is not made; the second is empty in one case. */
    static void someDimensions() {
        Leaf[][][] cube = new Leaf[1][2][]; // @cube
        Leaf[][][] flat = new Leaf[2][0][5]; // @flat
    }
    /* expect someDimensions
     * A #1 Leaf[1][][] @cube
     * A #2 Leaf[2][] @cube
     * U #1[0] null -> #2
     * A #3 Leaf[2][][] @flat
     * A #4 Leaf[0][] @flat
     * U #3[0] null -> #4
     * A #5 Leaf[0][] @flat
     * U #3[1] null -> #5
     */

    static void threeDimensions() {
        long[][][] cube = new long[2][1][4]; // @longCube
    }
    /* expect threeDimensions
     * A #1 long[2][][] @longCube
     * A #2 long[1][] @longCube
     * A #3 long[4] @longCube
     * U #2[0] null -> #3
     * U #1[0] null -> #2
     * A #4 long[1][] @longCube
     * A #5 long[4] @longCube
     * U #4[0] null -> #5
     * U #1[1] null -> #4
     */

    static void negative(int length) {
        try {
            Object[] never = new Object[length]; // @never
        } catch (NegativeArraySizeException expected) {
            return;
        }
    }

    static int variable(int... values) {
        return values.length;
    }

    static void variableArguments() {
        variable(1, 2); // @variable
        variable(); // @empty
    }
    /* expect variableArguments
     * A #1 int[2] @variable
     * M Arrays.variable
     * E Arrays.variable
     * A #2 int[0] @empty
     * M Arrays.variable
     * E Arrays.variable
     */

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            kinds();
            sizes();
            initialised();
            twoDimensions();
            someDimensions();
            threeDimensions();
            negative(-1);
            variableArguments();
        }
        System.out.println("arrays");
    }
}
