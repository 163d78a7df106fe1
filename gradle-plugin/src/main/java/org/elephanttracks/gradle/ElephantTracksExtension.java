package org.elephanttracks.gradle;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What a build script says in {@code elephantTracks { … }}. Plain properties: Gradle's own kinds of properties have changed
 * since 4.4.
 */
public class ElephantTracksExtension {
    private List<String> includes = new ArrayList<>();
    private List<String> excludes = new ArrayList<>();
    private String mode;
    private String events;
    private String witness = "none";
    private boolean counts;
    private Object jdkHome;
    private Object executable;
    private Object cacheDir;

    /** Classes to hook, such as {@code com.acme.**}; all by default. */
    public List<String> getIncludes() {
        return includes;
    }

    public void setIncludes(List<String> patterns) {
        includes = new ArrayList<>(patterns);
    }

    public void include(String... patterns) {
        includes.addAll(Arrays.asList(patterns));
    }

    /** Classes not to hook; takes precedence over includes. */
    public List<String> getExcludes() {
        return excludes;
    }

    public void setExcludes(List<String> patterns) {
        excludes = new ArrayList<>(patterns);
    }

    public void exclude(String... patterns) {
        excludes.addAll(Arrays.asList(patterns));
    }

    /** What the traces are to tell, in one word: {@code counts}, {@code objects}, {@code references} or {@code everything}; else {@code events} says it. */
    public String getMode() {
        return mode;
    }

    public void setMode(String word) {
        mode = word;
    }

    /**
     * Events to hook: {@code alloc}, {@code update}, {@code method}, {@code exception} and {@code stacks}, separated by commas, or {@code all};
     * or {@code counts}. All by default.
     */
    public String getEvents() {
        return events;
    }

    public void setEvents(String list) {
        events = list;
    }

    /** Which uses of objects get a record of their own: {@code none}, {@code refs} or {@code all}. */
    public String getWitness() {
        return witness;
    }

    public void setWitness(String which) {
        witness = which;
    }

    /** Whether {@code etTest} leaves no traces, and only has tests count allocations with et-test. */
    public boolean getCounts() {
        return counts;
    }

    public void setCounts(boolean only) {
        counts = only;
    }

    /** The JDK to run on, a file or its path; Gradle's own by default. */
    public Object getJdkHome() {
        return jdkHome;
    }

    public void setJdkHome(Object home) {
        jdkHome = home;
    }

    /** The program {@code et-instrument}, a file or its path; by default the one in {@code PATH}, else the one installed with the plugin. */
    public Object getExecutable() {
        return executable;
    }

    public void setExecutable(Object program) {
        executable = program;
    }

    /** Where instrumented JDKs and programs are cached, a file or its path; the user's cache by default. */
    public Object getCacheDir() {
        return cacheDir;
    }

    public void setCacheDir(Object folder) {
        cacheDir = folder;
    }
}
