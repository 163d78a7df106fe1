package java.lang;

import jdk.internal.misc.Unsafe;

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

    public static Object allocateUninitializedArray(Unsafe unsafe, Class<?> type, int length) {
        Object array = unsafe.allocateUninitializedArray(type, length);
        HeapProxyCalls.madeFresh(array);
        return array;
    }

    public static void putReference(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putReference(base, offset, value);
    }

    public static void putReferenceVolatile(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putReferenceVolatile(base, offset, value);
    }

    public static void putReferenceOpaque(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putReferenceOpaque(base, offset, value);
    }

    public static void putReferenceRelease(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putReferenceRelease(base, offset, value);
    }

    public static boolean compareAndSetReference(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.compareAndSetReference(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetReference(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetReference(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetReferencePlain(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetReferencePlain(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetReferenceAcquire(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetReferenceAcquire(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetReferenceRelease(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetReferenceRelease(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static Object compareAndExchangeReference(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        Object found = unsafe.compareAndExchangeReference(base, offset, expected, value);
        if (found == expected && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return found;
    }

    public static Object compareAndExchangeReferenceAcquire(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        Object found = unsafe.compareAndExchangeReferenceAcquire(base, offset, expected, value);
        if (found == expected && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return found;
    }

    public static Object compareAndExchangeReferenceRelease(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        Object found = unsafe.compareAndExchangeReferenceRelease(base, offset, expected, value);
        if (found == expected && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return found;
    }

    public static Object getAndSetReference(Unsafe unsafe, Object base, long offset, Object value) {
        Object old = unsafe.getAndSetReference(base, offset, value);
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return old;
    }

    public static Object getAndSetReferenceAcquire(Unsafe unsafe, Object base, long offset, Object value) {
        Object old = unsafe.getAndSetReferenceAcquire(base, offset, value);
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return old;
    }

    public static Object getAndSetReferenceRelease(Unsafe unsafe, Object base, long offset, Object value) {
        Object old = unsafe.getAndSetReferenceRelease(base, offset, value);
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return old;
    }

    // Their names up to JDK 11, and of their last users up to 17

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

    public static void putObjectOpaque(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putObjectOpaque(base, offset, value);
    }

    public static void putObjectRelease(Unsafe unsafe, Object base, long offset, Object value) {
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        unsafe.putObjectRelease(base, offset, value);
    }

    public static boolean compareAndSetObject(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.compareAndSetObject(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetObject(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetObject(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetObjectPlain(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetObjectPlain(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetObjectAcquire(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetObjectAcquire(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static boolean weakCompareAndSetObjectRelease(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        boolean done = unsafe.weakCompareAndSetObjectRelease(base, offset, expected, value);
        if (done && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return done;
    }

    public static Object compareAndExchangeObject(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        Object found = unsafe.compareAndExchangeObject(base, offset, expected, value);
        if (found == expected && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return found;
    }

    public static Object compareAndExchangeObjectAcquire(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        Object found = unsafe.compareAndExchangeObjectAcquire(base, offset, expected, value);
        if (found == expected && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return found;
    }

    public static Object compareAndExchangeObjectRelease(Unsafe unsafe, Object base, long offset, Object expected, Object value) {
        Object found = unsafe.compareAndExchangeObjectRelease(base, offset, expected, value);
        if (found == expected && HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return found;
    }

    public static Object getAndSetObject(Unsafe unsafe, Object base, long offset, Object value) {
        Object old = unsafe.getAndSetObject(base, offset, value);
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return old;
    }

    public static Object getAndSetObjectAcquire(Unsafe unsafe, Object base, long offset, Object value) {
        Object old = unsafe.getAndSetObjectAcquire(base, offset, value);
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return old;
    }

    public static Object getAndSetObjectRelease(Unsafe unsafe, Object base, long offset, Object value) {
        Object old = unsafe.getAndSetObjectRelease(base, offset, value);
        if (HeapProxy.on) {
            HeapProxyFields.stored(base, offset, value);
        }
        return old;
    }
}
