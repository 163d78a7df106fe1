package java.lang;

import jdk.internal.misc.Unsafe;

/** What {@link HeapProxy} needs of the JDK and what changes between releases: for JDK 21 and later. */
final class HeapProxyRelease {

    private HeapProxyRelease() {
    }

    /** The thread whose buffer the caller writes: the carrier, whatever virtual thread runs on it. */
    static Thread thread() {
        return Thread.currentCarrierThread();
    }

    /** The reference at that offset of an object. */
    static Object reference(Object base, long offset) {
        return Unsafe.getUnsafe().getReference(base, offset);
    }
}
