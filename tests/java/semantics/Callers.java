import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.util.ListResourceBundle;
import java.util.ResourceBundle;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Methods that look at who calls them see the caller, not a hook. */
public class Callers {
    public static class Words extends ListResourceBundle {
        @Override
        protected Object[][] getContents() {
            return new Object[][] {{"greeting", "hello"}, {"list", new String[] {"a", "b"}}};
        }
    }

    static class Cell {
        private volatile Object value = "first";
        private volatile int count;
        private static Object shared;
    }

    static class Inner {
        Class<?> lookup() {
            return MethodHandles.lookup().lookupClass();
        }

        Class<?> caller() {
            return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).getCallerClass();
        }

        void log(Logger logger) {
            logger.info("from inside");
        }

        Inner() {
            constructed = caller();
        }

        final Class<?> constructed;
    }

    static class Records extends Handler {
        @Override
        public void publish(LogRecord entry) {
            System.out.println(entry.getSourceClassName() + "." + entry.getSourceMethodName() + ": " + entry.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    public static void main(String[] args) throws Throwable {
        System.out.println(Class.forName("Callers$Inner").getName());
        try {
            Class.forName("no.such.Type");
        } catch (ClassNotFoundException expected) {
            System.out.println(expected.getMessage());
        }
        Inner inner = new Inner();
        System.out.println(inner.lookup() + " " + inner.caller() + " " + inner.constructed);
        System.out.println(((java.util.function.Supplier<Class<?>>) inner::caller).get());
        System.out.println(Inner.class.getDeclaredMethod("lookup").invoke(inner));
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        MethodHandle handle = lookup.findVirtual(Inner.class, "caller", MethodType.methodType(Class.class));
        System.out.println((Class<?>) handle.invokeExact(inner));
        System.out.println((Class<?>) lookup.findVirtual(Inner.class, "lookup", MethodType.methodType(Class.class)).invoke(inner));

        Logger logger = Logger.getLogger("callers");
        logger.setUseParentHandlers(false);
        logger.addHandler(new Records());
        logger.warning("from main");
        inner.log(logger);
        Runnable task = () -> logger.info("from a lambda");
        task.run();
        logger.throwing("C", "m", new Throwable());
        System.Logger platform = System.getLogger("callers");
        platform.log(System.Logger.Level.INFO, "by System.Logger");

        ResourceBundle words = ResourceBundle.getBundle("Callers$Words");
        System.out.println(words.getString("greeting") + words.getStringArray("list").length);
        System.out.println(ServiceLoader.load(Runnable.class).findFirst().isPresent());

        Cell cell = new Cell();
        var value = AtomicReferenceFieldUpdater.newUpdater(Cell.class, Object.class, "value");
        System.out.println(value.getAndSet(cell, "second") + " " + value.compareAndSet(cell, "second", "third") + cell.value);
        System.out.println(AtomicIntegerFieldUpdater.newUpdater(Cell.class, "count").incrementAndGet(cell));
        VarHandle variable = MethodHandles.privateLookupIn(Cell.class, lookup).findVarHandle(Cell.class, "value", Object.class);
        System.out.println(variable.getAndSet(cell, "fourth") + " " + variable.compareAndSet(cell, "x", "y") + cell.value);
        VarHandle shared = MethodHandles.privateLookupIn(Cell.class, lookup).findStaticVarHandle(Cell.class, "shared", Object.class);
        shared.set("a");
        System.out.println(shared.compareAndExchange("a", "b") + " " + Cell.shared);
        var field = Cell.class.getDeclaredField("value");
        field.set(cell, "fifth");
        System.out.println(field.get(cell));
        try {
            field = String.class.getDeclaredField("value");
            field.setAccessible(true);
            System.out.println("String.value is open");
        } catch (RuntimeException expected) {
            System.out.println(expected.getMessage().replaceAll("@[0-9a-f]+", "@"));
        }
        System.out.println(Thread.currentThread().getContextClassLoader() == Callers.class.getClassLoader());
        System.out.println(Callers.class.getModule().isNamed() + " " + Package.getPackage("java.util"));
    }
}
