import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.Supplier;

/** Classes are initialised when they always were, once, in the same order. */
public class InitOrder {
    static int say(String what) {
        System.out.println(what);
        return what.length();
    }

    static class Base {
        static Object made = new Object();
        static final int A = say("Base");
        final int own = say("new Base");
    }

    static class Derived extends Base implements WithDefault, WithConstant {
        static final int B = say("Derived");
        static final int CONSTANT = 7;
        static final String TEXT = "text";
        static final Integer BOXED = say("boxed");
        Object[] array = {say("field of Derived")};

        Derived() {
            super();
            say("new Derived");
        }
    }

    interface WithDefault {
        int D = say("WithDefault");

        default void hello() {}
    }

    interface WithConstant {
        int E = say("WithConstant");
    }

    static class Unused {
        static {
            say("Unused");
        }

        static Object nothing;
    }

    static class Fails {
        static Object[] kept = new Object[1];

        static {
            kept[0] = new Object();
            if (say("Fails") > 0) {
                throw new IllegalStateException("on purpose");
            }
        }

        static void touch() {}
    }

    static class One {
        static final Object OTHER = Two.ONE;
        static final int X = say("One sees " + (OTHER == null));
    }

    static class Two {
        static final Object ONE = new Object();
        static final int Y = say("Two sees " + One.OTHER);
    }

    enum Kind {
        FIRST, SECOND;

        static final Object[] ALL = values();

        static {
            say("Kind " + ALL.length);
        }

        Kind() {
            say("kind " + ordinal());
        }
    }

    static class ByHandle {
        static {
            say("ByHandle");
        }

        static Object make() {
            return new Object();
        }

        Object field;
        static Object slot;
    }

    static class ByStore {
        static Object slot = say("ByStore");
    }

    static class ByNew {
        static final int Z = say("ByNew");

        ByNew(int argument) {
            say("argument was " + argument);
        }
    }

    static class Lazy {
        static {
            say("Lazy in " + Thread.currentThread().getName());
            try {
                Thread.sleep(20);
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        }

        static final Supplier<Object> HOLDER = () -> new Object();
    }

    public static void main(String[] args) throws Throwable {
        say("main");
        say("constant " + Derived.CONSTANT + Derived.TEXT);
        Unused[] array = new Unused[1];
        Object nothing = null;
        say("array, cast, instanceof: " + (nothing instanceof Unused) + array.length + (Unused) nothing);
        Class<?> type = Class.forName("InitOrder$Unused", false, InitOrder.class.getClassLoader());
        say("loaded " + type.getName());
        say("by subclass " + Derived.A);
        new Derived();
        say("constant of an interface " + WithConstant.E);
        for (int round = 0; round < 2; round++) {
            try {
                Fails.touch();
            } catch (Throwable error) {
                System.out.println(error + " caused by " + (round == 0 ? error.getCause() : "the first"));
            }
        }
        say("cycle " + One.X + Two.Y);
        switch (Kind.SECOND) {
            case SECOND: say("switch"); break;
            default: break;
        }
        var lookup = MethodHandles.lookup();
        var handle = lookup.findStatic(ByHandle.class, "make", MethodType.methodType(Object.class));
        say("handle found");
        handle.invoke();
        ByStore.slot = "stored";
        say("stored");
        new ByNew(say("argument"));
        Thread[] threads = new Thread[3];
        for (int index = 0; index < threads.length; index++) {
            threads[index] = new Thread(() -> Lazy.HOLDER.get(), "lazy");
            threads[index].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        say("reflection");
        Object made = Class.forName("InitOrder$Unused").getDeclaredConstructor().newInstance();
        say("end " + (made != null));
    }
}
