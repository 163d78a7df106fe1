package java.lang;

/**
 * Counts of allocations by stack and class (docs/inside/counts.md): what hooks leave where objects have no ids and no events of their own.
 *
 * <p>A count is an event in the buffer of the thread, which is written once and added to in place. Behind the room for events, the buffer
 * has an index of them, a hash table without collisions lists. Its slots have the value of the stack and the class word of the object's header, so that of
 * all but the first object neither the number of the stack nor anything of its class has to be looked up. Each stack may be in one of four slots, a
 * line of the cache: stacks that are used in turn should not take each other's slot. If a fifth one takes it, the other gets another event, and
 * readers add up both. With each slice of time a thread begins a new buffer.
 */
final class HeapProxyTally {
    /** Bytes of units of size. Objects are aligned to as much at least. */
    private static final int UNIT = 3;
    private static final long MOST = 0xffffffffL;

    // A slot of the index: key, class word, and an int that says where the event is and how large an object is.
    private static final long CLASS_WORD = 8L;
    private static final long PLACE = 12L;
    private static final int SLOT_SHIFT = 4;
    /** Slots of a line of the cache, less one, in bytes. The index begins with a line. */
    private static final long OTHERS = 3L << SLOT_SHIFT;
    /** Of the place: how many words the event is before the end of the room. */
    private static final int BACK = (1 << 18) - 1;
    /** The bits above it: the units of an object that is no array; of arrays the size of the header, and the logarithm of that of an element. */
    private static final int SIZE_SHIFT = 18;
    private static final int ARRAY = 1 << 31;
    private static final int LOGARITHM_SHIFT = 24;
    private static final int HEADER = (1 << LOGARITHM_SHIFT - SIZE_SHIFT) - 1;
    /** In place of the units: each object is asked for its size. */
    private static final int ASK = (1 << 31 - SIZE_SHIFT) - 1;

    private HeapProxyTally() {
    }

    /**
     * The constructor of an object is about to be called by a method that leaves the stack in the thread, since it tells of its entry as well.
     * The stack gets its number, unless the buffer has a count for it.
     */
    static void site(long stack) {
        Thread thread = HeapProxyRelease.thread();
        long end = thread.etEnd;
        int site = 0;
        if (end != 0L) {
            long slot = slot(end, stack);
            for (long other = OTHERS; other != 0L && HeapProxyPlatform.getLong(slot) != stack; other -= 1L << SLOT_SHIFT) {
                slot = slot(end, stack) ^ other;
            }
            if (HeapProxyPlatform.getLong(slot) == stack) {
                site = HeapProxyPlatform.get(event(end, HeapProxyPlatform.get(slot + PLACE)) + 4L);
            }
        }
        thread.etSite = site != 0 ? site : HeapProxyStacks.site(stack);
        thread.etStack = stack;
    }

    /** The same where the stack has its number, or there is only a site. */
    static void site(int site) {
        Thread thread = HeapProxyRelease.thread();
        thread.etStack = 0L;
        thread.etSite = site;
    }

    /** Takes what {@link #site} has left off the thread, for a constructor that runs other code first. */
    static int takeSite() {
        Thread thread = HeapProxyRelease.thread();
        int site = thread.etSite;
        thread.etStack = 0L;
        thread.etSite = 0;
        return site;
    }

    /** {@code Object.<init>} runs on the object, and the method with the {@code new} has left the site. */
    static void objectOfSite(Thread thread, Object object) {
        long stack = thread.etStack;
        thread.etStack = 0L;
        int site = thread.etSite;
        thread.etSite = 0;
        long key = stack != 0L ? stack : site;
        if (!object(thread, object, key)) {
            first(thread, object, -1, site, key);
        }
    }

    /** The same for an object whose site was not left. Returns false if it is the first of a count. */
    static boolean object(Thread thread, Object object, long key) {
        // What Unsafe.allocateInstance or JNI made was counted then.
        return HeapProxyObjects.hasId(object) || again(thread, object, -1, key);
    }

    /** Native code, or the VM, has made the object just now, for the method that runs. */
    static void made(Object object) {
        int length = HeapProxyObjects.length(object);
        Thread thread = HeapProxyRelease.thread();
        if (length < 0) {
            if (HeapProxyObjects.hasId(object)) {
                return;
            }
            // A constructor may still run on it.
            HeapProxyObjects.identify(thread, object);
        }
        long stack = Thread.currentThread().etContext;
        if (!again(thread, object, length, stack)) {
            first(thread, object, length, HeapProxyStacks.site(stack), stack);
        }
    }

    /** An array was made by bytecode. */
    static void array(Object array, int length, int site) {
        try {
            Thread thread = HeapProxyRelease.thread();
            if (!again(thread, array, length, site)) {
                first(thread, array, length, site, site);
            }
        } catch (StackOverflowError noRoom) {
            HeapProxy.overflows++;
        }
    }

    /** Arrays were made by one instruction. */
    static void arrays(Object array, int dimensions, int site) {
        array(array, HeapProxyObjects.length(array), site);
        if (dimensions > 1) {
            Object[] elements = (Object[]) array;
            for (int i = 0; i < elements.length; i++) {
                if (elements[i] != null) {
                    arrays(elements[i], dimensions - 1, site);
                }
            }
        }
    }

