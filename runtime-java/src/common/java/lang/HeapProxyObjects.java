package java.lang;

import jdk.internal.vm.annotation.DontInline;

/**
 * The ids of objects, and what is said of an object when it is seen for the first time: that it is there, and what it
 * refers to.
 */
final class HeapProxyObjects {
    /**
     * How far objects that nobody told of are followed. What lies beyond is announced without what it refers to. The
     * longest chains known are the backtraces of exceptions: an array for every 32 frames.
     */
    static final int DEPTH = 40;
    /** The bit of updates in {@code Thread.etEvents}. */
    private static final int UPDATE = 2;
    /** And that of stacks. */
    private static final int STACKS = 64;

    /** Slots of the table at {@link HeapProxy#known}; the stub allocates as many. */
    private static final int KNOWN_SLOTS = 1 << 16;
    /** Slots of the table at {@link HeapProxy#classes}. */
    private static final int CLASS_SLOTS = 1 << 18;

    private HeapProxyObjects() {
    }

    /** Whether the hooks of this JDK report updates. */
    private static boolean reportsUpdates() {
        return (Thread.etEvents & UPDATE) != 0;
    }

    /**
     * The identity hash of an object, 0 for null. The first sight of an object writes an event.
     *
     * <p>Not inlined: C2 puts barriers round what is read from a header, and so many hooks ask for ids that their graphs, half of
     * all that it compiles, are a tenth smaller with a call (docs/inside/decisions.md).
     */
    @DontInline
    static int id(Object object) {
        return id(object, HeapProxyBuffer.FOUND, DEPTH);
    }

    /** As {@link #id(Object)}; {@code kind} is the event for an object that is seen for the first time. */
    static int id(Object object, int kind, int depth) {
        if (object == null) {
            return 0;
        }
        int hash = markedHash(object);
        return hash != 0 ? hash : askId(object, kind, depth);
    }

    /** The hash that the mark word tells, or the lock whose address it is; 0 if neither does. */
    private static int markedHash(Object object) {
        long mark = HeapProxyPlatform.mark(object);
        if (((mark ^ 1L) & HeapProxy.hidden) == 0L) {
            return hashIn(mark);
        }
        return (mark & 3L) == 0L ? stackedHash(mark) : 0;
    }

    /** The hash in a mark word that has one or has room for one, 0 if it has none. */
    static int hashIn(long mark) {
        return (int) (mark >>> HeapProxy.hashShift) & HeapProxy.hashMask;
    }

    /**
     * The hash of an object that the current thread has locked: the mark word is the address of the lock, on the thread's own stack, and
     * the lock begins with the mark word that was there before. It stays there until the thread unlocks the object, whoever
     * waits for the monitor meanwhile. What other threads have locked may be unlocked at any moment.
     */
    private static int stackedHash(long mark) {
        Thread thread = HeapProxyRelease.thread();
        if (mark < thread.etStackLow || mark >= thread.etStackHigh) {
            return 0;
        }
        long before = HeapProxyPlatform.getLong(mark);
        return (before & 7L) == 1L ? hashIn(before) : 0;
    }

    /**
     * Whether the object has no id yet. False if the mark word does not tell. Where it tells of locked objects, too, this is what
     * has them announced before others can see the id there.
     */
    static boolean isNew(Object object) {
        long mark = HeapProxyPlatform.mark(object);
        return ((mark ^ 1L) & HeapProxy.hidden) == 0L && HeapProxy.hashMask != 0
            && hashIn(mark) == 0;
    }

    /** Whether the object surely has an id. */
    static boolean hasId(Object object) {
        return markedHash(object) != 0 || HeapProxy.tagged && HeapProxy.tag0(object, false) != 0;
    }

    private static int askId(Object object, int kind, int depth) {
        boolean isNew = HeapProxy.tagged || isNew(object);
        if (HeapProxy.tagged) {
            int known = HeapProxy.tag0(object, false);
            if (known != 0) {
                return known;
            }
        } else if (!isNew) {
            // A locked object may well be known. Which are is not recorded for all, so some are announced again.
            int known = System.identityHashCode(object);
            if (isKnown(known)) {
                return known;
            }
        }
        if (object instanceof Class) {
            // The class record of the trace introduces the mirror, too.
            return classId((Class<?>) object);
        }
        int hash = announce(object, kind);
        if (isNew && depth > 0) {
            contents(object, hash, kind, depth - 1);
        }
        return hash;
    }

