package java.lang;

import java.lang.reflect.Array;

/**
 * Hooks at calls of methods that make or change objects without bytecode: behind them, before them, or in their place.
 * The stand-ins do the call themselves, so that the JIT compiler's intrinsics for it stay in use.
 */
public final class HeapProxyCalls {

    private HeapProxyCalls() {
    }

    // Objects

    /** The object was perhaps made by the VM just now. */
    public static void made(Object object) {
        if (HeapProxy.on) {
            try {
                HeapProxyObjects.id(object, HeapProxyBuffer.MADE, HeapProxyObjects.DEPTH);
            } catch (StackOverflowError noRoom) {
                HeapProxy.overflows++;
            }
        }
    }

    /** The object is a constant of a class, and was perhaps made by the VM just now. */
    public static void constant(Object object) {
        if (HeapProxy.on) {
            try {
                HeapProxyObjects.id(object, HeapProxyBuffer.MADE_CONSTANT, HeapProxyObjects.DEPTH);
            } catch (StackOverflowError noRoom) {
                HeapProxy.overflows++;
            }
        }
    }

    /** The object was made by the VM just now, and nobody else can have seen it. */
    public static void madeFresh(Object object) {
        if (HeapProxy.on) {
            try {
                HeapProxyObjects.id(object, HeapProxyBuffer.MADE_FRESH, HeapProxyObjects.DEPTH);
            } catch (StackOverflowError noRoom) {
                HeapProxy.overflows++;
            }
        } else if (HeapProxy.counting && object != null) {
            try {
                HeapProxyTally.made(object);
            } catch (StackOverflowError noRoom) {
                HeapProxy.overflows++;
            }
        }
    }

    /** The VM has just set fields of the object, or of all objects in the array. */
    public static void refreshed(Object object) {
        if (!HeapProxy.on || object == null) {
            return;
        }
        if (object instanceof Object[]) {
            Object[] array = (Object[]) object;
            made(array);
            for (int i = 0; i < array.length; i++) {
                refreshed(array[i]);
            }
            return;
        }
        int hash = HeapProxyObjects.id(object, HeapProxyBuffer.MADE, HeapProxyObjects.DEPTH);
        HeapProxyObjects.fields(object, hash, true, HeapProxyBuffer.MADE, HeapProxyObjects.DEPTH);
    }

    // References

    /** The collector has cleared the referents of the references in this list (and not those of finalizers). */
    public static void cleared(Object list) {
        if (!HeapProxy.on || HeapProxy.referentOffset == 0L || HeapProxy.discoveredOffset == 0L) {
            return;
        }
        Object reference = list;
        while (reference != null) {
            if (HeapProxyRelease.reference(reference, HeapProxy.referentOffset) == null) {
                clearing(reference);
            }
            Object next = HeapProxyRelease.reference(reference, HeapProxy.discoveredOffset);
            reference = next == reference ? null : next;
        }
    }

    /** Native code is about to clear the referent. */
    public static void clearing(Object reference) {
        if (HeapProxy.on && reference != null && HeapProxy.layouts != 0L) {
            int field = HeapProxyFields.fieldAt(reference, HeapProxy.referentOffset);
            if (field != 0) {
                int from = HeapProxyObjects.id(reference);
                HeapProxyBuffer.write(HeapProxyRelease.thread(), HeapProxyBuffer.READ_FIELD, field, from, 0);
            }
        }
    }

    /** Native code is about to link a call site to another target. */
    public static void linking(Object site, Object target) {
        if (HeapProxy.on && HeapProxy.targetOffset != 0L) {
            HeapProxyFields.stored(site, HeapProxy.targetOffset, target);
        }
    }

    // Stand-ins

    public static void arraycopy(Object from, int fromIndex, Object to, int toIndex, int length) {
        if (HeapProxy.on && to instanceof Object[]) {
            copy(from, fromIndex, (Object[]) to, toIndex, length);
        } else {
            System.arraycopy(from, fromIndex, to, toIndex, length);
        }
    }

    private static void copy(Object from, int fromIndex, Object[] to, int toIndex, int length) {
        try {
            System.arraycopy(from, fromIndex, to, toIndex, length);
        } catch (ArrayStoreException e) {
            // What comes before the element that does not fit has been copied.
            if (from instanceof Object[]) {
                copied(to, toIndex, length);
            }
            throw e;
        }
        copied(to, toIndex, length);
    }

    private static void copied(Object[] to, int toIndex, int length) {
        try {
            HeapProxyObjects.elements(to, toIndex, toIndex + length, HeapProxyBuffer.FOUND, HeapProxyObjects.DEPTH);
        } catch (StackOverflowError noRoom) {
            HeapProxy.overflows++;
        }
    }

    /** {@link Array#set}. */
    public static void set(Object array, int index, Object value) {
        Array.set(array, index, value);
        if (array instanceof Object[]) {
            HeapProxy.putElement(array, index, value);
        }
    }
}
