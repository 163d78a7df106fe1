package java.lang;

/** The events of a thread: their kinds, and how they get into its buffer (docs/inside/events.md). */
final class HeapProxyBuffer {
    static final int TICKET = 1 << 2 | 3;
    static final int NEW = 2 << 2 | 3;
    static final int NEW_ARRAY = 3 << 2 | 3;
    static final int FOUND = 4 << 2 | 3;
    static final int PUT_FIELD = 5 << 2 | 3;
    static final int PUT_STATIC = 6 << 2 | 3;
    static final int PUT_ELEMENT = 7 << 2 | 3;
    static final int THROW = 8 << 2 | 3;
    static final int HANDLE = 9 << 2 | 3;
    static final int EXIT_THROW = 10 << 2 | 3;
    static final int ENTRY_INIT = 11 << 2 | 3;
    static final int SUPER_CALL = 12 << 2 | 3;
    static final int SWITCH = 13 << 2 | 3;
    static final int MADE = 14 << 2 | 3;
    static final int PUT_ELEMENTS = 15 << 2 | 3;
    static final int USED = 16 << 2 | 3;
    static final int COUNTED = 17 << 2 | 3;
    static final int MADE_AT = 18 << 2 | 3;
    /** {@link #MADE} of an object that a class holds from now on: its constant. */
    static final int MADE_CONSTANT = 2 << 8 | MADE;
    /** {@link #MADE} of an object that nobody else can have seen. */
    static final int MADE_FRESH = 1 << 8 | MADE;
    /** {@link #NEW} of an object that has its {@link #MADE}. */
    static final int NEW_KNOWN = 1 << 8 | NEW;
    /** {@link #PUT_FIELD} that counts only if the slot held something else. */
    static final int READ_FIELD = 1 << 8 | PUT_FIELD;

    /** In the second word of an entry: the method has been left, too. */
    static final int LEFT = 1 << 31;

    /** Most targets of one {@link #PUT_ELEMENTS}. */
    static final int MAX_ELEMENTS = 64;

    private HeapProxyBuffer() {
    }

    static void write(Thread thread, int first, int a) {
        long at = room(thread);
        HeapProxyPlatform.put(at, first, a);
        thread.etPos = at + 8L;
    }

    static void write(Thread thread, int first, int a, int b) {
        long at = room(thread);
        HeapProxyPlatform.put(at, first, a, b);
        thread.etPos = at + 12L;
    }

    static void write(Thread thread, int first, int a, int b, int c) {
        long at = room(thread);
        HeapProxyPlatform.put(at, first, a, b, c);
        thread.etPos = at + 16L;
    }

    /**
     * Where the next event goes, its ticket written if it needs one. If there is no buffer for it, it goes where nobody reads it:
     * a hook that had to ask would be larger wherever compilers put it, for what hardly ever happens.
     */
    static long room(Thread thread) {
        long at = thread.etPos;
        if (at < thread.etEnd && HeapProxyPlatform.lastTicket(HeapProxy.counter) == thread.etTicket) {
            return at;
        }
        return makeRoom(thread);
    }

    private static long makeRoom(Thread thread) {
        long at = thread.etPos;
        long end = thread.etEnd;
        if (at >= end) {
            // Without a buffer the position is that of what went nowhere.
            at = HeapProxy.nextChunk(thread, end == 0L ? 0L : at);
            if (at == 0L) {
                // The stub has no buffer to give: tracing ended, or this thread did.
                thread.etEnd = 0L;
                return HeapProxy.nowhere;
            }
            thread.etPos = at;
            thread.etEnd = at + HeapProxy.chunkRoom;
        }
        // Every chunk starts with a ticket; further on there is one because another thread took one meanwhile.
        long ticket = HeapProxyPlatform.nextTicket(HeapProxy.counter);
        HeapProxyPlatform.put(at, (int) ticket << 8 | TICKET, (int) (ticket >>> 24));
        at += 8L;
        thread.etTicket = ticket;
        // Stored at once: should the stack overflow before the event is written, the ticket still stands.
        thread.etPos = at;
        return at;
    }
}
