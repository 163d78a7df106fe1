// needs: 21
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.locks.LockSupport;

/** What virtual threads hold, before and after they changed their carrier. */
public class OnVirtualThreads {
    static void other() {}

    static class AcrossSleep {
        void use() {}
    }

    static class Caught extends RuntimeException {}

    static class InLocal {}

    static final ThreadLocal<Object> LOCAL = new ThreadLocal<>();

    static class Captured {
        void use() {}
    }

    static class Switched {
        int kind = 2;
    }

    static int kind(Switched switched) {
        return switch (switched.kind) {
            case 1 -> 1;
            case 2 -> 7;
            default -> 0;
        };
    }

    static void sleeping() throws InterruptedException {
        Thread thread = Thread.ofVirtual().start(() -> {
            AcrossSleep held = new AcrossSleep(); // dies AcrossSleep: E AcrossSleep.use AcrossSleep
            LockSupport.parkNanos(2_000_000);
            other();
            held.use();
            other();
            try {
                throw new Caught(); // dies Caught: H OnVirtualThreads.lambda$sleeping$0 !Caught
            } catch (Caught expected) {
                other();
            }
            LOCAL.set(new InLocal()); // dies InLocal: U java.lang.ThreadLocal$ThreadLocalMap$Entry.value InLocal -> null
            LockSupport.parkNanos(2_000_000);
            LOCAL.remove();
            kind(new Switched()); // dies Switched: E Switched.<init> Switched
            // dies Switched all: R Switched
            other();
        });
        thread.join();
    }

    static class Handed {
        void use() {}
    }

    static class Receiver {
        void run(BlockingQueue<Handed> queue) throws InterruptedException {
            queue.take().use();
            other();
        }
    }

    static void handedOver() throws InterruptedException {
        BlockingQueue<Handed> queue = new ArrayBlockingQueue<>(1);
        Thread consumer = Thread.ofVirtual().start(() -> {
            try {
                new Receiver().run(queue); // dies Receiver: E Receiver.run Receiver
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        });
        Thread producer = Thread.ofVirtual().start(() -> {
            try {
                LockSupport.parkNanos(2_000_000);
                queue.put(new Handed()); // dies Handed: E Handed.use Handed
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        });
        consumer.join();
        producer.join();
    }

    static class NeverRun {
        void use() {}
    }

    static void neverStarted() {
        NeverRun captured = new NeverRun(); // dies NeverRun: in OnVirtualThreads.neverStarted
        Thread.ofVirtual().unstarted(() -> captured.use());
        other();
    }

    public static void main(String[] args) throws InterruptedException {
        sleeping();
        handedOver();
        neverStarted();
        System.out.println("virtual threads");
    }
}
