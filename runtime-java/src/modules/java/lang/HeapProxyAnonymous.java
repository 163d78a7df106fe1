package java.lang;

import jdk.internal.misc.Unsafe;

/** As {@link HeapProxyClasses}, for the anonymous classes that JDK 9 to 16 had in place of hidden ones. */
public final class HeapProxyAnonymous {

    private HeapProxyAnonymous() {
    }

    /** Patches are by index of the constant pool: rewriting only appends to it. */
    public static Class<?> defineAnonymousClass(Unsafe unsafe, Class<?> host, byte[] bytes, Object[] patches) {
        byte[] ours = bytes == null ? null : HeapProxyClasses.rewritten(bytes, 0, bytes.length);
        if (ours != null) {
            try {
                // The native method takes the whole array, and the VM no bytes behind the class.
                return HeapProxyClasses.defined(unsafe.defineAnonymousClass(host, HeapProxyClasses.cut(ours), patches), ours);
            } catch (ClassFormatError error) {
                HeapProxyClasses.refused0(ours);
            }
        }
        return unsafe.defineAnonymousClass(host, bytes, patches);
    }
}
