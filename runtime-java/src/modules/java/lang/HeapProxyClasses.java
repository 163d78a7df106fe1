package java.lang;

import java.nio.ByteBuffer;
import java.security.ProtectionDomain;

import jdk.internal.misc.Unsafe;

/**
 * Stand-ins for the native methods that define classes (JDK 9 and later): the agent rewrites the bytes first, with the
 * same rewriter that made this JDK. The rules of {@link HeapProxy} hold here, too.
 *
 * <p>The program's locks are held here: of class loaders, of whatever a static initialiser runs in. So nothing is
 * called that could wait for another thread.
 */
public final class HeapProxyClasses {
    /**
     * Set by the agent: classes made at run time are to be rewritten. The module system may make some before the agent can set
     * anything; so it is asked when the first class is to be defined.
     */
    static boolean on = early();

    private HeapProxyClasses() {
    }

    public static Class<?> defineClass0(ClassLoader loader, Class<?> lookup, String name, byte[] bytes, int offset,
            int length, ProtectionDomain domain, boolean initialize, int flags, Object classData) {
        byte[] ours = rewritten(bytes, offset, length);
        if (ours != null) {
            try {
                return defined(ClassLoader.defineClass0(loader, lookup, name, ours, 0, ours.length - ID_BYTES, domain,
                        initialize, flags, classData), ours);
            } catch (ClassFormatError error) {
                refused0(ours);
            }
        }
        return ClassLoader.defineClass0(loader, lookup, name, bytes, offset, length, domain, initialize, flags,
                classData);
    }

    public static Class<?> defineClass1(ClassLoader loader, String name, byte[] bytes, int offset, int length,
            ProtectionDomain domain, String source) {
        byte[] ours = rewritten(bytes, offset, length);
        if (ours != null) {
            try {
                return defined(ClassLoader.defineClass1(loader, name, ours, 0, ours.length - ID_BYTES, domain, source),
                        ours);
            } catch (ClassFormatError error) {
                refused0(ours);
            }
        }
        return ClassLoader.defineClass1(loader, name, bytes, offset, length, domain, source);
    }

    public static Class<?> defineClass2(ClassLoader loader, String name, ByteBuffer bytes, int offset, int length,
            ProtectionDomain domain, String source) {
        byte[] ours = on && bytes != null ? rewriteBuffer0(bytes, offset, length) : null;
        if (ours != null) {
            try {
                return defined(ClassLoader.defineClass1(loader, name, ours, 0, ours.length - ID_BYTES, domain, source),
                        ours);
            } catch (ClassFormatError error) {
                refused0(ours);
            }
        }
        return ClassLoader.defineClass2(loader, name, bytes, offset, length, domain, source);
    }

    public static Class<?> defineClass0(Unsafe unsafe, String name, byte[] bytes, int offset, int length, ClassLoader loader,
            ProtectionDomain domain) {
        byte[] ours = rewritten(bytes, offset, length);
        if (ours != null) {
            try {
                return defined(unsafe.defineClass0(name, ours, 0, ours.length - ID_BYTES, loader, domain), ours);
            } catch (ClassFormatError error) {
                refused0(ours);
            }
        }
        return unsafe.defineClass0(name, bytes, offset, length, loader, domain);
    }

    private static boolean early() {
        try {
            return early0();
        } catch (UnsatisfiedLinkError error) {
            // This JDK runs without the agent.
            return false;
        }
    }

    private static native boolean early0();

    /** Bytes behind a rewritten class, see {@link #rewrite0}. */
    static final int ID_BYTES = 4;

    /** The bytes to define instead, null for those given. Arguments that the native method will refuse are left to it. */
    static byte[] rewritten(byte[] bytes, int offset, int length) {
        if (!on || bytes == null || offset < 0 || length < 0 || length > bytes.length - offset) {
            return null;
        }
        return rewrite0(bytes, offset, length);
    }

    /** Tells the agent which class has come of bytes that it rewrote. */
    static Class<?> defined(Class<?> type, byte[] ours) {
        if (type != null) {
            defined0(type, ours);
        }
        return type;
    }

    /** A rewritten class without its id. */
    static byte[] cut(byte[] ours) {
        byte[] bytes = new byte[ours.length - ID_BYTES];
        System.arraycopy(ours, 0, bytes, 0, bytes.length);
        return bytes;
    }

    /** Links the natives, see {@link HeapProxy#link}. */
    static void link() {
        rewrite0(null, 0, 0);
        rewriteBuffer0(null, 0, 0);
        defined0(null, null);
        refused0(null);
    }

    /** A rewritten class followed by its id in four bytes; null if the class is to stay as it is. */
    private static native byte[] rewrite0(byte[] bytes, int offset, int length);

    /** As {@link #rewrite0}, for a direct buffer, whose position plays no part. */
    private static native byte[] rewriteBuffer0(ByteBuffer bytes, int offset, int length);

    private static native void defined0(Class<?> type, byte[] ours);

    /** The VM refused what we made of a class; the original is tried next, so that the error, if any, is the VM's own. */
    static native void refused0(byte[] ours);
}
