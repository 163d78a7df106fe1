package org.elephanttracks.plugin;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.List;

/** A program that is run by {@code et-instrument run}. */
public final class Program {
    /** Exit codes of {@code et-instrument run} that are not the program's. */
    private static final List<Integer> NOT_RUN = Arrays.asList(125, 126, 127);

    private Program() {
    }

    /**
     * Runs it to its end. What it prints goes to {@code System.out} and {@code System.err}, where build tools collect the
     * output of what they run.
     *
     * @param name how the program is called
     * @param input what it reads; null if there is nothing, or if the builder has it
     */
    public static void run(ProcessBuilder builder, String name, InputStream input, boolean mayFail) throws Failure {
        int code = follow(start(builder), input);
        if (NOT_RUN.contains(code)) {
            throw new Failure(name + " was not run: see the messages of et-instrument above");
        }
        if (code != 0 && !mayFail) {
            throw new Failure(name + " ended with exit code " + code);
        }
    }

    static Process start(ProcessBuilder builder) throws Failure {
        try {
            return builder.start();
        } catch (IOException error) {
            throw new Failure("cannot start " + builder.command().get(0) + ": " + error.getMessage(), error);
        }
    }

    private static int follow(Process process, InputStream input) throws Failure {
        try {
            Thread errors = copying(process.getErrorStream(), System.err, false);
            Thread output = copying(process.getInputStream(), System.out, false);
            if (input == null) {
                process.getOutputStream().close();
            } else {
                // May wait for input longer than the program lives.
                copying(input, process.getOutputStream(), true);
            }
            int code = process.waitFor();
            errors.join();
            output.join();
            return code;
        } catch (IOException error) {
            throw new Failure("cannot talk to the program: " + error.getMessage(), error);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new Failure("the program was stopped", stopped);
        } finally {
            process.destroy();
        }
    }

    private static Thread copying(InputStream from, OutputStream to, boolean closes) {
        Thread thread = new Thread(() -> {
            try {
                copy(from, to);
                if (closes) {
                    to.close();
                }
            } catch (IOException ended) {
                // The program has closed its stream, and needs no more of it.
            }
        }, "streams of a program");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Copies all there is to read. What cannot be written is not wanted any more. */
    static void copy(InputStream from, OutputStream to) throws IOException {
        byte[] buffer = new byte[8192];
        for (int count = from.read(buffer); count >= 0; count = from.read(buffer)) {
            to.write(buffer, 0, count);
            to.flush();
        }
    }
}
