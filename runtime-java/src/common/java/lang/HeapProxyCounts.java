package java.lang;

/**
 * Counts of the objects that one thread, or all, allocate between two moments, by class and site, for tests that ask how many there
 * are ({@code test-library}). Hooks count while somebody asks; without, they read one static field more.
 *
 * <p>What is counted is what a trace tells of: new objects and arrays, and what the VM made for a call (clones, objects of
 * reflection, constants). Not what is only found later, nor the mirrors of loaded classes.
 *
 * <p>Where all threads are counted, each takes a lock for some instructions. It is no monitor, for which a virtual thread could be unmounted, and
 * no queue: whoever runs gets it, so a thread that is not scheduled holds up nobody but those that spin until it is.
 */
public final class HeapProxyCounts {
    /** Those that count now; null: nobody asks. Never changed, but replaced. */
    static volatile HeapProxyCounts[] active;
    /** Address of the lock: 1 while a thread has it, else 0. */
    private static long lock;

    /** Whose objects are counted; null: everybody's. */
    private final Thread thread;
    private final int alignment;
    /** The thread that counts just now. What it allocates meanwhile is not the program's. */
    private Thread counting;
    /** Number of pairs of a class and a site. */
    private int length;
    private int[] sites = new int[64];
    private Class<?>[] types = new Class<?>[64];
    private long[] objects = new long[64];
    private long[] bytes = new long[64];
    /** Taken at the first object of the pair. */
    private Throwable[] stacks = new Throwable[64];
    /** Number of the pair, plus one, at a place that its class and site determine; twice as many places as pairs at least. */
    private int[] places = new int[128];
    private long missed;
    private boolean sizesAreKnown = true;

    private HeapProxyCounts(Thread thread, int alignment) {
        this.thread = thread;
        this.alignment = alignment;
    }

    // What the library calls

    /** Whether hooks work in this run: if not, nothing can be counted. */
    public static boolean areHooksOn() {
        return HeapProxy.on;
    }

    /** Counts of what a thread allocates, or all if it is null; {@code alignment}: that of objects, in bytes. */
    public static synchronized HeapProxyCounts of(Thread thread, int alignment) {
        if (lock == 0L) {
            lock = HeapProxyPlatform.memory(8L);
        }
        return new HeapProxyCounts(thread, alignment);
    }

    /** Counts from here on; false if the thread counts already, whose counts would contain the work for these. */
    public boolean begin() {
        synchronized (HeapProxyCounts.class) {
            HeapProxyCounts[] before = active;
            int others = before == null ? 0 : before.length;
            HeapProxyCounts[] all = new HeapProxyCounts[others + 1];
            for (int i = 0; i < others; i++) {
                if (before[i].thread == thread) {
                    return false;
                }
                all[i] = before[i];
            }
            all[others] = this;
            active = all;
        }
        return true;
    }

    /** Counts no longer. */
    public void end() {
        synchronized (HeapProxyCounts.class) {
            HeapProxyCounts[] before = active;
            HeapProxyCounts[] all = before.length == 1 ? null : new HeapProxyCounts[before.length - 1];
            for (int i = 0, next = 0; all != null && i < before.length; i++) {
                if (before[i] != this) {
                    all[next++] = before[i];
                }
            }
            active = all;
        }
        // Another thread may be about to count its last object.
        lock();
        unlock();
    }

    /** Number of pairs of a class and a site. */
    public int length() {
        return length;
    }

    public Class<?> type(int pair) {
        return types[pair];
    }

    public long objects(int pair) {
        return objects[pair];
    }

    public long bytes(int pair) {
        return bytes[pair];
    }

    /** The stack at the first object of the pair; its uppermost frames are those of hooks. */
    public Throwable stack(int pair) {
        return stacks[pair];
    }

    /** Objects that could not be counted for lack of memory or stack. */
    public long missed() {
        return missed;
    }

    /** Whether the VM tells how large objects are. */
    public boolean areSizesKnown() {
        return sizesAreKnown;
    }

    // What hooks call

    /** The current thread has allocated an object; site 0: none. */
    static void count(Object object, int site) {
        HeapProxyCounts[] all = active;
        Thread current = Thread.currentThread();
        if (all == null) {
            return;
        }
        for (int i = 0; i < all.length; i++) {
            if (all[i].counting == current) {
                return;
            }
        }
        for (int i = 0; i < all.length; i++) {
            HeapProxyCounts counts = all[i];
            if (counts.thread != null && counts.thread != current) {
                continue;
            }
            if (counts.thread == null) {
                lock();
            }
            counts.counting = current;
            try {
                counts.add(object, site);
            } catch (StackOverflowError | OutOfMemoryError noRoom) {
                counts.missed++;
            } finally {
                counts.counting = null;
                if (counts.thread == null) {
                    unlock();
                }
            }
        }
    }

    private static void lock() {
        while (!HeapProxyPlatform.exchange(lock, 0L, 1L)) {
            // Soon.
        }
    }

    private static void unlock() {
        HeapProxyPlatform.exchange(lock, 1L, 0L);
    }

    private void add(Object object, int site) {
        Class<?> type = object.getClass();
        int pair = pair(type, site);
        objects[pair]++;
        bytes[pair] += size(object, type);
    }

    private int pair(Class<?> type, int site) {
        int mask = places.length - 1;
        int place = HeapProxyObjects.classId(type) * 31 + site & mask;
        while (places[place] != 0) {
            int pair = places[place] - 1;
            if (sites[pair] == site && types[pair] == type) {
                return pair;
            }
            place = place + 1 & mask;
        }
        if (length == sites.length) {
            grow();
            return pair(type, site);
        }
        Throwable stack = new Throwable();
        sites[length] = site;
        types[length] = type;
        stacks[length] = stack;
        places[place] = ++length;
        return length - 1;
    }

    private void grow() {
        int[] moreSites = new int[2 * length];
        Class<?>[] moreTypes = new Class<?>[2 * length];
        long[] moreObjects = new long[2 * length];
        long[] moreBytes = new long[2 * length];
        Throwable[] moreStacks = new Throwable[2 * length];
        int[] morePlaces = new int[4 * length];
        int mask = morePlaces.length - 1;
        for (int pair = 0; pair < length; pair++) {
            moreSites[pair] = sites[pair];
            moreTypes[pair] = types[pair];
            moreObjects[pair] = objects[pair];
            moreBytes[pair] = bytes[pair];
            moreStacks[pair] = stacks[pair];
            int place = HeapProxyObjects.classId(types[pair]) * 31 + sites[pair] & mask;
            while (morePlaces[place] != 0) {
                place = place + 1 & mask;
            }
            morePlaces[place] = pair + 1;
        }
        sites = moreSites;
        types = moreTypes;
        objects = moreObjects;
        bytes = moreBytes;
        stacks = moreStacks;
        places = morePlaces;
    }

    private long size(Object object, Class<?> type) {
        long size = HeapProxyObjects.size(type, HeapProxyObjects.length(object), alignment);
        sizesAreKnown &= size != 0L;
        return size;
    }
}
