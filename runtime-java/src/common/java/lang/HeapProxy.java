package java.lang;

import jdk.internal.vm.annotation.DontInline;

/**
 * What the hooks of rewritten classes call. Each hook leaves one event in the buffer of its thread, in Java,
 * without locks and without entering native code; the events are described in docs/inside/events.md.
 *
 * <p>Rules that every line here keeps, because a hook may run anywhere, the first instructions of the VM
 * included:
 * <ul>
 * <li>Nothing is called that could be hooked itself: only {@code HeapProxy} classes, Unsafe, and native
 *     methods. {@code Class.isArray}, say, is native up to 24 and plain Java from 25 on.
 * <li>No static initialiser, no lambda, no string concatenation: nothing that runs code of its own first.
 * <li>No exception leaves a hook, no monitor is entered (a virtual thread could be unmounted there). Where the stack ends
 *     a hook finds no room: hooks at instructions that call nothing, handlers above all, go without their event then,
 *     for the program would not fail there.
 * <li>Ids are worked out before the position in the buffer is read: to see an object for the first time is an
 *     event too.
 * </ul>
 *
 * <p>Entries and exits are inlined, as nine of ten events are. Hooks marked {@link DontInline} are called: they take more of C2's
 * time wherever they are inlined than the calls take.
 */
public final class HeapProxy {
    /** False until the stub has bound the natives and set the fields below, and again when the VM dies. */
    static boolean on;
    /** In place of {@link #on}: allocations are counted by stack and class, and nothing else is told, see {@link HeapProxyTally}. */
    static boolean counting;
    /** Address of the number of the slice of time to which counts belong, from 1. */
    static long slice;
    /** Of buffers with counts: bytes from the end of the room for events to the index, and the shift of hashes to slots. */
    static long indexOffset;
    static int indexShift;
    /** Where the header of an object tells the class: the offset of eight bytes, and how far they are shifted. */
    static long classWordOffset;
    static int classWordShift;
    /** Alignment of objects in bytes. */
    static int alignment;
    /** Address of the counter that gives out tickets. */
    static long counter;
    /** Bytes from the start of a chunk to where the next event no longer surely fits. */
    static long chunkRoom;
    /** Address of memory that nobody reads: where events go when there is no buffer for them. */
    static long nowhere;
    /** Where the mark word holds the identity hash. */
    static int hashShift;
    /** 0x7fffffff, or 0 if the mark word could not be made out: then every id is asked for. */
    static int hashMask;
    /**
     * The bits of a mark word that must be as an unlocked object has them, 001, for it to hold the hash: all three, or the middle one
     * where locks leave the hash in the word and only a monitor takes its place.
     */
    static long hidden;
    /**
     * What an object must have 001 and zeros in, in its mark word, to be given an id of our own: the low bits and the hash's.
     * 0, which no word passes, if ids are what the VM draws.
     */
    static long unhashed;
    /** Whether ids are tags of JVMTI's, and every id is asked for. */
    static boolean tagged;
    /** Address of a table of ids of objects that were announced, see {@link HeapProxyObjects}. */
    static long known;
    /** Address of the table of classes that have their record, see {@link HeapProxyObjects}. */
    static long classes;
    /** Address of the table of layouts: class id, unused, address of the layout; as {@link #classes} otherwise. */
    static long layouts;
    /** Address of the table of stacks, and in its low bits the logarithm of its size, see {@link HeapProxyStacks}. */
    static long stacks;
    /** Base offset of arrays of references, and the logarithm of their elements' size. */
    static long elementBase;
    static int elementShift;
    /** Offsets of {@code Reference.referent}, {@code Reference.discovered} and {@code CallSite.target}; 0: not known. */
    static long referentOffset;
    static long discoveredOffset;
    static long targetOffset;
    /** The collector is asked about objects whose id is a multiple of this; 0: about none. */
    static int asked;
    /** Hooks that found no room on the stack. Not exact if threads overflow at once. */
    static int overflows;
    /** Offset of the Klass pointer in a class mirror; 0: not known. */
    static long klassOffset;
    /** Offset of the layout helper in a Klass. */
    static long layoutOffset;

