package java.lang;

/**
 * What the hooks of rewritten classes call. Each hook leaves one event in the buffer of its thread, in Java,
 * without locks and without entering native code; the events are described in docs/inside/events.md.
 *
 * <p>Rules that every line here keeps, because a hook may run anywhere, the first instructions of the VM
 * included:
 * <ul>
 * <li>Nothing is called that could be hooked itself: only this class, {@link HeapProxyPlatform}, Unsafe, and
 *     native methods. {@code Class.isArray}, say, is native up to 24 and plain Java from 25 on.
 * <li>No static initialiser, no lambda, no string concatenation: nothing that runs code of its own first.
 * <li>No exception leaves a hook, no monitor is entered (a virtual thread could be unmounted there).
 * <li>Ids are worked out before the position in the buffer is read: to see an object for the first time is an
 *     event too.
 * </ul>
 */
public final class HeapProxy {
    /** False until the stub has bound the natives and set the fields below, and again when the VM dies. */
    static boolean on;
    /** Address of the counter that gives out tickets. */
    static long counter;
    /** Bytes from the start of a chunk to where the next event no longer surely fits. */
    static long chunkRoom;
    /** Where the mark word holds the identity hash. */
    static int hashShift;
    /** 0x7fffffff, or 0 if the mark word could not be made out: then every id is asked for. */
    static int hashMask;
    /** Address of a table of ids of objects that were announced, see {@link #isKnown}. */
    static long known;
    /** Address of the table of classes that have their record, see {@link #classId}. */
    static long classes;
    /** Address of the table of layouts: class id, unused, address of the layout; as {@link #classes} otherwise. */
    static long layouts;
    /** Offset of the Klass pointer in a class mirror. */
    static long klassOffset;
    /** Offset of the layout helper in a Klass. */
    static long layoutOffset;

    private static final int TICKET = 1 << 2 | 3;
    private static final int NEW = 2 << 2 | 3;
    private static final int NEW_ARRAY = 3 << 2 | 3;
    private static final int FOUND = 4 << 2 | 3;
    private static final int PUT_FIELD = 5 << 2 | 3;
    private static final int PUT_STATIC = 6 << 2 | 3;
    private static final int PUT_ELEMENT = 7 << 2 | 3;
    private static final int THROW = 8 << 2 | 3;
    private static final int HANDLE = 9 << 2 | 3;
    private static final int EXIT_THROW = 10 << 2 | 3;
    private static final int ENTRY_INIT = 11 << 2 | 3;
    private static final int SUPER_CALL = 12 << 2 | 3;
    private static final int SWITCH = 13 << 2 | 3;

    /** Slots of the table at {@link #known}; the stub allocates as many. */
    private static final int KNOWN_SLOTS = 1 << 16;
    /** Slots of the table at {@link #classes}. */
    private static final int CLASS_SLOTS = 1 << 18;

    private HeapProxy() {
    }

    // Methods

    public static void entry(int method) {
        if (on) {
            Thread thread = HeapProxyPlatform.thread();
            long at = room(thread);
            if (at != 0L) {
                HeapProxyPlatform.put(at, method << 2 | 1);
                thread.etPos = at + 4L;
            }
        }
    }

    public static void entry(Object receiver, int method) {
        if (on) {
            int object = id(receiver);
            Thread thread = HeapProxyPlatform.thread();
            long at = room(thread);
            if (at != 0L) {
                HeapProxyPlatform.put(at, method << 2 | 2, object);
                thread.etPos = at + 8L;
            }
        }
    }

    /** Takes the pending site off the thread, so that what the constructor runs first cannot consume it. */
    public static int entryInit(int method) {
        if (!on) {
            return 0;
        }
        Thread thread = HeapProxyPlatform.thread();
        int site = thread.etSite;
        thread.etSite = 0;
        write(thread, ENTRY_INIT, method, site);
        return site;
    }

    public static void superCall(int site, int method) {
        if (on) {
            Thread thread = HeapProxyPlatform.thread();
            thread.etSite = site;
            write(thread, SUPER_CALL, method);
        }
    }

    public static void exit(int method) {
        if (on) {
            Thread thread = HeapProxyPlatform.thread();
            long at = room(thread);
            if (at != 0L) {
                HeapProxyPlatform.put(at, method << 2);
                thread.etPos = at + 4L;
            }
        }
    }

    public static void exitThrow(Object exception, int method) {
        exitThrow(exception, null, method);
    }

    public static void exitThrow(Object exception, Object receiver, int method) {
        if (on) {
            int thrown = id(exception);
            int object = id(receiver);
            write(HeapProxyPlatform.thread(), EXIT_THROW, method, thrown, object);
        }
    }

    public static void thrown(Object exception, int method) {
        if (on) {
            int object = id(exception);
            write(HeapProxyPlatform.thread(), THROW, method, object);
        }
    }

    public static void handled(Object exception, int method) {
        if (on) {
            int object = id(exception);
            write(HeapProxyPlatform.thread(), HANDLE, method, object);
        }
    }

