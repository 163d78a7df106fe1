package java.lang;

import jdk.internal.misc.Unsafe;

/** What {@link HeapProxy} needs of the JDK, for JDK 9 and later. */
final class HeapProxyPlatform {

    private HeapProxyPlatform() {
    }

    /** The first word of the object's header. */
    static long mark(Object object) {
        return Unsafe.getUnsafe().getLong(object, 0L);
    }

    /** Exchanges the first word of the object's header; false if it is not the expected one. */
    static boolean setMark(Object object, long expected, long mark) {
        return Unsafe.getUnsafe().compareAndSetLong(object, 0L, expected, mark);
    }

    /** The last ticket given out, read after everything that the caller has read before. */
    static long lastTicket(long counter) {
        Unsafe.getUnsafe().loadFence();
        return Unsafe.getUnsafe().getLongAcquire(null, counter);
    }

    /**
     * A ticket, which whoever sees a later store of this thread sees as given out. The fence is for ARM, where later stores may be
     * seen before the one of an atomic addition (docs/inside/arm.md); on x86 it is no instruction.
     */
    static long nextTicket(long counter) {
        long ticket = Unsafe.getUnsafe().getAndAddLong(null, counter, 1L) + 1L;
        Unsafe.getUnsafe().storeFence();
        return ticket;
    }

    static int get(long at) {
        return Unsafe.getUnsafe().getInt(at);
    }

    /** What was stored before that value is there is seen by later reads. */
    static int getAcquire(long at) {
        return Unsafe.getUnsafe().getIntAcquire(null, at);
    }

    /** As {@link #getAcquire}. */
    static long getLongAcquire(long at) {
        return Unsafe.getUnsafe().getLongAcquire(null, at);
    }

    static long getLong(long at) {
        return Unsafe.getUnsafe().getLong(at);
    }

    static void put(long at, int first) {
        Unsafe.getUnsafe().putInt(at, first);
    }

    static void putLong(long at, long value) {
        Unsafe.getUnsafe().putLong(at, value);
    }

    // The first word goes in last: a reader that comes upon an unfinished event sees a zero and stops there.

    static void put(long at, int first, int a) {
        Unsafe.getUnsafe().putInt(at + 4L, a);
        Unsafe.getUnsafe().putInt(at, first);
    }

    static void put(long at, int first, int a, int b) {
        Unsafe.getUnsafe().putInt(at + 4L, a);
        Unsafe.getUnsafe().putInt(at + 8L, b);
        Unsafe.getUnsafe().putInt(at, first);
    }

    static void put(long at, int first, int a, int b, int c) {
        Unsafe.getUnsafe().putInt(at + 4L, a);
        Unsafe.getUnsafe().putInt(at + 8L, b);
        Unsafe.getUnsafe().putInt(at + 12L, c);
        Unsafe.getUnsafe().putInt(at, first);
    }

    /** Memory outside the heap, filled with zeros. */
    static long memory(long bytes) {
        long at = Unsafe.getUnsafe().allocateMemory(bytes);
        Unsafe.getUnsafe().setMemory(at, bytes, (byte) 0);
        return at;
    }

    /** Exchanges eight bytes outside the heap; false if they are not the expected ones. */
    static boolean exchange(long at, long expected, long value) {
        return Unsafe.getUnsafe().compareAndSetLong(null, at, expected, value);
    }

    /** Eight bytes of an object. */
    static long word(Object base, long offset) {
        return Unsafe.getUnsafe().getLong(base, offset);
    }

    /** Four bytes of an object. */
    static int intAt(Object base, long offset) {
        return Unsafe.getUnsafe().getInt(base, offset);
    }
}
