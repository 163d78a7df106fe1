package java.lang;

import sun.misc.Unsafe;

/** What {@link HeapProxy} needs of the JDK, for JDK 8. */
final class HeapProxyPlatform {
    /** Set by the stub: the getter looks at its caller's class loader, and a static initialiser is not to be had. */
    static Unsafe unsafe;

    private HeapProxyPlatform() {
    }

    /** The first word of the object's header. */
    static long mark(Object object) {
        return unsafe.getLong(object, 0L);
    }

    /** Exchanges the first word of the object's header; false if it is not the expected one. */
    static boolean setMark(Object object, long expected, long mark) {
        return unsafe.compareAndSwapLong(object, 0L, expected, mark);
    }

    /** The last ticket given out, read after everything that the caller has read before. */
    static long lastTicket(long counter) {
        unsafe.loadFence();
        return unsafe.getLongVolatile(null, counter);
    }

    static long nextTicket(long counter) {
        long ticket = unsafe.getAndAddLong(null, counter, 1L) + 1L;
        // As in the one for later releases.
        unsafe.storeFence();
        return ticket;
    }

    static int get(long at) {
        return unsafe.getInt(at);
    }

    /** What was stored before that value is there is seen by later reads. */
    static int getAcquire(long at) {
        return unsafe.getIntVolatile(null, at);
    }

    /** As {@link #getAcquire}. */
    static long getLongAcquire(long at) {
        return unsafe.getLongVolatile(null, at);
    }

    static long getLong(long at) {
        return unsafe.getLong(at);
    }

    static void put(long at, int first) {
        unsafe.putInt(at, first);
    }

    static void putLong(long at, long value) {
        unsafe.putLong(at, value);
    }

    // The first word goes in last: a reader that comes upon an unfinished event sees a zero and stops there.

    static void put(long at, int first, int a) {
        unsafe.putInt(at + 4L, a);
        unsafe.putInt(at, first);
    }

    static void put(long at, int first, int a, int b) {
        unsafe.putInt(at + 4L, a);
        unsafe.putInt(at + 8L, b);
        unsafe.putInt(at, first);
    }

    static void put(long at, int first, int a, int b, int c) {
        unsafe.putInt(at + 4L, a);
        unsafe.putInt(at + 8L, b);
        unsafe.putInt(at + 12L, c);
        unsafe.putInt(at, first);
    }

    /** Memory outside the heap, filled with zeros. */
    static long memory(long bytes) {
        long at = unsafe.allocateMemory(bytes);
        unsafe.setMemory(at, bytes, (byte) 0);
        return at;
    }

    /** Exchanges eight bytes outside the heap; false if they are not the expected ones. */
    static boolean exchange(long at, long expected, long value) {
        return unsafe.compareAndSwapLong(null, at, expected, value);
    }

    /** Eight bytes of an object. */
    static long word(Object base, long offset) {
        return unsafe.getLong(base, offset);
    }

    /** Four bytes of an object. */
    static int intAt(Object base, long offset) {
        return unsafe.getInt(base, offset);
    }
}