    // Allocations

    public static void site(int site) {
        if (on) {
            HeapProxyPlatform.thread().etSite = site;
        }
    }

    /** Takes the pending site off the thread as {@link #entryInit} does, where methods are not reported. */
    public static int takeSite() {
        if (!on) {
            return 0;
        }
        Thread thread = HeapProxyPlatform.thread();
        int site = thread.etSite;
        thread.etSite = 0;
        return site;
    }

    public static void allocated(Object object) {
        if (on) {
            int fresh = System.identityHashCode(object);
            int type = classId(object.getClass());
            Thread thread = HeapProxyPlatform.thread();
            int site = thread.etSite;
            thread.etSite = 0;
            write(thread, NEW, site, fresh, type);
        }
    }

    public static void allocatedArray(Object array, int length, int site) {
        if (on) {
            newArray(array, length, site, 0);
        }
    }

    public static void allocatedMulti(Object array, int dimensions, int site) {
        if (on) {
            multi(array, dimensions, site, 0);
        }
    }

    private static void multi(Object array, int dimensions, int site, int depth) {
        newArray(array, length(array), site, depth);
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
        int fresh = System.identityHashCode(array);
        write(HeapProxyPlatform.thread(), depth << 8 | NEW_ARRAY, site, fresh, length);
    }

    // Updates

    public static void putField(Object origin, Object value, int field) {
        if (on && origin != null) {
            int from = id(origin);
            int to = id(value);
            write(HeapProxyPlatform.thread(), PUT_FIELD, field, from, to);
        }
    }

    public static void putStatic(Object value, int field) {
        if (on) {
            int to = id(value);
            write(HeapProxyPlatform.thread(), PUT_STATIC, field, to);
        }
    }

    public static void putElement(Object array, int index, Object value) {
        if (on) {
            int from = id(array);
            int to = id(value);
            write(HeapProxyPlatform.thread(), PUT_ELEMENT, index, from, to);
        }
    }

    /** Stands in place of the {@code aastore} of methods that the usual hook would make too large. */
    public static void storeElement(Object[] array, int index, Object value) {
        array[index] = value;
        putElement(array, index, value);
    }

    // Continuations (JDK 21 and later)

    /** From here on the carrier runs the stack of {@code continuation}. */
    public static void enterContinuation(Object continuation) {
        if (on) {
            int owner = id(continuation);
            write(HeapProxyPlatform.thread(), SWITCH, owner);
        }
    }

    /** From here on the carrier runs the stack of {@code parent}, null for its own. */
    public static void leaveContinuation(Object parent) {
        enterContinuation(parent);
    }

    // The buffer

    private static void write(Thread thread, int first, int a) {
        long at = room(thread);
        if (at != 0L) {
            HeapProxyPlatform.put(at, first, a);
            thread.etPos = at + 8L;
        }
    }

    private static void write(Thread thread, int first, int a, int b) {
        long at = room(thread);
        if (at != 0L) {
            HeapProxyPlatform.put(at, first, a, b);
            thread.etPos = at + 12L;
        }
    }

    private static void write(Thread thread, int first, int a, int b, int c) {
        long at = room(thread);
        if (at != 0L) {
            HeapProxyPlatform.put(at, first, a, b, c);
            thread.etPos = at + 16L;
        }
    }

    /** Where the next event goes, its ticket written if it needs one; 0 if there is nowhere to write. */
    private static long room(Thread thread) {
        long at = thread.etPos;
        if (at < thread.etEnd && HeapProxyPlatform.lastTicket(counter) == thread.etTicket) {
            return at;
        }
        return makeRoom(thread);
    }

    private static long makeRoom(Thread thread) {
        long at = thread.etPos;
        if (at >= thread.etEnd) {
            at = nextChunk(thread, at);
            if (at == 0L) {
                // The stub has no buffer to give: tracing ended, or this thread did.
                thread.etPos = 0L;
                thread.etEnd = 0L;
                return 0L;
            }
            thread.etPos = at;
            thread.etEnd = at + chunkRoom;
        }
        // Every chunk starts with a ticket; further on there is one because another thread took one meanwhile.
        long ticket = HeapProxyPlatform.nextTicket(counter);
        HeapProxyPlatform.put(at, (int) ticket << 8 | TICKET, (int) (ticket >>> 24));
        at += 8L;
        thread.etTicket = ticket;
        // Stored at once: should the stack overflow before the event is written, the ticket still stands.
        thread.etPos = at;
        return at;
    }

    // Ids

    /** The identity hash of an object, 0 for null. The first sight of an object writes an event. */
    static int id(Object object) {
        if (object == null) {
            return 0;
        }
        long mark = HeapProxyPlatform.mark(object);
        // Low bits 001: neither locked nor biased, so the word holds the hash itself, or 0.
        if ((mark & 7L) == 1L) {
            int hash = (int) (mark >>> hashShift) & hashMask;
            if (hash != 0) {
                return hash;
            }
        }
        return askId(object);
    }

