package org.elephanttracks.ddm;

/** Answers requests of monitors. Its methods are called on one thread of the agent's, one after the other. */
public interface ChunkHandler {
    /**
     * A request of the type that the handler is registered for.
     *
     * @return the reply; null for an empty one. What is thrown becomes a chunk {@code FAIL}.
     */
    Chunk handleChunk(Chunk request) throws Exception;

    /** A monitor has connected. */
    default void connected() {}

    /** A monitor has gone. */
    default void disconnected() {}
}