    private HeapProxy() {
    }

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
        if (on) {
            Thread thread = HeapProxyRelease.thread();
            long at = HeapProxyBuffer.room(thread);
            HeapProxyPlatform.put(at, method << 2 | 1);
            thread.etPos = at + 4L;
        }
    }

    public static void entry(Object receiver, int method) {
        if (on) {
            int object = HeapProxyObjects.id(receiver);
            Thread thread = HeapProxyRelease.thread();
            long at = HeapProxyBuffer.room(thread);
            HeapProxyPlatform.put(at, method << 2 | 2, object);
            thread.etPos = at + 8L;
        }
    }

    /** A static method is entered and left, with nothing between that could be told of. */
    public static void leaf(int method) {
        if (on) {
            try {
                Thread thread = HeapProxyRelease.thread();
                long at = HeapProxyBuffer.room(thread);
                HeapProxyPlatform.put(at, method << 2 | 2, HeapProxyBuffer.LEFT);
                thread.etPos = at + 8L;
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    /** The same of an instance method. */
    public static void leaf(Object receiver, int method) {
        if (on) {
            try {
                int object = HeapProxyObjects.id(receiver);
                Thread thread = HeapProxyRelease.thread();
                long at = HeapProxyBuffer.room(thread);
                HeapProxyPlatform.put(at, method << 2 | 2, object | HeapProxyBuffer.LEFT);
                thread.etPos = at + 8L;
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    /** Takes the pending site off the thread, so that what the constructor runs first cannot consume it. */
    public static int entryInit(int method) {
        if (!on) {
            return takeSite();
        }
        Thread thread = HeapProxyRelease.thread();
        int site = thread.etSite;
        thread.etSite = 0;
        HeapProxyBuffer.write(thread, HeapProxyBuffer.ENTRY_INIT, method, site);
        return site;
    }

    public static void superCall(int site, int method) {
        if (on) {
            Thread thread = HeapProxyRelease.thread();
            thread.etSite = site;
            HeapProxyBuffer.write(thread, HeapProxyBuffer.SUPER_CALL, method);
        } else {
            site(site);
        }
    }

    public static void exit(int method) {
        if (on) {
            try {
                Thread thread = HeapProxyRelease.thread();
                long at = HeapProxyBuffer.room(thread);
                HeapProxyPlatform.put(at, method << 2);
                thread.etPos = at + 4L;
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    public static void exitThrow(Object exception, int method) {
        exitThrow(exception, null, method);
    }

    @DontInline
    public static void exitThrow(Object exception, Object receiver, int method) {
        if (on) {
            try {
                int thrown = HeapProxyObjects.id(exception);
                int object = HeapProxyObjects.id(receiver);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.EXIT_THROW, method, thrown, object);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    public static void thrown(Object exception, int method) {
        if (on) {
            try {
                int object = HeapProxyObjects.id(exception);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.THROW, method, object);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    public static void handled(Object exception, int method) {
        if (on) {
            try {
                int object = HeapProxyObjects.id(exception);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.HANDLE, method, object);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    // Allocations

    public static void site(int site) {
        if (on) {
            HeapProxyRelease.thread().etSite = site;
        } else if (counting) {
            HeapProxyTally.site(site);
        }
    }

    /** The same, with the value of the stack in place of the site. */
    @DontInline
    public static void site(long stack) {
        if (on) {
            int site = HeapProxyStacks.site(stack);
            HeapProxyRelease.thread().etSite = site;
        } else if (counting) {
            HeapProxyTally.site(stack);
        }
    }

    /**
     * On entry of a method that the VM may have called by itself: the value of the stack of its caller, given what the thread has. Where the
     * VM calls, the caller has not stored any, so the thread has that of an earlier call.
     */
    @DontInline
    public static long calledByVm(long stack) {
        if (!on && !counting) {
            return stack;
        }
        long found = calledByVm0(stack);
        if (found != stack) {
            // For what the VM calls before the method itself has stored a value.
            Thread.currentThread().etContext = found;
        }
        return found;
    }

    /** Takes the pending site off the thread as {@link #entryInit} does, where methods are not reported. */
    public static int takeSite() {
        if (!on) {
            return counting ? HeapProxyTally.takeSite() : 0;
        }
        Thread thread = HeapProxyRelease.thread();
        int site = thread.etSite;
        thread.etSite = 0;
        return site;
    }

    @DontInline
    public static void allocated(Object object) {
        if (on) {
            // A hash that was there before: of what Unsafe.allocateInstance or JNI made.
            int kind = HeapProxyObjects.hasId(object) ? HeapProxyBuffer.NEW_KNOWN : HeapProxyBuffer.NEW;
            Thread thread = HeapProxyRelease.thread();
            int site = thread.etSite;
            if (site != 0) {
                thread.etSite = 0;
            } else if (kind == HeapProxyBuffer.NEW) {
                long stack = Thread.currentThread().etContext;
                // 0 without stacks.
                if (stack != 0L) {
                    int number = HeapProxyStacks.number(HeapProxyStacks.ofObject(stack));
                    // stack0 is called from here rather than from HeapProxyStacks, so that the walk has fewer frames to pass. Likewise below.
                    site = HeapProxyStacks.mark(number != 0 ? number : stack0(stack, true));
                }
            }
            // Once it has an id, nothing but its event may come.
            int fresh = HeapProxyObjects.identify(thread, object);
            int type = HeapProxyObjects.classId(object.getClass());
            HeapProxyBuffer.write(thread, kind, site, fresh, type);
            if (asked != 0) {
                ask(object, fresh);
            }
            if (HeapProxyCounts.active != null && kind == HeapProxyBuffer.NEW) {
                HeapProxyCounts.count(object, site);
            }
        } else if (counting) {
            Thread thread = HeapProxyRelease.thread();
            if (thread.etSite != 0) {
                HeapProxyTally.objectOfSite(thread, object);
                return;
            }
            long stack = Thread.currentThread().etContext;
            long key = HeapProxyStacks.ofObject(stack);
            if (!HeapProxyTally.object(thread, object, key)) {
                int number = HeapProxyStacks.number(key);
                number = number != 0 ? number : stack0(stack, true);
                int site = HeapProxyStacks.mark(number);
                HeapProxyTally.first(thread, object, -1, site, HeapProxyStacks.isCertain(number) ? key : site);
            }
        }
    }

    @DontInline
    public static void allocatedArray(Object array, int length, int site) {
        if (on) {
            try {
                newArray(array, length, site, 0);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        } else if (counting) {
            HeapProxyTally.array(array, length, site);
        }
    }

    @DontInline
    public static void allocatedArray(Object array, int length, long stack) {
        if (!on && !counting) {
            return;
        }
        try {
            if (on) {
                int number = HeapProxyStacks.number(stack);
                number = number != 0 ? number : stack0(stack, false);
                newArray(array, length, HeapProxyStacks.mark(number), 0);
                return;
            }
            Thread thread = HeapProxyRelease.thread();
            if (!HeapProxyTally.again(thread, array, length, stack)) {
                int number = HeapProxyStacks.number(stack);
                number = number != 0 ? number : stack0(stack, false);
                int site = HeapProxyStacks.mark(number);
                HeapProxyTally.first(thread, array, length, site, HeapProxyStacks.isCertain(number) ? stack : site);
            }
        } catch (StackOverflowError noRoom) {
            overflows++;
        }
    }

    // In place of the newarray of methods that the usual hook would make too large. There is no room for sites,
    // and without one NewArray would not tell the type: Made does.

    public static boolean[] newBooleans(int length) {
        boolean[] array = new boolean[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static char[] newChars(int length) {
        char[] array = new char[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static float[] newFloats(int length) {
        float[] array = new float[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static double[] newDoubles(int length) {
        double[] array = new double[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static byte[] newBytes(int length) {
        byte[] array = new byte[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static short[] newShorts(int length) {
        short[] array = new short[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static int[] newInts(int length) {
        int[] array = new int[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static long[] newLongs(int length) {
        long[] array = new long[length];
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    @DontInline
    public static void allocatedMulti(Object array, int dimensions, int site) {
        if (on) {
            try {
                multi(array, dimensions, site, 0);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        } else if (counting) {
            HeapProxyTally.arrays(array, dimensions, site);
        }
    }

    @DontInline
    public static void allocatedMulti(Object array, int dimensions, long stack) {
        if (on) {
            try {
                multi(array, dimensions, HeapProxyStacks.site(stack), 0);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        } else if (counting) {
            try {
                HeapProxyTally.arrays(array, dimensions, HeapProxyStacks.site(stack));
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    private static void multi(Object array, int dimensions, int site, int depth) {
        newArray(array, HeapProxyObjects.length(array), site, depth);
        if (dimensions > 1) {
            Object[] elements = (Object[]) array;
            for (int i = 0; i < elements.length; i++) {
                Object element = elements[i];
                if (element != null) {
                    multi(element, dimensions - 1, site, depth + 1);
                    putElement(array, i, element);
                }
            }
        }
    }

    private static void newArray(Object array, int length, int site, int depth) {
        Thread thread = HeapProxyRelease.thread();
        long at = HeapProxyBuffer.room(thread);
        // Last: an array with an id counts as told of.
        int fresh = HeapProxyObjects.draw(thread, array);
        HeapProxyPlatform.put(at, depth << 8 | HeapProxyBuffer.NEW_ARRAY, site, fresh, length);
        thread.etPos = at + 16L;
        if (asked != 0) {
            ask(array, fresh);
        }
        if (HeapProxyCounts.active != null) {
            HeapProxyCounts.count(array, site);
        }
    }

    // Updates

    @DontInline
    public static void putField(Object origin, Object value, int field) {
        if (on && origin != null) {
            try {
                int from = HeapProxyObjects.id(origin);
                int to = HeapProxyObjects.id(value);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.PUT_FIELD, field, from, to);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    @DontInline
    public static void putStatic(Object value, int field) {
        if (on) {
            try {
                int to = HeapProxyObjects.id(value);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.PUT_STATIC, field, to);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    @DontInline
    public static void putElement(Object array, int index, Object value) {
        if (on) {
            try {
                int from = HeapProxyObjects.id(array);
                int to = HeapProxyObjects.id(value);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.PUT_ELEMENT, index, from, to);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    /** Stands in place of the {@code aastore} of methods that the usual hook would make too large. */
    public static void storeElement(Object[] array, int index, Object value) {
        if (value instanceof String) {
            HeapProxyCalls.constant(value); // It may be one: its ldc has no hook of its own here.
        }
        array[index] = value;
        putElement(array, index, value);
    }

    // Witnesses

    /** The running frame has used the object. */
    public static void used(Object object) {
        if (on && object != null) {
            try {
                int id = HeapProxyObjects.id(object);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.USED, id);
            } catch (StackOverflowError noRoom) {
                overflows++;
            }
        }
    }

    // Continuations (JDK 21 and later)

    /** From here on the carrier runs the stack of {@code continuation}. */
    public static void enterContinuation(Object continuation) {
        if (on) {
            int owner = HeapProxyObjects.id(continuation);
            HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.SWITCH, owner);
        }
    }

    /** From here on the carrier runs the stack of {@code parent}, null for its own. */
    public static void leaveContinuation(Object parent) {
        enterContinuation(parent);
    }

    // What the stub calls

    /**
     * Links the natives, which runs Java code that is hooked itself, so it must be done before the hooks are on.
     * The VM finds them in the agent's library by their names; registering them instead would make it print a
     * warning. Returns 1.
     */
    static int link() {
        initialize();
        defineClass0(null);
        layout0(null);
        ask0(null, 0);
        moreIds();
        tag0(null, false);
        staticFieldAt0(null, 0L);
        stack0(0L, false);
        calledByVm0(0L);
        size0(null);
        return nextChunk(null, 0L) == -1L ? 1 : 0;
    }

    /**
     * All classes that hooks run in, before the hooks are on. Linking and initialising a class takes a lock of the VM's; the
     * thread that has it would wait in a hook of its own (the VM tells the agent that the class is prepared) for the lock of
     * another of these classes, whose thread waits for this one.
     */
    private static void initialize() {
        String[] others = {"Anonymous", "Buffer", "Calls", "Classes", "Counts", "Fields", "Mirrors", "Objects", "Platform", "Release", "Stacks", "Tally", "Unsafe"};
        for (String other : others) {
            try {
                Class.forName("java.lang.HeapProxy" + other, true, null);
            } catch (ClassNotFoundException e) {
                // Not all JDKs have all.
            }
        }
    }

    /** Finds the identity hash in the mark word by hashing objects and looking: the shift, or -1. */
    static int probeHashShift() {
        int shift = -1;
        for (int round = 0; round < 8; round++) {
            Object object = new Object();
            int hash = System.identityHashCode(object);
            long mark = HeapProxyPlatform.mark(object);
            int here = -1;
            for (int s = 3; s <= 33; s++) {
                if ((int) (mark >>> s & 0x7fffffffL) == hash) {
                    here = s;
                    break;
                }
            }
            if (here < 0 || (mark & 7L) != 1L || round > 0 && here != shift) {
                return -1;
            }
            shift = here;
        }
        return shift;
    }

    /**
     * Where the hash of an object is that the current thread has locked, whose stack lies between these addresses: 1 in the mark
     * word as before, 2 in the lock on the stack, 0 in neither.
     */
    static int probeLock(long stackLow, long stackHigh) {
        Object object = new Object();
        int hash = System.identityHashCode(object);
        synchronized (object) {
            long mark = HeapProxyPlatform.mark(object);
            if ((mark & 3L) != 0L) {
                return 0;
            }
            if (HeapProxyObjects.hashIn(mark) == hash) {
                return 1;
            }
            if (mark < stackLow || mark >= stackHigh) {
                return 0;
            }
            long before = HeapProxyPlatform.getLong(mark);
            return (before & 7L) == 1L && HeapProxyObjects.hashIn(before) == hash ? 2 : 0;
        }
    }

    /** Gives a fresh object an id of ours; 0 if its mark word could not be written. */
    static int probeWriting(Object object) {
        Thread thread = HeapProxyRelease.thread();
        int id = HeapProxyObjects.identify(thread, object);
        return HeapProxyObjects.nextId(id) == (int) thread.etIds ? id : 0;
    }

    /** The identity hash if the object has one already, else 0; draws one only if the mark word does not tell. */
    static int peekHash(Object object) {
        long mark = HeapProxyPlatform.mark(object);
        if ((mark & 7L) == 1L && hashMask != 0) {
            return HeapProxyObjects.hashIn(mark);
        }
        return System.identityHashCode(object);
    }

    /** Draws identity hashes that nobody will have. */
    static void skipHashes(int count) {
        for (int i = 0; i < count; i++) {
            System.identityHashCode(new Object());
        }
    }

    /** HotSpot's layout helper of a class: positive for instances, then their size and a flag in the low bit. */
    static int layoutHelper(Class<?> type) {
        long klass = klass(type);
        return klass == 0L ? 0 : HeapProxyPlatform.get(klass + layoutOffset);
    }

    /** Where HotSpot's own structure of the class is; 0 for primitive types, which have none, and where mirrors do not tell. */
    static long klass(Class<?> type) {
        return klassOffset == 0L ? 0L : HeapProxyPlatform.word(type, klassOffset);
    }

    /**
     * Hands in the chunk that is written up to {@code at} (0: none) and returns where the next one starts, 0 if there
     * is none, -1 for no thread.
     */
    static native long nextChunk(Thread thread, long at);

    /** The tag that is the object's id; 0 if it has none and {@code give} does not have it get one. */
    static native int tag0(Object object, boolean give);

    /** The first of the ids that are the caller's from now on, and above bit 32 how many they are; 0: there are none. */
    static native long moreIds();

    /**
     * The number of the stack with that value, which is walked if it has none; 0 for 0, and if there is no number to give.
     * In {@code Object.<init>} it is that of the {@code new}, see {@link HeapProxyStacks#ofObject}. Negative, with bit 31, if other stacks
     * may have the same value.
     */
    static native int stack0(long value, boolean inObject);

    /** The value of the stack of the method that has called the caller, or in which the VM has; given what the thread has. */
    static native long calledByVm0(long value);

    /** The size of an object as the VM tells it; 0 for null. */
    static native long size0(Object object);

    /** Asks the collector about an object that an event was just written for. */
    static void ask(Object object, int id) {
        if (id % asked == 0) {
            ask0(object, id);
        }
    }

    private static native void ask0(Object object, int id);

    /** Writes the class record of {@code type} unless it is written; does nothing for null. */
    static native void defineClass0(Class<?> type);

    /**
     * The address of the layout of a class: {@code int} count, then for each field of a reference type that its
     * instances have, in order of offsets, {@code int} offset and {@code int} field reference. Never 0 but for null.
     */
    static native long layout0(Class<?> type);

    /** The field reference of the static field of a reference type at that offset of the mirror, 0 if there is none. */
    static native int staticFieldAt0(Class<?> mirror, long offset);
}
