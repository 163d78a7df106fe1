package java.lang;

import sun.misc.Unsafe;

/**
 * Stand-ins for the methods of Unsafe that store references or make objects. A plain store is reported before it is done, as
 * that of a {@code putfield}; what may fail or returns the old value, when it has been done.
 */
public final class HeapProxyUnsafe {

    private HeapProxyUnsafe() {
    }

    public static Object allocateInstance(Unsafe unsafe, Class<?> type) throws InstantiationException {
        Object object = unsafe.allocateInstance(type);
        HeapProxyCalls.madeFresh(object);
        return object;
    }

    public static void putObject(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putObject(base, offset, value);
    }

    public static void putObjectVolatile(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putObjectVolatile(base, offset, value);
    }

    public static void putOrderedObject(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putOrderedObject(base, offset, value);
    }

    public static boolean compareAndSwapObject(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.compareAndSwapObject(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static Object getAndSetObject(Unsafe unsafe, Object base, long offset, Object value) {
        Object old = unsafe.getAndSetObject(base, offset, value);
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return old;
    }
}