    /** Adds an object to a count that the buffer has; false if it has none. */
    static boolean again(Thread thread, Object object, int length, long key) {
        long end = thread.etEnd;
        if (end == 0L || thread.etTicket != HeapProxyPlatform.getLong(HeapProxy.slice)) {
            return false;
        }
        int classWord = classWord(object);
        long slot = slot(end, key);
        if (!has(slot, key, classWord)) {
            slot = other(slot, key, classWord);
            if (slot == 0L) {
                return false;
            }
        }
        int place = HeapProxyPlatform.get(slot + PLACE);
        long at = event(end, place);
        long count = (HeapProxyPlatform.get(at + 12L) & MOST) + 1L;
        long sum = (HeapProxyPlatform.get(at + 16L) & MOST) + units(place, object, length);
        if (count > MOST || sum > MOST) {
            return false;
        }
        HeapProxyPlatform.put(at + 12L, (int) count);
        HeapProxyPlatform.put(at + 16L, (int) sum);
        return true;
    }

    /** The first object of a count. */
    static void first(Thread thread, Object object, int length, int site, long key) {
        // A class that has a count has its record.
        Class<?> type = object.getClass();
        int id = HeapProxyObjects.classId(type);
        long size = HeapProxyObjects.size(type, length, HeapProxy.alignment);
        int form = form(type, length, size);
        long units = (size != 0L ? size : HeapProxy.size0(object)) >>> UNIT;
        long at = thread.etPos;
        long end = thread.etEnd;
        long slice = HeapProxyPlatform.getLong(HeapProxy.slice);
        if (end == 0L || at >= end || thread.etTicket != slice) {
            at = HeapProxy.nextChunk(thread, end == 0L ? 0L : at);
            if (at == 0L) {
                // Tracing ended, or there is no buffer to give: the stub counts that.
                thread.etEnd = 0L;
                return;
            }
            end = at + HeapProxy.chunkRoom;
            // Every buffer starts with a ticket.
            long ticket = HeapProxyPlatform.nextTicket(HeapProxy.counter);
            HeapProxyPlatform.put(at, (int) ticket << 8 | HeapProxyBuffer.TICKET, (int) (ticket >>> 24));
            at += 8L;
            thread.etPos = at;
            thread.etEnd = end;
            thread.etTicket = slice;
        }
        HeapProxyPlatform.put(at + 16L, (int) units);
        HeapProxyPlatform.put(at, HeapProxyBuffer.COUNTED, site, id, 1);
        thread.etPos = at + 20L;
        int classWord = classWord(object);
        long slot = free(slot(end, key));
        HeapProxyPlatform.putLong(slot, key);
        HeapProxyPlatform.put(slot + PLACE, (int) (end - at >> 2) | form);
        HeapProxyPlatform.put(slot + CLASS_WORD, classWord);
    }

    /** What tells the class in the header of an object, wherever that is: an object of another class has another one. */
    private static int classWord(Object object) {
        return (int) (HeapProxyPlatform.word(object, HeapProxy.classWordOffset) >>> HeapProxy.classWordShift);
    }

    /** Whether a slot is that of a stack and of a class. */
    private static boolean has(long slot, long key, int classWord) {
        return HeapProxyPlatform.getLong(slot) == key && HeapProxyPlatform.get(slot + CLASS_WORD) == classWord
            && HeapProxyPlatform.get(slot + PLACE) != 0;
    }

    /** The other slot of the line that is that of a stack and of a class; 0: none is. */
    private static long other(long slot, long key, int classWord) {
        for (long other = OTHERS; other != 0L; other -= 1L << SLOT_SHIFT) {
            if (has(slot ^ other, key, classWord)) {
                return slot ^ other;
            }
        }
        return 0L;
    }

    /** A slot of the line that has no stack yet; this one, if all have. */
    private static long free(long slot) {
        for (long other = 0L; other <= OTHERS; other += 1L << SLOT_SHIFT) {
            if (HeapProxyPlatform.get((slot ^ other) + PLACE) == 0) {
                return slot ^ other;
            }
        }
        return slot;
    }

    /** The event of a slot that says that it is at this place. */
    private static long event(long end, int place) {
        return end - ((long) (place & BACK) << 2);
    }

    private static long slot(long end, long key) {
        int hash = (int) (key * HeapProxyStacks.SPREAD >>> 32);
        return end + HeapProxy.indexOffset + ((long) (hash >>> HeapProxy.indexShift) << SLOT_SHIFT);
    }

    /** What a slot says of the sizes of objects of a class. */
    private static int form(Class<?> type, int length, long size) {
        if (size != 0L && length < 0) {
            return (int) Math.min(size >>> UNIT, ASK) << SIZE_SHIFT;
        }
        if (size != 0L) {
            int header = HeapProxyObjects.headerSize(type);
            if (header <= HEADER) {
                return ARRAY | HeapProxyObjects.elementShift(type) << LOGARITHM_SHIFT | header << SIZE_SHIFT;
            }
        }
        return ASK << SIZE_SHIFT;
    }

    private static long units(int place, Object object, int length) {
        int form = place >>> SIZE_SHIFT;
        if (place < 0) {
            int alignment = HeapProxy.alignment;
            long size = (form & HEADER) + ((long) length << (place >>> LOGARITHM_SHIFT & 3));
            return (size + alignment - 1 & -alignment) >>> UNIT;
        }
        return form != ASK ? form : size(object, length) >>> UNIT;
    }

    private static long size(Object object, int length) {
        long size = HeapProxyObjects.size(object.getClass(), length, HeapProxy.alignment);
        return size != 0L ? size : HeapProxy.size0(object);
    }
}
