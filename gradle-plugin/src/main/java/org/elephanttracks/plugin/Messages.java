package org.elephanttracks.plugin;

/** Where a build shows what is going on. */
public interface Messages {
    /** What is being done, or was. */
    void say(String line);

    void warn(String line);
}
