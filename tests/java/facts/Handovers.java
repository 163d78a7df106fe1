import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Exchanger;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Two threads hand objects to each other, in all the ways there are. One sends a parcel; the other receives it and puts an answer
 * into it, which the first then reads. Each way has parcels of its own type; those whose type begins with Queued may overtake
 * the answers, never each other.
 */
public class Handovers {
    static int rounds;

    static class Answer {
        void read() {
        }
    }

    static class Parcel {
        Answer answer;

        final void send() {
        }

        final void receive() {
            answer = new Answer();
        }
    }

    static class ByVolatile extends Parcel {}

    static class ByRelease extends Parcel {}

    static class ByExchange extends Parcel {}

    static class ByMonitor extends Parcel {}

    static class ByPark extends Parcel {}

    static class ByExchanger extends Parcel {}

    static class BySynchronousQueue extends Parcel {}

    static class ByCondition extends Parcel {}

    static class ByStartAndJoin extends Parcel {}

    static class ByVirtualThreads extends Parcel {}

    static class QueuedInArray extends Parcel {}

    static class QueuedInLinks extends Parcel {}

    interface Way {
        Parcel parcel();

        void give(Parcel parcel) throws Exception;

        Parcel take() throws Exception;

        /** The parcel with its answer, to the sender. */
        default void giveBack(Parcel parcel) throws Exception {
            give(parcel);
        }

        default Parcel takeBack() throws Exception {
            return take();
        }
    }

    /** Sleeps now and then: each turn of a loop leaves events. */
    static void spin(int times) {
        if ((times & 15) == 15) {
            LockSupport.parkNanos(10_000);
        }
    }

    /** One slot for each direction: null is empty. */
    abstract static class Slots implements Way {
        abstract Parcel get(boolean back);

        abstract void set(boolean back, Parcel parcel);

        private Parcel await(boolean back) {
            for (int i = 0;; i++) {
                Parcel parcel = get(back);
                if (parcel != null) {
                    return parcel;
                }
                spin(i);
            }
        }

        @Override
        public void give(Parcel parcel) {
            set(false, parcel);
        }

        @Override
        public Parcel take() {
            Parcel parcel = await(false);
            set(false, null);
            return parcel;
        }

        @Override
        public void giveBack(Parcel parcel) {
            set(true, parcel);
        }

        @Override
        public Parcel takeBack() {
            Parcel parcel = await(true);
            set(true, null);
            return parcel;
        }
    }

    static class Volatiles extends Slots {
        private volatile Parcel there;
        private volatile Parcel back;

        @Override
        public Parcel parcel() {
            return new ByVolatile();
        }

        @Override
        Parcel get(boolean back) {
            return back ? this.back : there;
        }

        @Override
        void set(boolean back, Parcel parcel) {
            if (back) {
                this.back = parcel;
            } else {
                there = parcel;
            }
        }
    }

    static class Releases extends Slots {
        private static final VarHandle THERE;
        private static final VarHandle BACK;

        static {
            try {
                THERE = MethodHandles.lookup().findVarHandle(Releases.class, "there", Parcel.class);
                BACK = MethodHandles.lookup().findVarHandle(Releases.class, "back", Parcel.class);
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
        }

        private Parcel there;
        private Parcel back;

        @Override
        public Parcel parcel() {
            return new ByRelease();
        }

        @Override
        Parcel get(boolean back) {
            return (Parcel) (back ? BACK : THERE).getAcquire(this);
        }

        @Override
        void set(boolean back, Parcel parcel) {
            (back ? BACK : THERE).setRelease(this, parcel);
        }
    }

    static class Exchanges extends Slots {
        private final AtomicReference<Parcel> there = new AtomicReference<>();
        private final AtomicReference<Parcel> back = new AtomicReference<>();

        @Override
        public Parcel parcel() {
            return new ByExchange();
        }

        @Override
        Parcel get(boolean back) {
            return (back ? this.back : there).get();
        }

        @Override
        void set(boolean back, Parcel parcel) {
            AtomicReference<Parcel> slot = back ? this.back : there;
            if (parcel == null) {
                slot.getAndSet(null);
            } else if (!slot.compareAndSet(null, parcel)) {
                throw new AssertionError();
            }
        }
    }

    static class Monitors extends Slots {
        private Parcel there;
        private Parcel back;

        @Override
        public Parcel parcel() {
            return new ByMonitor();
        }

