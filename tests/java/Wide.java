/** Longs and doubles everywhere, switches, wide instructions: offsets and stack depths that hooks must respect. */
public class Wide {
    static class Mixed {
        long a;
        Object b;
        double c;
        Object d;

        Mixed(long a, Object b, double c, Object d) {
            this.a = a;
            this.b = b;
            this.c = c;
            this.d = d;
        }

        double all(double x, long y, Object z) {
            b = z;
            return x + y + a + c;
        }
    }

    static void longsAndDoubles() {
        Mixed mixed = new Mixed(1L << 40, null, 2.5, "d"); // @mixed
        mixed.all(1.5, 2L, mixed);
        Object[] objects = new Object[(int) (mixed.a >> 40) + 1]; // @computed
        objects[(int) mixed.c - 1] = mixed;
    }
    /* expect longsAndDoubles
     * N #1 Mixed @mixed
     * M Mixed.<init> #1
     * U #1.b null -> null
     * U #1.d null -> #2(java.lang.String)
     * E Mixed.<init> #1
     * M Mixed.all #1
     * U #1.b null -> #1
     * E Mixed.all #1
     * A #3 java.lang.Object[2] @computed
     * U #3[1] null -> #1
     */

    static Object table(int n) {
        switch (n) {
            case 1:
                return new int[1]; // @case1
            case 2:
                return new int[2]; // @case2
            case 3:
                return new int[3]; // @case3
            default:
                return null;
        }
    }

    static Object lookup(int n) {
        switch (n) {
            case -1000:
                return new long[1]; // @low
            case 1_000_000:
                return new long[2]; // @high
            default:
                return null;
        }
    }

    static void switches() {
        for (int i = 0; i < 5; i++) {
            table(i);
        }
        lookup(1_000_000);
        lookup(-1000);
        lookup(0);
    }
    /* expect switches
     * M Wide.table
     * E Wide.table
     * M Wide.table
     * A #1 int[1] @case1
     * E Wide.table
     * M Wide.table
     * A #2 int[2] @case2
     * E Wide.table
     * M Wide.table
     * A #3 int[3] @case3
     * E Wide.table
     * M Wide.table
     * E Wide.table
     * M Wide.lookup
     * A #4 long[2] @high
     * E Wide.lookup
     * M Wide.lookup
     * A #5 long[1] @low
     * E Wide.lookup
     * M Wide.lookup
     * E Wide.lookup
     */

