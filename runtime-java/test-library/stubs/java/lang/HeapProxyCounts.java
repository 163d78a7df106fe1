package java.lang;

/** Stands in for the class of that name in instrumented JDKs (runtime-java). */
public final class HeapProxyCounts {
    public static native boolean areHooksOn();

    public static native HeapProxyCounts of(Thread thread, int alignment);

    public native boolean begin();

    public native void end();

    public native int length();

    public native Class<?> type(int pair);

    public native long objects(int pair);

    public native long bytes(int pair);

    public native Throwable stack(int pair);

    public native long missed();

    public native boolean areSizesKnown();
}
