package java.lang;

import jdk.internal.vm.annotation.DontInline;

/**
 * Counts of allocations by stack and class (docs/inside/counts.md): what hooks leave where objects have no ids and no events of their own.
 *
 * <p>A count is an event in the buffer of the thread, which is written once and added to in place. Behind the room for events, the buffer
 * has an index of them: for each stack and class one slot, which tells how far the event is from the end. Another stack that needs the
 * slot takes it; then the first one gets another event, and readers add up both. With each slice of time a thread begins a new buffer.
 */
final class HeapProxyTally {
    /** Bytes of units of size. Objects are aligned to as much at least. */
    private static final int UNIT = 3;
    private static final long MOST = 0xffffffffL;

    private HeapProxyTally() {
    }

    /** {@code Object.<init>} ran on the object. */
    @DontInline
    static void object(Object object) {
        Thread thread = HeapProxyRelease.thread();
        int site = thread.etSite;
        thread.etSite = 0;
        // What Unsafe.allocateInstance or JNI made was counted then.
        if (!HeapProxyObjects.hasId(object)) {
            add(thread, object, -1, site);
        }
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
        add(thread, object, length, HeapProxyStacks.site(Thread.currentThread().etContext));
    }

    /** An array was made by bytecode. */
    @DontInline
    static void array(Object array, int length, int site) {
        try {
            add(HeapProxyRelease.thread(), array, length, site);
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

    private static void add(Thread thread, Object object, int length, int site) {
        Class<?> type = object.getClass();
        int id = HeapProxyObjects.hash(type);
        long units = size(object, type, length) >>> UNIT;
        long end = thread.etEnd;
        if (end != 0L && thread.etTicket == HeapProxyPlatform.getLong(HeapProxy.slice)) {
            int back = HeapProxyPlatform.get(slot(end, site, id));
            long at = end - back;
            if (back != 0 && HeapProxyPlatform.get(at + 4L) == site && HeapProxyPlatform.get(at + 8L) == id && add(at, units)) {
                return;
            }
        }
        // A class that has a count has its record.
        begin(thread, site, HeapProxyObjects.classId(type), units);
    }

    /** Adds an object to a count; false if there is no room for it in the number. */
    private static boolean add(long at, long units) {
        long count = (HeapProxyPlatform.get(at + 12L) & MOST) + 1L;
        long sum = (HeapProxyPlatform.get(at + 16L) & MOST) + units;
        if (count > MOST || sum > MOST) {
            return false;
        }
        HeapProxyPlatform.put(at + 12L, (int) count);
        HeapProxyPlatform.put(at + 16L, (int) sum);
        return true;
    }

    /** The first object of a count. */
    private static void begin(Thread thread, int site, int id, long units) {
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
        HeapProxyPlatform.put(slot(end, site, id), (int) (end - at));
    }

    private static long slot(long end, int site, int id) {
        int hash = (site * 31 + id) * 0x9e3779b1;
        return end + HeapProxy.indexOffset + ((hash >>> HeapProxy.indexShift) << 2);
    }

    private static long size(Object object, Class<?> type, int length) {
        long size = HeapProxyObjects.size(type, length, HeapProxy.alignment);
        return size != 0L ? size : HeapProxy.size0(object);
    }
}
