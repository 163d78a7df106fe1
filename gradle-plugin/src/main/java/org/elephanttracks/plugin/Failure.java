package org.elephanttracks.plugin;

/** What a user is told when a build fails. Each plugin makes of it what its build tool calls an error. */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    public Failure(String message) {
        super(message);
    }

    public Failure(String message, Throwable cause) {
        super(message, cause);
    }
}