    /** Writes that the object is there. Should the stack end in between, the object has no id yet, and is still to be told of. */
    private static int announce(Object object, int kind) {
        int type = classId(object.getClass());
        int length = length(object);
        int stack = stack(kind);
        Thread thread = HeapProxyRelease.thread();
        long at = HeapProxyBuffer.room(thread);
        int hash = draw(thread, object);
        if (stack == 0) {
            HeapProxyPlatform.put(at, kind, hash, type, length);
            thread.etPos = at + 16L;
        } else {
            HeapProxyPlatform.put(at + 16L, length);
            HeapProxyPlatform.put(at, kind & ~0xff | HeapProxyBuffer.MADE_AT, stack, hash, type);
            thread.etPos = at + 20L;
        }
        // Only now: who reads the table may rely on the event being there.
        remember(hash);
        if (HeapProxy.asked != 0) {
            HeapProxy.ask(object, hash);
        }
        if (HeapProxyCounts.active != null && kind != HeapProxyBuffer.FOUND) {
            HeapProxyCounts.count(object, 0);
        }
        return hash;
    }

    /**
     * The stack whose last call made the object, 0 if that is not known. Nobody has called what made a constant, and what is found was
     * made anywhere.
     */
    private static int stack(int kind) {
        if ((Thread.etEvents & STACKS) == 0 || kind == HeapProxyBuffer.FOUND || kind == HeapProxyBuffer.MADE_CONSTANT) {
            return 0;
        }
        return HeapProxyStacks.site(Thread.currentThread().etContext);
    }

    /**
     * {@link #identify}, with more of the stack in use than it takes to write an event: if there is room for the one, there
     * is for the other.
     */
    static int draw(Thread thread, Object object) {
        return draw(thread, object, 0L, 0L, 0L);
    }

    private static int draw(Thread thread, Object object, long a, long b, long c) {
        return draw(thread, object, a, b, c, 0L, 0L);
    }

    private static int draw(Thread thread, Object object, long a, long b, long c, long d, long e) {
        return identify(thread, object);
    }

    /**
     * Gives the object an id if it has none: the thread's next one, written into the mark word as its identity hash, which
     * takes a fraction of the time that the VM takes to draw one. Where the word cannot be written the VM draws.
     *
     * <p>Others may have the object, too, so that the word is only exchanged for what was read. It also keeps C2 from leaving
     * out an object that nothing but a store into its mark word is done with, and from making it again without.
     */
    static int identify(Thread thread, Object object) {
        long mark = HeapProxyPlatform.mark(object);
        if ((mark & HeapProxy.unhashed) == 1L) {
            long ids = thread.etIds;
            if (ids >>> 32 == 0L) {
                ids = HeapProxy.moreIds();
                thread.etIds = ids;
            }
            int id = (int) ids;
            if (id != 0 && HeapProxyPlatform.setMark(object, mark, mark | (long) id << HeapProxy.hashShift)) {
                thread.etIds = (ids >>> 32) - 1L << 32 | nextId(id);
                return id;
            }
        }
        return ask(object);
    }

    /** The id of an object whose mark word does not tell it, given only now perhaps. */
    static int ask(Object object) {
        return HeapProxy.tagged ? HeapProxy.tag0(object, true) : System.identityHashCode(object);
    }

    /** Park and Miller's generator, as the stub has it, which gives out parts of its sequence: times 16807, modulo 2^31-1. */
    static int nextId(int id) {
        long product = 16807L * id;
        int sum = (int) (product & 0x7fffffffL) + (int) (product >>> 31);
        return (sum & 0x7fffffff) + (sum >>> 31);
    }

    /**
     * Reports what a new object refers to. Of a found object updates are all that matters; objects that the VM made are
     * looked through anyway, for what it made together with them.
     */
    private static void contents(Object object, int hash, int kind, int depth) {
        int inner = HeapProxyBuffer.FOUND;
        if (kind != inner) {
            inner = HeapProxyBuffer.MADE;
        } else if (!reportsUpdates()) {
            return;
        }
        if (object instanceof Object[]) {
            Object[] array = (Object[]) object;
            int length = array.length;
            // Slots are null at birth.
            int start = 0;
            while (start < length && array[start] == null) {
                start++;
            }
            while (length > start && array[length - 1] == null) {
                length--;
            }
            elements(array, start, length, inner, depth);
        } else if (length(object) < 0) {
            fields(object, hash, false, inner, depth);
        }
    }

