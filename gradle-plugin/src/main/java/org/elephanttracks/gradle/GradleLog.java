package org.elephanttracks.gradle;

import org.gradle.api.logging.Logger;

import org.elephanttracks.plugin.Messages;

/** Shows messages as Gradle shows its own. */
final class GradleLog implements Messages {
    private final Logger log;

    GradleLog(Logger log) {
        this.log = log;
    }

    @Override
    public void say(String line) {
        log.lifecycle(line);
    }

    @Override
    public void warn(String line) {
        log.warn(line);
    }
}
