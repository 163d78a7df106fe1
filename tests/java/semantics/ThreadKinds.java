import java.lang.reflect.Field;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.TimeUnit;

/** Subclasses of Thread may override and add what they like, fields of our names too. */
public class ThreadKinds {
    static class Odd extends Thread {
        Object etPos = "mine";
        long etEnd = -1;
        static int etTicket = 3;
        private Object etSite = new Object[] {etPos};

        Odd(String name) {
            super(null, null, name, 0);
        }

        @Override
        public void run() {
            etPos = new StringBuilder(String.valueOf(etPos)).append(etEnd).append(etTicket);
            etSite = this;
            System.out.println(getName() + " " + etPos + " " + (etSite == currentThread()));
        }

        @Override
        public void start() {
            System.out.println("starts");
            super.start();
        }

        @Override
        public StackTraceElement[] getStackTrace() {
            throw new UnsupportedOperationException();
        }

        @Override
        public String toString() {
            throw new IllegalStateException("nobody may ask");
        }

        @Override
        public void interrupt() {
            System.out.println("not me");
        }

        @Override
        public boolean isInterrupted() {
            return true;
        }

        @Override
        public long getId() {
            return 42;
        }

        @Override
        public Thread.State getState() {
            return State.BLOCKED;
        }

        @Override
        public ClassLoader getContextClassLoader() {
            return null;
        }

        @Override
        public int hashCode() {
            return 1;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Odd;
        }
    }

    static class Sum extends RecursiveTask<Integer> {
        final int from;
        final int to;

        Sum(int from, int to) {
            this.from = from;
            this.to = to;
        }

        @Override
        protected Integer compute() {
            if (to - from < 10) {
                int sum = 0;
                for (int value = from; value < to; value++) {
                    sum += value;
                }
                return sum;
            }
            Sum left = new Sum(from, (from + to) / 2);
            Sum right = new Sum((from + to) / 2, to);
            left.fork();
            return right.compute() + left.join();
        }
    }

    static class Fails extends Thread {
        Fails() {
            super("fails");
            setUncaughtExceptionHandler((thread, thrown) -> System.out.println(thread.getName() + ": " + thrown));
        }

        @Override
        public void run() {
            throw new IllegalStateException("out of run");
        }
    }

    public static void main(String[] args) throws Exception {
        Odd odd = new Odd("odd");
        odd.start();
        odd.join();
        odd.interrupt();
        System.out.println(odd.getId() + " " + odd.getState() + " " + odd.isInterrupted() + odd.equals(new Odd("x")));
        for (Field field : Odd.class.getDeclaredFields()) {
            System.out.println(field);
        }
        Thread fails = new Fails();
        fails.start();
        fails.join();
        new Odd("never started").run();
        Thread group = new Thread(new ThreadGroup("group"), () -> System.out.println(Thread.currentThread().getThreadGroup().getName()));
        group.setDaemon(true);
        group.setPriority(Thread.MAX_PRIORITY);
        group.start();
        group.join();
        System.out.println(new ForkJoinPool(3).invoke(new Sum(0, 1000)));
        ExecutorService pool = Executors.newFixedThreadPool(2);
        System.out.println(pool.submit(() -> "submitted").get());
        pool.shutdown();
        System.out.println(pool.awaitTermination(10, TimeUnit.SECONDS));
        ThreadLocal<Object> local = ThreadLocal.withInitial(() -> "initial");
        Thread setter = new Thread(() -> local.set("other"));
        setter.start();
        setter.join();
        System.out.println(local.get());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        Thread runs = new Thread(() -> {
            throw new RuntimeException("nobody handles it");
        }, "unhandled");
        runs.start();
        runs.join();
    }
}
