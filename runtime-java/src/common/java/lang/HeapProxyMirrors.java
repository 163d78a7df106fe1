package java.lang;

/**
 * What the VM has put into a class's mirror when it made the class. The places are HotSpot's; the agent finds them out
 * and sets them here, or leaves 0 where it cannot.
 */
final class HeapProxyMirrors {
    /** Of the lock of the class's initialisation, null once that is done. */
    static long lockOffset;
    /** Of the number of static fields of reference types, an int. */
    static long countOffset;
    /** Of the first of these fields. They stand in a row. */
    static long staticsOffset;

    private HeapProxyMirrors() {
    }

    /**
     * Tells of what the VM has made for a class whose initialiser has not run: the lock, and the strings of static final
     * fields that have a constant.
     */
    static void announce(Class<?> type) {
        if (lockOffset != 0L) {
            HeapProxyCalls.made(HeapProxyRelease.reference(type, lockOffset));
        }
        if (countOffset != 0L) {
            int count = HeapProxyPlatform.intAt(type, countOffset);
            for (int i = 0; i < count; i++) {
                Object constant = HeapProxyRelease.reference(type, staticsOffset + ((long) i << HeapProxy.elementShift));
                if (constant instanceof String) {
                    HeapProxyCalls.constant(constant);
                }
            }
        }
    }

    /**
     * Tells of what a class's constant pool has come to hold and no code has used: compilers have all strings of a class
     * resolved when they compile one of its methods.
     */
    static void announceAll(Object[] references) {
        for (int i = 0; i < references.length; i++) {
            HeapProxyCalls.constant(references[i]);
        }
    }
}
