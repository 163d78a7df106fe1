package java.lang;

import jdk.internal.misc.Unsafe;

/** What {@link HeapProxy} needs of the JDK and what changes between releases: for JDK 9 to 11. */
final class HeapProxyRelease {

    private HeapProxyRelease() {
    }

    /** The thread whose buffer the caller writes. */
    static Thread thread() {
        return Thread.currentThread();
    }

    /** The reference at that offset of an object. */
    static Object reference(Object base, long offset) {
        return Unsafe.getUnsafe().getObject(base, offset);
    }
}
