import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** Stack traces are those of the plain program: no frame of ours, the same lines, in every way to get at them. */
public class StackTraces {
    static class Fails {
        static int tries;
        final Object field = new Object();

        Fails(int depth) {
            if (depth == 0) {
                throw new IllegalStateException("in a constructor");
            }
            new Fails(depth - 1);
        }
    }

    static class FailsEarly extends Fails {
        FailsEarly() {
            super(Integer.parseInt("not a number"));
        }
    }

    static class FailsToStart {
        static final Object[] TABLE = new Object[2];

        static {
            TABLE[2] = "too far";
        }
    }

    static class Node implements Cloneable {
        Object next;

        @Override
        protected Object clone() throws CloneNotSupportedException {
            throw new CloneNotSupportedException("not this one");
        }
    }

    static class Bare {
        Object copy() throws CloneNotSupportedException {
            return super.clone();
        }
    }

    static Object none;

    static void show(String what, Callable<?> body) {
        try {
            System.out.println(what + ": " + body.call());
        } catch (Throwable thrown) {
            StringWriter text = new StringWriter();
            thrown.printStackTrace(new PrintWriter(text, true));
            System.out.println(what + ": " + text.toString().replaceAll("\\$\\$Lambda[^.]*\\.", "\\$\\$Lambda."));
        }
    }

    static Object store(Object[] array, int index, Object value) {
        array[index] = value;
        return array[index];
    }

    static synchronized Object locked(Supplier<Object> body) {
        synchronized (StackTraces.class) {
            return body.get();
        }
    }

    static String frames(StackTraceElement[] trace) {
        return List.of(trace).stream().map(String::valueOf).filter(line -> !line.contains("$$Lambda"))
            .collect(Collectors.joining("\n  ", "\n  ", ""));
    }

    static String walk(StackWalker walker) {
        return walker.walk(all -> all.map(frame -> frame.getClassName() + "." + frame.getMethodName() + ":" + frame.getLineNumber())
            .filter(line -> !line.contains("$$Lambda")).collect(Collectors.joining("\n  ", "\n  ", "")));
    }

    public static void main(String[] args) throws Exception {
        show("constructor", () -> new Fails(3));
        show("argument of super", () -> new FailsEarly());
        show("initialiser", () -> FailsToStart.TABLE);
        show("initialiser again", () -> FailsToStart.TABLE);
        show("null array", () -> store(null, 0, ""));
        show("index", () -> store(new Object[1], -1, ""));
        show("array store", () -> store(new String[1], 0, 1));
        show("arraycopy", () -> {
            System.arraycopy(new Object[] {"a", 2, "c"}, 0, new String[3], 0, 3);
            return null;
        });
        show("arraycopy of null", () -> {
            System.arraycopy(null, 0, new String[3], 0, 3);
            return null;
        });
        show("arraycopy of other types", () -> {
            System.arraycopy(new int[3], 0, new String[3], 0, 3);
            return null;
        });
        show("arraycopy too far", () -> {
            System.arraycopy(new int[3], 2, new int[3], 0, 3);
            return null;
        });
        show("reflective store", () -> {
            Array.set(new String[1], 0, 1);
            return null;
        });
        show("reflective array", () -> Array.newInstance(int.class, -1));
        show("negative size", () -> new Object[-1]);
        show("negative size inside", () -> new Object[2][-2]);
        show("cast", () -> (String) (Object) 1);
        show("null", () -> none.hashCode());
        show("clone", () -> new Node().clone());
        show("clone of what is not Cloneable", () -> new Bare().copy());
        show("reflection", () -> StackTraces.class.getDeclaredMethod("store", Object[].class, int.class, Object.class)
            .invoke(null, new Object[0], 0, null));
        show("constructor by reflection", () -> Fails.class.getDeclaredConstructor(int.class).newInstance(0));
        show("lock", () -> locked(() -> none.toString()));
        show("stream", () -> List.of(1, 0).stream().map(value -> 1 / value).collect(Collectors.toList()));
        show("list", () -> new ArrayList<>(List.of(1)).get(1));
        show("cause", () -> {
            try {
                return new Fails(0);
            } catch (IllegalStateException inner) {
                throw new RuntimeException("outer", inner);
            }
        });
        show("own trace", () -> frames(Thread.currentThread().getStackTrace()));
        show("throwable's trace", () -> frames(new Throwable().getStackTrace()));
        show("walker", () -> walk(StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)));
        show("no hook in hidden frames", () -> StackWalker.getInstance(StackWalker.Option.SHOW_HIDDEN_FRAMES)
            .walk(all -> all.anyMatch(frame -> frame.getClassName().contains("HeapProxy"))));
        show("walker in a constructor", () -> new Object() {
            final String seen = walk(StackWalker.getInstance());

            @Override
            public String toString() {
                return seen;
            }
        });
        show("caller", () -> StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).getCallerClass());

        Thread other = new Thread(() -> locked(() -> {
            synchronized (other()) {
                try {
                    other().wait();
                } catch (InterruptedException expected) {
                    return null;
                }
            }
            return null;
        }), "other");
        other.start();
        while (other.getState() != Thread.State.WAITING) {
            Thread.sleep(5);
        }
        System.out.println("another thread's: " + frames(other.getStackTrace()));
        other.interrupt();
        other.join();

        throw new IllegalStateException("uncaught", new RuntimeException("with a cause"));
    }

    static Object other() {
        return StackTraces.class;
    }
}