    private static int askId(Object object) {
        boolean unlocked = (HeapProxyPlatform.mark(object) & 7L) == 1L && hashMask != 0;
        int hash = System.identityHashCode(object);
        // A locked object may well be known. Which are is not recorded for all, so some are announced again.
        if (unlocked || !isKnown(hash)) {
            announce(object, hash);
        }
        return hash;
    }

    private static void announce(Object object, int hash) {
        if (object instanceof Class) {
            // The class record of the trace introduces the mirror, too.
            classId((Class<?>) object);
            return;
        }
        int type = classId(object.getClass());
        write(HeapProxyPlatform.thread(), FOUND, hash, type, length(object));
        // Only now: who reads the table may rely on the event being there.
        remember(hash);
    }

    /**
     * The id of a class, whose record is written first if it was not. Mostly it was, when the class was prepared; but
     * there is no such event for array classes, nor for what virtual threads prepare. That the mirror has a hash says
     * nothing: programs use classes as keys.
     */
    private static int classId(Class<?> type) {
        int hash = hash(type);
        if (HeapProxyPlatform.get(classes + ((hash & CLASS_SLOTS - 1) << 2)) == hash) {
            return hash;
        }
        return searchClass(type, hash);
    }

    /** The stub fills the table by linear probing and never removes anything. */
    private static int searchClass(Class<?> type, int hash) {
        int slot = hash & CLASS_SLOTS - 1;
        for (;;) {
            int there = HeapProxyPlatform.get(classes + (slot << 2));
            if (there == hash) {
                return hash;
            }
            if (there == 0) {
                defineClass0(type);
                return hash;
            }
            slot = slot + 1 & CLASS_SLOTS - 1;
        }
    }

    private static int hash(Object object) {
        long mark = HeapProxyPlatform.mark(object);
        if ((mark & 7L) == 1L) {
            int hash = (int) (mark >>> hashShift) & hashMask;
            if (hash != 0) {
                return hash;
            }
        }
        return System.identityHashCode(object);
    }

    /**
     * Whether this id was announced. The table has one slot for many ids and no locks: a wrong "no" costs a
     * second announcement, which readers ignore.
     */
    private static boolean isKnown(int hash) {
        return HeapProxyPlatform.get(known + ((hash & KNOWN_SLOTS - 1) << 2)) == hash;
    }

    private static void remember(int hash) {
        HeapProxyPlatform.put(known + ((hash & KNOWN_SLOTS - 1) << 2), hash);
    }

    /** The length of an array, -1 for other objects. */
    private static int length(Object object) {
        if (object instanceof Object[]) {
            return ((Object[]) object).length;
        }
        if (object instanceof byte[]) {
            return ((byte[]) object).length;
        }
        if (object instanceof char[]) {
            return ((char[]) object).length;
        }
        if (object instanceof int[]) {
            return ((int[]) object).length;
        }
        if (object instanceof long[]) {
            return ((long[]) object).length;
        }
        if (object instanceof boolean[]) {
            return ((boolean[]) object).length;
        }
        if (object instanceof short[]) {
            return ((short[]) object).length;
        }
        if (object instanceof double[]) {
            return ((double[]) object).length;
        }
        if (object instanceof float[]) {
            return ((float[]) object).length;
        }
        return -1;
    }

    // What the stub calls

    /**
     * Links the natives, which runs Java code that is hooked itself, so it must be done before the hooks are on.
     * The VM finds them in the agent's library by their names; registering them instead would make it print a
     * warning. Returns 1.
     */
    static int link() {
        defineClass0(null);
        layout0(null);
        staticFieldAt0(null, 0L);
        return nextChunk(null, 0L) == -1L ? 1 : 0;
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

    /** The identity hash if the object has one already, else 0; draws one only if the mark word does not tell. */
    static int peekHash(Object object) {
        long mark = HeapProxyPlatform.mark(object);
        if ((mark & 7L) == 1L && hashMask != 0) {
            return (int) (mark >>> hashShift) & hashMask;
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
        return HeapProxyPlatform.layoutHelper(type, klassOffset, layoutOffset);
    }

    /**
     * Hands in the chunk that is written up to {@code at} (0: none) and returns where the next one starts, 0 if there
     * is none, -1 for no thread.
     */
    private static native long nextChunk(Thread thread, long at);

    /** Writes the class record of {@code type} unless it is written; does nothing for null. */
    private static native void defineClass0(Class<?> type);

    /**
     * The address of the layout of a class: {@code int} count, then for each field of a reference type that its
     * instances have, in order of offsets, {@code int} offset and {@code int} field reference. Never 0 but for null.
     */
    static native long layout0(Class<?> type);

    /** The field reference of the static field of a reference type at that offset of the mirror, 0 if there is none. */
    static native int staticFieldAt0(Class<?> mirror, long offset);
}
