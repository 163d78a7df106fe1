package org.elephanttracks.test;

/** What is to be counted. */
@FunctionalInterface
public interface Action {
    void run() throws Throwable;
}
