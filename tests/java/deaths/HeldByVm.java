import java.lang.ref.Cleaner;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** What threads, references, finalizers and cleaners hold and do not hold. */
@SuppressWarnings({"deprecation", "removal"})
public class HeldByVm {
    static void other() {}

    // Threads

    static class Worker extends Thread {
        Object own;

        @Override
        public void run() {
            own = new ThreadsOwn(); // dies ThreadsOwn: E java.lang.Thread.join Worker
            other();
        }
    }

    static class ThreadsOwn {}

    static class Task implements Runnable {
        @Override
        public void run() {
            other();
        }
    }

    static class RunsOn {
        final CountDownLatch started = new CountDownLatch(1);

        void run() {
            started.countDown();
            while (true) {
                LockSupport.park();
            }
        }
    }

    static void runsOn() throws InterruptedException {
        RunsOn runsOn = new RunsOn(); // dies RunsOn: never
        Thread thread = new Thread(runsOn::run);
        thread.setDaemon(true);
        thread.start();
        runsOn.started.await();
    }

    static class Result {
        void use() {}
    }

    static void executor() throws InterruptedException, ExecutionException {
        ExecutorService executor = Executors.newSingleThreadExecutor();
        Future<Result> future = executor.submit(() -> new Result()); // dies Result: E Result.use Result
        executor.shutdown();
        executor.awaitTermination(60, TimeUnit.SECONDS);
        Result result = future.get();
        other();
        result.use();
        other();
    }

    static void threads() throws InterruptedException {
        Worker worker = new Worker(); // dies Worker: E java.lang.Thread.join Worker
        worker.start();
        worker.join();
        other();
        Thread thread = new Thread(new Task());
        // dies Task <19: U java.lang.Thread.target Task -> null
        // dies Task 19+: E java.lang.Thread.join java.lang.Thread in HeldByVm.threads
        thread.start();
        thread.join();
        other();
    }

    static class NeverStarted extends Thread {}

    static void neverStarted() {
        new NeverStarted(); // dies NeverStarted: in HeldByVm.neverStarted
        other();
    }

    static class Handed {
        void use() {}
    }

