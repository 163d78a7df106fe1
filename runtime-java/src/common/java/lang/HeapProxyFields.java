package java.lang;

/** Which field lies at which offset: for stores that name an object and an offset instead of a field. */
final class HeapProxyFields {
    /** Slots of the table at {@link HeapProxy#layouts}. */
    private static final int LAYOUT_SLOTS = 1 << 18;

    private HeapProxyFields() {
    }

    /** A reference is about to be stored, or was just stored, at an offset of an object. */
    static void stored(Object base, long offset, Object value) {
        try {
            store(base, offset, value);
        } catch (StackOverflowError noRoom) {
            HeapProxy.overflows++;
        }
    }

    private static void store(Object base, long offset, Object value) {
        if (base instanceof Object[] && HeapProxy.elementBase != 0L) {
            HeapProxy.putElement(base, (int) (offset - HeapProxy.elementBase >> HeapProxy.elementShift), value);
            return;
        }
        if (base == null || HeapProxy.layouts == 0L) {
            return;
        }
        int field = fieldAt(base, offset);
        if (field != 0) {
            HeapProxy.putField(base, value, field);
        } else if (base instanceof Class) {
            field = HeapProxy.staticFieldAt0((Class<?>) base, offset);
            if (field != 0) {
                HeapProxy.putStatic(value, field);
            }
        }
    }

    /**
     * Field reference of the reference field at that offset of an object, 0 if there is none. The caller goes on with the
     * object: the layout is there only as long as its class.
     */
    static int fieldAt(Object object, long offset) {
        long layout = layout(object.getClass());
        int count = HeapProxyPlatform.get(layout);
        for (int i = 0; i < count; i++) {
            long at = layout + 4L + ((long) i << 3);
            if (HeapProxyPlatform.get(at) == offset) {
                return HeapProxyPlatform.get(at + 4L);
            }
        }
        return 0;
    }

    /** Address of the layout of a class. */
    static long layout(Class<?> type) {
        int id = HeapProxyObjects.classId(type);
        int slot = id & LAYOUT_SLOTS - 1;
        for (;;) {
            long at = HeapProxy.layouts + ((long) slot << 4);
            int there = HeapProxyPlatform.getAcquire(at);
            // First: without ids left the class has none, either.
            if (there == 0) {
                return HeapProxy.layout0(type);
            }
            if (there == id) {
                return HeapProxyPlatform.getLong(at + 8L);
            }
            slot = slot + 1 & LAYOUT_SLOTS - 1;
        }
    }
}