    /** Reports what an object's fields hold; with {@code nulls} those that hold nothing, too. */
    static void fields(Object object, int hash, boolean nulls, int kind, int depth) {
        if (HeapProxy.layouts == 0L) {
            return;
        }
        long at = HeapProxyFields.layout(object.getClass());
        int count = HeapProxyPlatform.get(at);
        at += 4L;
        for (int i = 0; i < count; i++) {
            // All of the layout before the object: it is there as long as the class, which the object may be the last to hold.
            int field = HeapProxyPlatform.get(at + 4L);
            Object target = HeapProxyRelease.reference(object, HeapProxyPlatform.get(at));
            if (nulls || target != null) {
                int to = id(target, kind, depth);
                if (reportsUpdates()) {
                    HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.READ_FIELD, field, hash, to);
                }
            }
            at += 8L;
        }
    }

    /** Reports what the elements from {@code start} to {@code end} hold. */
    static void elements(Object[] array, int start, int end, int kind, int depth) {
        int hash = id(array);
        int next = start;
        while (next < end) {
            // May write events, so it comes before the position is read.
            int first = id(array[next], kind, depth);
            if (!reportsUpdates()) {
                next++;
                continue;
            }
            Thread thread = HeapProxyRelease.thread();
            long at = HeapProxyBuffer.room(thread);
            if (at == HeapProxy.nowhere) {
                // Nor will there be room for the others, which are many perhaps.
                return;
            }
            HeapProxyPlatform.put(at + 12L, first);
            int count = 1;
            while (count < HeapProxyBuffer.MAX_ELEMENTS && next + count < end) {
                int target = knownId(array[next + count]);
                if (target < 0) {
                    break;
                }
                HeapProxyPlatform.put(at + 12L + (count << 2), target);
                count++;
            }
            HeapProxyPlatform.put(at, count << 8 | HeapProxyBuffer.PUT_ELEMENTS, next, hash);
            thread.etPos = at + 12L + (count << 2);
            next += count;
        }
    }

    /** The id of an object, 0 for null, -1 if it would have to be announced first. */
    private static int knownId(Object object) {
        if (object == null) {
            return 0;
        }
        int hash = markedHash(object);
        return hash != 0 ? hash : -1;
    }

    /**
     * The id of a class, whose record is written first if it was not. Mostly it was, when the class was prepared; but
     * there is no such event for array classes, nor for what virtual threads prepare. That the mirror has a hash says
     * nothing: programs use classes as keys.
     */
    static int classId(Class<?> type) {
        int hash = hash(type);
        if (HeapProxyPlatform.get(HeapProxy.classes + ((hash & CLASS_SLOTS - 1) << 2)) == hash) {
            return hash;
        }
        return searchClass(type, hash);
    }

    /** The stub fills the table by linear probing. Where it has removed a class there is no id, but no 0 either. */
    private static int searchClass(Class<?> type, int hash) {
        int slot = hash & CLASS_SLOTS - 1;
        for (;;) {
            int there = HeapProxyPlatform.get(HeapProxy.classes + (slot << 2));
            if (there == hash) {
                return hash;
            }
            if (there == 0) {
                HeapProxy.defineClass0(type);
                return hash;
            }
            slot = slot + 1 & CLASS_SLOTS - 1;
        }
    }

    /** The id that an object has or gets; nobody is told of it. */
    static int hash(Object object) {
        int hash = markedHash(object);
        return hash != 0 ? hash : ask(object);
    }

    /**
     * Whether this id was announced. The table has one slot for many ids and no locks: a wrong "no" costs a
     * second announcement, which readers ignore.
     */
    private static boolean isKnown(int hash) {
        return HeapProxyPlatform.get(HeapProxy.known + ((hash & KNOWN_SLOTS - 1) << 2)) == hash;
    }

    private static void remember(int hash) {
        HeapProxyPlatform.put(HeapProxy.known + ((hash & KNOWN_SLOTS - 1) << 2), hash);
    }

    /**
     * The size of an object, -1 being the length of one that is no array, from HotSpot's layout helper: of instances itself, but for a
     * flag in the lowest bit; of arrays the size of the header in its third byte, and the logarithm of that of an element in the first. 0
     * if it does not tell.
     */
    static long size(Class<?> type, int length, int alignment) {
        int helper = HeapProxy.layoutHelper(type);
        if (helper > 0) {
            return helper & ~1;
        }
        if (helper == 0 || length < 0) {
            return 0L;
        }
        long size = (helper >> 16 & 0xff) + ((long) length << (helper & 0xff));
        return size + alignment - 1 & -alignment;
    }

    /** Of a class of arrays whose {@link #size} is known: the size of the header. */
    static int headerSize(Class<?> type) {
        return HeapProxy.layoutHelper(type) >> 16 & 0xff;
    }

    /** The same: the logarithm of the size of an element. */
    static int elementShift(Class<?> type) {
        return HeapProxy.layoutHelper(type) & 0xff;
    }

    /** The length of an array, -1 for other objects. */
    static int length(Object object) {
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
}
