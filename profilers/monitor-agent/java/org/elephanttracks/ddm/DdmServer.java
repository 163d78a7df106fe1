package org.elephanttracks.ddm;

import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The way to the monitors that are connected to this VM. Without {@code libet_monitor.so} in the VM, and while nobody is connected, everything
 * here does nothing.
 */
public final class DdmServer {
    private static final Map<Integer, ChunkHandler> HANDLERS = new ConcurrentHashMap<>();

    private DdmServer() {}

    /** Requests of this type go to this handler from now on. Types of the protocol's own are never asked for here. */
    public static void registerHandler(int type, ChunkHandler handler) {
        HANDLERS.put(type, Objects.requireNonNull(handler));
        try {
            attach0();
        } catch (UnsatisfiedLinkError noAgent) {
            // It finds this class when it is loaded later.
        }
    }

    /** They go to nobody. */
    public static void unregisterHandler(int type) {
        HANDLERS.remove(type);
    }

    /** Sends a chunk to all monitors. There is no response. */
    public static void sendChunk(Chunk chunk) {
        try {
            send0(chunk.type, chunk.bytes());
        } catch (UnsatisfiedLinkError noAgent) {
            // Nobody is there.
        }
    }

    /** What monitors show as the name of the program. */
    public static void setAppName(String name) {
        try {
            name0(Objects.requireNonNull(name));
        } catch (UnsatisfiedLinkError noAgent) {
            // Nobody is there.
        }
    }

    private static native void attach0();

    private static native void send0(int type, byte[] data);

    private static native void name0(String name);

    /** Called by the agent. Null: no handler; else the reply, its type in the first four bytes, or nothing at all. */
    private static byte[] dispatch(int type, byte[] data) throws Exception {
        ChunkHandler handler = HANDLERS.get(type);
        if (handler == null) {
            return null;
        }
        Chunk reply = handler.handleChunk(new Chunk(type, data));
        if (reply == null) {
            return new byte[0];
        }
        byte[] bytes = new byte[4 + reply.length];
        for (int at = 0; at < 4; at++) {
            bytes[at] = (byte) (reply.type >>> 24 - 8 * at);
        }
        System.arraycopy(reply.data, reply.offset, bytes, 4, reply.length);
        return bytes;
    }

    /** Called by the agent. */
    private static void connection(boolean isOpen) {
        Set<ChunkHandler> handlers = new LinkedHashSet<>(HANDLERS.values());
        for (ChunkHandler handler : handlers) {
            try {
                if (isOpen) {
                    handler.connected();
                } else {
                    handler.disconnected();
                }
            } catch (RuntimeException wrong) {
                // The next one may do better.
            }
        }
    }
}
