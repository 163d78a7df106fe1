package jdk.internal.misc;

/** Stands in for the JDK's Unsafe while HeapProxy is compiled: it has the names of all releases. */
public final class Unsafe {

    public static native Unsafe getUnsafe();

    public native long allocateMemory(long bytes);

    public native void setMemory(long address, long bytes, byte value);

    public native int getInt(long address);

    public native void putInt(long address, int value);
    public native void putLong(long at, long value);

    public native long getLong(long address);

    public native int getInt(Object base, long offset);

    public native long getLong(Object base, long offset);

    public native int getIntAcquire(Object base, long offset);

    public native long getLongAcquire(Object base, long offset);

    public native long getAndAddLong(Object base, long offset, long delta);

    public native boolean compareAndSetLong(Object base, long offset, long expected, long value);

    public native void loadFence();
    public native void storeFence();

    public native Object getReference(Object base, long offset);

    public native Object getObject(Object base, long offset);

    public native Class<?> defineClass0(String name, byte[] bytes, int offset, int length, ClassLoader loader,
            java.security.ProtectionDomain domain);

    public native Class<?> defineAnonymousClass(Class<?> host, byte[] bytes, Object[] patches);

    public native Object allocateInstance(Class<?> type) throws InstantiationException;

    public native Object allocateUninitializedArray(Class<?> type, int length);

    public native void putReference(Object base, long offset, Object value);

    public native void putReferenceVolatile(Object base, long offset, Object value);

    public native void putReferenceOpaque(Object base, long offset, Object value);

    public native void putReferenceRelease(Object base, long offset, Object value);

    public native boolean compareAndSetReference(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetReference(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetReferencePlain(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetReferenceAcquire(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetReferenceRelease(Object base, long offset, Object expected, Object value);

    public native Object compareAndExchangeReference(Object base, long offset, Object expected, Object value);

    public native Object compareAndExchangeReferenceAcquire(Object base, long offset, Object expected, Object value);

    public native Object compareAndExchangeReferenceRelease(Object base, long offset, Object expected, Object value);

    public native Object getAndSetReference(Object base, long offset, Object value);

    public native Object getAndSetReferenceAcquire(Object base, long offset, Object value);

    public native Object getAndSetReferenceRelease(Object base, long offset, Object value);

    public native void putObject(Object base, long offset, Object value);

    public native void putObjectVolatile(Object base, long offset, Object value);

    public native void putObjectOpaque(Object base, long offset, Object value);

    public native void putObjectRelease(Object base, long offset, Object value);

    public native boolean compareAndSetObject(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetObject(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetObjectPlain(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetObjectAcquire(Object base, long offset, Object expected, Object value);

    public native boolean weakCompareAndSetObjectRelease(Object base, long offset, Object expected, Object value);

    public native Object compareAndExchangeObject(Object base, long offset, Object expected, Object value);

    public native Object compareAndExchangeObjectAcquire(Object base, long offset, Object expected, Object value);

    public native Object compareAndExchangeObjectRelease(Object base, long offset, Object expected, Object value);

    public native Object getAndSetObject(Object base, long offset, Object value);

    public native Object getAndSetObjectAcquire(Object base, long offset, Object value);

    public native Object getAndSetObjectRelease(Object base, long offset, Object value);
}
