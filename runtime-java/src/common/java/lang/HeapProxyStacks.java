package java.lang;

/**
 * The numbers of stacks, given their values (docs/inside/stacks.md). A stack gets its number when an object is allocated on it for the
 * first time: then it is walked, as far as it is new, and the trace gets its frames before the number is known here.
 */
final class HeapProxyStacks {
    /** The bit of a site that says that it is the number of a stack. */
    private static final int STACK = 1 << 31;
    /** Spreads values over the table; odd. */
    static final long SPREAD = 0xbf58476d1ce4e5b9L;

    /** The table has stacks of objects under another value than that which {@code Object.<init>} has: of the call of a constructor. */
    private static final long OBJECT = 0x94d049bb133111ebL;

    private HeapProxyStacks() {
    }

    /** What events have in place of the site; 0 if the stack has no number. */
    static int site(long value) {
        if (value == 0L) {
            return 0;
        }
        int number = number(value);
        return mark(number != 0 ? number : HeapProxy.stack0(value, false));
    }

    /**
     * Under which value the table has the stack of an object whose {@code Object.<init>} runs, given the value that the thread has: of the
     * call of {@code super(…)} by which the constructors came there. The stack is that of the {@code new}.
     */
    static long ofObject(long value) {
        return value + OBJECT;
    }

    /** The number in place of a site; 0 for 0. */
    static int mark(int number) {
        return number == 0 ? 0 : number | STACK;
    }

    /** Whether no other stack has the value for which {@link HeapProxy#stack0} gave this number. */
    static boolean isCertain(int number) {
        return number >= 0;
    }

    /** What the table has for the value; 0 if it does not have it. */
    static int number(long key) {
        // Slots of 16 bytes: value, number. Filled by linear probing, never removed; a new table takes the place of one that is three quarters full.
        long table = HeapProxy.stacks;
        int bits = (int) table & 63;
        long base = table & ~63L;
        long mask = (1L << bits) - 1L;
        long slot = key * SPREAD >>> 64 - bits;
        for (;;) {
            long at = base + (slot << 4);
            long there = HeapProxyPlatform.getLongAcquire(at);
            if (there == key) {
                // A table that was replaced meanwhile may turn into zeros behind its value.
                return HeapProxyPlatform.get(at + 8L);
            }
            if (there == 0L) {
                return 0;
            }
            slot = slot + 1L & mask;
        }
    }
}