    /** Locals past 255 need `wide` instructions. */
    static long manyLocals(int n) {
        long l0 = n + 0;
        long l1 = l0 + 1;
        long l2 = l1 + 2;
        long l3 = l2 + 3;
        long l4 = l3 + 4;
        long l5 = l4 + 5;
        long l6 = l5 + 6;
        long l7 = l6 + 7;
        long l8 = l7 + 8;
        long l9 = l8 + 9;
        long l10 = l9 + 10;
        long l11 = l10 + 11;
        long l12 = l11 + 12;
        long l13 = l12 + 13;
        long l14 = l13 + 14;
        long l15 = l14 + 15;
        long l16 = l15 + 16;
        long l17 = l16 + 17;
        long l18 = l17 + 18;
        long l19 = l18 + 19;
        long l20 = l19 + 20;
        long l21 = l20 + 21;
        long l22 = l21 + 22;
        long l23 = l22 + 23;
        long l24 = l23 + 24;
        long l25 = l24 + 25;
        long l26 = l25 + 26;
        long l27 = l26 + 27;
        long l28 = l27 + 28;
        long l29 = l28 + 29;
        long l30 = l29 + 30;
        long l31 = l30 + 31;
        long l32 = l31 + 32;
        long l33 = l32 + 33;
        long l34 = l33 + 34;
        long l35 = l34 + 35;
        long l36 = l35 + 36;
        long l37 = l36 + 37;
        long l38 = l37 + 38;
        long l39 = l38 + 39;
        long l40 = l39 + 40;
        long l41 = l40 + 41;
        long l42 = l41 + 42;
        long l43 = l42 + 43;
        long l44 = l43 + 44;
        long l45 = l44 + 45;
        long l46 = l45 + 46;
        long l47 = l46 + 47;
        long l48 = l47 + 48;
        long l49 = l48 + 49;
        long l50 = l49 + 50;
        long l51 = l50 + 51;
        long l52 = l51 + 52;
        long l53 = l52 + 53;
        long l54 = l53 + 54;
        long l55 = l54 + 55;
        long l56 = l55 + 56;
        long l57 = l56 + 57;
        long l58 = l57 + 58;
        long l59 = l58 + 59;
        long l60 = l59 + 60;
        long l61 = l60 + 61;
        long l62 = l61 + 62;
        long l63 = l62 + 63;
        long l64 = l63 + 64;
        long l65 = l64 + 65;
        long l66 = l65 + 66;
        long l67 = l66 + 67;
        long l68 = l67 + 68;
        long l69 = l68 + 69;
        long l70 = l69 + 70;
        long l71 = l70 + 71;
        long l72 = l71 + 72;
        long l73 = l72 + 73;
        long l74 = l73 + 74;
        long l75 = l74 + 75;
        long l76 = l75 + 76;
        long l77 = l76 + 77;
        long l78 = l77 + 78;
        long l79 = l78 + 79;
        long l80 = l79 + 80;
        long l81 = l80 + 81;
        long l82 = l81 + 82;
        long l83 = l82 + 83;
        long l84 = l83 + 84;
        long l85 = l84 + 85;
        long l86 = l85 + 86;
        long l87 = l86 + 87;
        long l88 = l87 + 88;
        long l89 = l88 + 89;
        long l90 = l89 + 90;
        long l91 = l90 + 91;
        long l92 = l91 + 92;
        long l93 = l92 + 93;
        long l94 = l93 + 94;
        long l95 = l94 + 95;
        long l96 = l95 + 96;
        long l97 = l96 + 97;
        long l98 = l97 + 98;
        long l99 = l98 + 99;
        long l100 = l99 + 100;
        long l101 = l100 + 101;
        long l102 = l101 + 102;
        long l103 = l102 + 103;
        long l104 = l103 + 104;
        long l105 = l104 + 105;
        long l106 = l105 + 106;
        long l107 = l106 + 107;
        long l108 = l107 + 108;
        long l109 = l108 + 109;
        long l110 = l109 + 110;
        long l111 = l110 + 111;
        long l112 = l111 + 112;
        long l113 = l112 + 113;
        long l114 = l113 + 114;
        long l115 = l114 + 115;
        long l116 = l115 + 116;
        long l117 = l116 + 117;
        long l118 = l117 + 118;
        long l119 = l118 + 119;
        long l120 = l119 + 120;
        long l121 = l120 + 121;
        long l122 = l121 + 122;
        long l123 = l122 + 123;
        long l124 = l123 + 124;
        long l125 = l124 + 125;
        long l126 = l125 + 126;
        long l127 = l126 + 127;
        long l128 = l127 + 128;
        long l129 = l128 + 129;
        long l130 = l129 + 130;
        long l131 = l130 + 131;
        long l132 = l131 + 132;
        long l133 = l132 + 133;
        long l134 = l133 + 134;
        long l135 = l134 + 135;
        long l136 = l135 + 136;
        long l137 = l136 + 137;
        long l138 = l137 + 138;
        long l139 = l138 + 139;
        long l140 = l139 + 140;
        long l141 = l140 + 141;
        long l142 = l141 + 142;
        long l143 = l142 + 143;
        long l144 = l143 + 144;
        long l145 = l144 + 145;
        long l146 = l145 + 146;
        long l147 = l146 + 147;
        long l148 = l147 + 148;
        long l149 = l148 + 149;
        int counter = 0;
        for (; counter < n; counter += 1000) {
            Object[] last = {null}; // @last
            last[0] = last;
        }
        return counter + l0 + l149;
    }

    static void wideInstructions() {
        manyLocals(1500);
    }
    /* expect wideInstructions
     * M Wide.manyLocals
     * A #1 java.lang.Object[1] @last
     * U #1[0] null -> null
     * U #1[0] null -> #1
     * A #2 java.lang.Object[1] @last
     * U #2[0] null -> null
     * U #2[0] null -> #2
     * E Wide.manyLocals
     */

    static void nestedHandlers() {
        long kept = 7L;
        try {
            double inner = 1.5;
            try {
                kept += (long) inner / (kept - 7L);
            } catch (ArithmeticException expected) {
                kept = (long) inner + kept;
                throw new IllegalStateException(); // @nestedThrow
            }
        } catch (IllegalStateException expected) {
            kept++;
        }
        if (kept != 9L) {
            throw new AssertionError(kept);
        }
    }
    /* expect nestedHandlers own
     * T Wide.nestedHandlers !#1(java.lang.ArithmeticException)
     * H Wide.nestedHandlers !#1
     * N #2 java.lang.IllegalStateException @nestedThrow
     * T Wide.nestedHandlers !#2
     * H Wide.nestedHandlers !#2
     */

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            longsAndDoubles();
            switches();
            wideInstructions();
            nestedHandlers();
        }
        System.out.println("wide " + manyLocals(2500));
    }
}