    static void handedOver() throws InterruptedException {
        BlockingQueue<Handed> queue = new ArrayBlockingQueue<>(1);
        Thread consumer = new Thread(() -> {
            try {
                Handed handed = queue.take();
                other();
                handed.use();
                other();
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        });
        consumer.start();
        queue.put(new Handed()); // dies Handed: E Handed.use Handed
        consumer.join();
    }

    // Thread locals

    static class Removed {}

    static class LeftBehind {}

    static final ThreadLocal<Object> LOCAL = new ThreadLocal<>();

    static class LeavesLocal extends Thread {
        @Override
        public void run() {
            LOCAL.set(new LeftBehind()); // dies LeftBehind: U LeavesLocal.threadLocals java.lang.ThreadLocal$ThreadLocalMap -> null
            other();
        }
    }

    static void threadLocals() throws InterruptedException {
        LOCAL.set(new Removed()); // dies Removed: U java.lang.ThreadLocal$ThreadLocalMap$Entry.value Removed -> null
        other();
        LOCAL.remove();
        other();
        LeavesLocal thread = new LeavesLocal();
        thread.start();
        thread.join();
        other();
    }

    // References

    static class Weakly {}

    static class WeaklyGot {
        void use() {}
    }

    static class Softly {}

    static class Phantom {}

    static class ClearedFirst {
        void use() {}
    }

    static Object[] references;

    static void references() {
        ClearedFirst clearedFirst = new ClearedFirst(); // dies ClearedFirst: E ClearedFirst.use ClearedFirst
        WeakReference<WeaklyGot> got = new WeakReference<>(new WeaklyGot()); // dies WeaklyGot: E WeaklyGot.use WeaklyGot
        WeakReference<ClearedFirst> cleared = new WeakReference<>(clearedFirst);
        references = new Object[] {
            new WeakReference<>(new Weakly()), // dies Weakly: U java.lang.ref.WeakReference.referent null -> Weakly
            new SoftReference<>(new Softly()), // dies Softly: U java.lang.ref.SoftReference.referent null -> Softly
            new PhantomReference<>(new Phantom(), new ReferenceQueue<>()), // dies Phantom: U java.lang.ref.PhantomReference.referent null -> Phantom
            got,
            cleared,
        };
        other();
        cleared.clear();
        other();
        clearedFirst.use();
        // Still there: the local above is a root as well.
        WeaklyGot held = got.get();
        other();
        if (held != null) {
            held.use();
        }
        other();
    }

    static class WeakKey {}

    static class WeakValue {}

    static final Map<Object, Object> WEAK_MAP = new WeakHashMap<>();

    static void weakMap() throws InterruptedException {
        WEAK_MAP.put(new WeakKey(), new WeakValue()); // dies WeakKey: U java.util.WeakHashMap$Entry.referent null -> WeakKey
        // dies WeakValue: U java.util.WeakHashMap$Entry.value WeakValue -> null
        other();
        for (int i = 0; i < 500 && !WEAK_MAP.isEmpty(); i++) {
            System.gc();
            Thread.sleep(10);
        }
    }

    // Finalizers and cleaners

    static volatile boolean hasRun;
    static volatile Object back;

    static class Finalized {
        final Object own = new FinalizedsOwn(); // dies FinalizedsOwn: U java.lang.ref.Finalizer.referent Finalized -> null

        @Override
        protected void finalize() {
            hasRun = true;
        }
    }

    static class FinalizedsOwn {}

    static class Returns {
        @Override
        protected void finalize() {
            back = this;
        }
    }

    static void make() {
        new Finalized(); // dies Finalized: U java.lang.ref.Finalizer.referent Finalized -> null
        new Returns(); // dies Returns: U HeldByVm.back Returns -> null
    }

    static void finalizers() throws InterruptedException {
        make();
        for (int i = 0; i < 500 && !(hasRun && back != null); i++) {
            System.gc();
            Thread.sleep(10);
        }
        // The finalizer has cleared its reference by then.
        Thread.sleep(200);
        back = null;
        other();
    }

    static class Cleaned {}

    static class Action implements Runnable {
        @Override
        public void run() {
            other();
        }
    }

    static void cleaners() {
        Cleaner cleaner = Cleaner.create();
        Cleaner.Cleanable cleanable = cleaner.register(new Cleaned(), new Action());
        // dies Cleaned: U jdk.internal.ref.CleanerImpl$PhantomCleanableRef.referent null -> Cleaned
        // dies Cleaned all: R Cleaned
        // dies Action: E jdk.internal.ref.PhantomCleanable.clean jdk.internal.ref.CleanerImpl$PhantomCleanableRef in HeldByVm.cleaners
        other();
        cleanable.clean();
        other();
    }

    // Classes

    interface Call {
        void call();
    }

    static class Handler implements java.lang.reflect.InvocationHandler {
        @Override
        public Object invoke(Object proxy, java.lang.reflect.Method method, Object[] arguments) {
            other();
            return null;
        }
    }

    static void call(Call call) {
        call.call();
    }

    static void proxies() {
        Handler handler = new Handler(); // dies Handler: in HeldByVm.call
        Call call = (Call) Proxy.newProxyInstance(HeldByVm.class.getClassLoader(), new Class<?>[] {Call.class}, handler);
        other();
        call(call);
        other();
    }

    static class Loader extends ClassLoader {}

    static class LoaderOfClass extends URLClassLoader {
        LoaderOfClass(URL location) {
            super(new URL[] {location}, null);
        }
    }

    public static class Plugin {
        static Object kept = new KeptByPlugin();
    }

    static class KeptByPlugin {} // dies KeptByPlugin: never

    /** The trace does not tell when classes are unloaded. */
    static void loaders() throws ClassNotFoundException {
        new Loader(); // dies Loader: in HeldByVm.loaders
        other();
        URL location = HeldByVm.class.getProtectionDomain().getCodeSource().getLocation();
        LoaderOfClass loader = new LoaderOfClass(location); // dies LoaderOfClass: never
        Class.forName("HeldByVm$Plugin", true, loader);
    }

    static class Interned {
        String text;
    }

    static final Interned INTERNED = new Interned();

    static void strings() {
        // The VM's table of strings holds them weakly.
        INTERNED.text = new String(new char[] {'q', 'x'}).intern(); // dies Interned.text: U Interned.text java.lang.String -> null
        other();
        INTERNED.text = null;
        other();
    }

    public static void main(String[] args) throws Exception {
        threads();
        neverStarted();
        handedOver();
        threadLocals();
        references();
        weakMap();
        finalizers();
        cleaners();
        proxies();
        runsOn();
        executor();
        loaders();
        strings();
        System.out.println("held by the VM " + WEAK_MAP.isEmpty() + hasRun);
    }
}
