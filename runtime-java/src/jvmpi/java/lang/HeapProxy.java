package java.lang;

/**
 * What the hooks of rewritten classes call in a run with a profiler of JVMPI: it takes the place of the class of that name that
 * writes traces. Entries and exits go to the host, {@code libet_jvmpi.so}; of all else nobody wants to be told.
 *
 * <p>The JDK may have been rewritten for traces, so every hook is here. As there: nothing is called that could be hooked itself, there is
 * no static initialiser, and where the stack ends a hook that stands at no call goes without its event.
 */
public final class HeapProxy {
    /** The classes beside this one ask whether a trace is written: never. */
    static boolean on;
    /** And whether allocations are counted: never. */
    static boolean counting;
    /** Somebody wants to be told of entries and exits. Set by the host. */
    static boolean told;
    /** Exits that found no room on the stack. Not exact if threads overflow at once. */
    static int overflows;

    private HeapProxy() {
    }

    /** The VM finds the natives here, while nobody is told: its search runs code with hooks. */
    static void link() {
        entered(null, -1);
        left(-1);
    }

    /** The caller's caller is entered. The receiver is null if the method is static, or if its constructor has none yet. */
    private static native void entered(Object receiver, int method);

    /** The caller's caller is left. */
    private static native void left(int method);

    // Threads

    /**
     * How large the stack of a thread is to be that a program asks for so many bytes: hooks take room on it. Sizes from 1 GiB on are
     * beyond what depths are counted in, and five times as much may be more than there is. Of stacks of which nothing is said the
     * options of the VM do the same (`instrument/src/jdk/stack_size.rs`).
     */
    public static long stackSize(long asked) {
        final long most = 1L << 30;
        if (asked <= 0 || asked >= most) {
            return asked;
        }
        return asked < most / 5 ? 5 * asked : most;
    }

    // Methods

    public static void entry(int method) {
        if (told) {
            entered(null, method);
        }
    }

    public static void entry(Object receiver, int method) {
        if (told) {
            entered(receiver, method);
        }
    }

    public static void leaf(int method) {
        leaf(null, method);
    }

    public static void leaf(Object receiver, int method) {
        if (told) {
            try {
                entered(receiver, method);
                left(method);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    public static int entryInit(int method) {
        if (told) {
            entered(null, method);
        }
        return 0;
    }

    public static void superCall(int site, int method) {
    }

    public static void exit(int method) {
        if (told) {
            try {
                left(method);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    public static void exitThrow(Object exception, int method) {
        exit(method);
    }

    public static void exitThrow(Object exception, Object receiver, int method) {
        exit(method);
    }

    public static void thrown(Object exception, int method) {
    }

    public static void handled(Object exception, int method) {
    }

    // All that is left is what the program would have done without hooks.

    public static void site(int site) {
    }

    public static void site(long stack) {
    }

    public static long calledByVm(long stack) {
        return stack;
    }

    public static int takeSite() {
        return 0;
    }

    public static void allocated(Object object) {
    }

    public static void allocatedArray(Object array, int length, int site) {
    }

    public static void allocatedArray(Object array, int length, long stack) {
    }

    public static boolean[] newBooleans(int length) {
        return new boolean[length];
    }

    public static char[] newChars(int length) {
        return new char[length];
    }

    public static float[] newFloats(int length) {
        return new float[length];
    }

    public static double[] newDoubles(int length) {
        return new double[length];
    }

    public static byte[] newBytes(int length) {
        return new byte[length];
    }

    public static short[] newShorts(int length) {
        return new short[length];
    }

    public static int[] newInts(int length) {
        return new int[length];
    }

    public static long[] newLongs(int length) {
        return new long[length];
    }

    public static void allocatedMulti(Object array, int dimensions, int site) {
    }

    public static void allocatedMulti(Object array, int dimensions, long stack) {
    }

    public static void putField(Object origin, Object value, int field) {
    }

    public static void putStatic(Object value, int field) {
    }

    public static void putElement(Object array, int index, Object value) {
    }

    public static void storeElement(Object[] array, int index, Object value) {
        array[index] = value;
    }

    public static void used(Object object) {
    }

    public static void enterContinuation(Object continuation) {
    }

    public static void leaveContinuation(Object parent) {
    }
}