        @Override
        synchronized Parcel get(boolean back) {
            while ((back ? this.back : there) == null) {
                try {
                    wait();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
            return back ? this.back : there;
        }

        @Override
        synchronized void set(boolean back, Parcel parcel) {
            if (back) {
                this.back = parcel;
            } else {
                there = parcel;
            }
            notifyAll();
        }
    }

    static class Parks extends Volatiles {
        private volatile Thread sender;
        private volatile Thread receiver;

        @Override
        public Parcel parcel() {
            sender = Thread.currentThread();
            return new ByPark();
        }

        @Override
        Parcel get(boolean back) {
            if (!back) {
                receiver = Thread.currentThread();
            }
            Parcel parcel = super.get(back);
            if (parcel == null) {
                LockSupport.parkNanos(this, 1_000_000);
                parcel = super.get(back);
            }
            return parcel;
        }

        @Override
        void set(boolean back, Parcel parcel) {
            super.set(back, parcel);
            if (parcel != null) {
                LockSupport.unpark(back ? sender : receiver);
            }
        }
    }

    static class Conditions extends Slots {
        private final ReentrantLock lock = new ReentrantLock();
        private final Condition changed = lock.newCondition();
        private Parcel there;
        private Parcel back;

        @Override
        public Parcel parcel() {
            return new ByCondition();
        }

        @Override
        Parcel get(boolean back) {
            lock.lock();
            try {
                while ((back ? this.back : there) == null) {
                    changed.awaitUninterruptibly();
                }
                return back ? this.back : there;
            } finally {
                lock.unlock();
            }
        }

        @Override
        void set(boolean back, Parcel parcel) {
            lock.lock();
            try {
                if (back) {
                    this.back = parcel;
                } else {
                    there = parcel;
                }
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }

    static class Exchangers implements Way {
        private final Exchanger<Parcel> exchanger = new Exchanger<>();

        @Override
        public Parcel parcel() {
            return new ByExchanger();
        }

        @Override
        public void give(Parcel parcel) throws InterruptedException {
            exchanger.exchange(parcel);
        }

        @Override
        public Parcel take() throws InterruptedException {
            return exchanger.exchange(null);
        }
    }

    static class SynchronousQueues implements Way {
        private final SynchronousQueue<Parcel> there = new SynchronousQueue<>();
        private final SynchronousQueue<Parcel> back = new SynchronousQueue<>();
        private final boolean isVirtual;

        SynchronousQueues(boolean isVirtual) {
            this.isVirtual = isVirtual;
        }

        @Override
        public Parcel parcel() {
            return isVirtual ? new ByVirtualThreads() : new BySynchronousQueue();
        }

        @Override
        public void give(Parcel parcel) throws InterruptedException {
            there.put(parcel);
        }

        @Override
        public Parcel take() throws InterruptedException {
            return there.take();
        }

        @Override
        public void giveBack(Parcel parcel) throws InterruptedException {
            back.put(parcel);
        }

        @Override
        public Parcel takeBack() throws InterruptedException {
            return back.take();
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread start(boolean isVirtual, Body body) throws Exception {
        Runnable task = () -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        };
        if (isVirtual) {
            // Since 21.
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
        }
        Thread thread = new Thread(task);
        thread.start();
        return thread;
    }

    static void inTurn(Way way, boolean isVirtual) throws Exception {
        Thread receiver = start(isVirtual, () -> {
            for (int i = 0; i < rounds; i++) {
                Parcel parcel = way.take();
                parcel.receive();
                way.giveBack(parcel);
            }
        });
        Thread sender = start(isVirtual, () -> {
            for (int i = 0; i < rounds; i++) {
                Parcel parcel = way.parcel();
                parcel.send();
                way.give(parcel);
                way.takeBack().answer.read();
            }
        });
        sender.join();
        receiver.join();
    }

    /** What happens before a thread's start and after its end. */
    static void threads() throws Exception {
        for (int i = 0; i < rounds / 100; i++) {
            Parcel parcel = new ByStartAndJoin();
            parcel.send();
            start(false, parcel::receive).join();
            parcel.answer.read();
        }
    }

    static void queuedInArray() throws Exception {
        ArrayBlockingQueue<Parcel> queue = new ArrayBlockingQueue<>(50);
        Thread receiver = start(false, () -> {
            for (int i = 0; i < rounds; i++) {
                queue.take().receive();
            }
        });
        for (int i = 0; i < rounds; i++) {
            Parcel parcel = new QueuedInArray();
            parcel.send();
            queue.put(parcel);
        }
        receiver.join();
    }

    static void queuedInLinks() throws Exception {
        ConcurrentLinkedQueue<Parcel> queue = new ConcurrentLinkedQueue<>();
        Thread receiver = start(false, () -> {
            for (int i = 0; i < rounds; i++) {
                Parcel parcel = queue.poll();
                for (int spins = 0; parcel == null; spins++) {
                    spin(spins);
                    parcel = queue.poll();
                }
                parcel.receive();
            }
        });
        for (int i = 0; i < rounds; i++) {
            Parcel parcel = new QueuedInLinks();
            parcel.send();
            queue.add(parcel);
        }
        receiver.join();
    }

    static boolean hasVirtualThreads() {
        try {
            Thread.class.getMethod("startVirtualThread", Runnable.class);
            return true;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    public static void main(String[] args) throws Exception {
        rounds = Integer.getInteger("rounds", 2_000);
        Way[] ways = {
            new Volatiles(), new Releases(), new Exchanges(), new Monitors(), new Parks(), new Conditions(), new Exchangers(),
            new SynchronousQueues(false),
        };
        for (Way way : ways) {
            inTurn(way, false);
        }
        if (hasVirtualThreads()) {
            inTurn(new SynchronousQueues(true), true);
        }
        threads();
        queuedInArray();
        queuedInLinks();
        System.out.println(rounds);
    }
}
