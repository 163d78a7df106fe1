import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

import org.elephanttracks.test.Action;
import org.elephanttracks.test.Allocation;
import org.elephanttracks.test.Allocations;

/** Code whose allocations are known, counted by et-test: prints what differs, and "as expected" at the end. */
public class Counted {
    static class Point implements Cloneable {
        int x;

        Point(int x) {
            this.x = x;
        }

        Point copy() {
            return new Point(x);
        }

        @Override
        public Point clone() {
            try {
                return (Point) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static class Three extends Point {
        Object inner = new Object();

        Three() {
            super(3);
        }
    }

    static final int MANY = 1_000_000;
    static volatile Object sink;
    static int wrong;

    static void expect(Object expected, Object found, Object more) {
        if (!expected.equals(found)) {
            wrong++;
            System.out.println("expected " + expected + " and not " + found + ": " + more);
        }
    }

    static long objects(Action action) {
        return Allocations.of(action).objects();
    }

    public static void main(String[] arguments) throws Exception {
        expect(0L, objects(() -> { }), "nothing");
        Allocations made = Allocations.of(() -> {
            for (int i = 0; i < 10; i++) {
                sink = new Point(i).copy();
            }
            sink = new int[3][2];
        });
        expect(24L, made.objects(), made);
        expect(20L, made.objects(Point.class), made);
        expect(0L, made.objects(Object.class), made);
        expect("{Counted$Point=20, int[]=3, int[][]=1}", made.byClass().toString(), made);
        // 16 bytes each with small references, rows of 24, and an array of three references.
        expect(20 * 16 + 3 * 24 + 32L, made.bytes(), made);
        Allocation first = made.bySite().get(0);
        expect("copy main", first.stack().get(0).getMethodName() + " " + caller(first), made);

        // A constructor's own objects have their own sites, and are not its caller's.
        Allocations nested = Allocations.of(() -> sink = new Three());
        expect("{Counted$Three=1, java.lang.Object=1}", nested.byClass().toString(), nested);
        for (Allocation one : nested.bySite()) {
            String at = one.stack().get(0).getMethodName();
            expect(one.type() == Object.class, at.equals("<init>"), nested);
        }
        // What the VM makes.
        Point point = new Point(7);
        int[] numbers = {1, 2};
        expect(2L, objects(() -> sink = new Object[] {point.clone(), 1}[0]), "a clone");
        expect(1L, objects(() -> sink = numbers.clone()), "an array's clone");
        // What the JIT compilers would leave out.
        expect((long) MANY, objects(() -> {
            int sum = 0;
            for (int i = 0; i < MANY; i++) {
                sum += new Point(i).x;
            }
            sink = sum < 0 ? null : numbers;
        }), "short-lived points");
        // Boxes beyond the cache, and the arrays of the list.
        Allocations boxes = Allocations.of(() -> {
            List<Integer> list = new ArrayList<>(1000);
            for (int i = 0; i < 1000; i++) {
                list.add(i);
            }
        });
        expect(1000L - 128, boxes.objects(Integer.class), boxes);
        expect(2L, boxes.objects() - boxes.objects(Integer.class), boxes);

        threads();
        failures();
        System.out.println(wrong == 0 ? "as expected" : "wrong: " + wrong);
    }

    private static String caller(Allocation one) {
        String method = one.stack().get(1).getMethodName();
        return method.startsWith("lambda$main$") ? "main" : method;
    }

    static void threads() {
        int each = 20_000;
        Action busy = () -> {
            Thread[] threads = new Thread[4];
            CountDownLatch ready = new CountDownLatch(threads.length);
            for (int i = 0; i < threads.length; i++) {
                threads[i] = new Thread(() -> {
                    ready.countDown();
                    for (int k = 0; k < each; k++) {
                        sink = new Point(k);
                    }
                });
                threads[i].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
        };
        expect(4L * each, Allocations.counting().allThreads().of(busy).objects(Point.class), "all threads");
        expect(0L, Allocations.counting().of(busy).objects(Point.class), "this thread");
        // Each counts its own.
        long[] counts = new long[3];
        Thread[] counting = new Thread[counts.length];
        for (int i = 0; i < counting.length; i++) {
            int number = i;
            counting[i] = new Thread(() -> counts[number] = Allocations.of(() -> {
                for (int k = 0; k <= number * each; k++) {
                    sink = new Point(k);
                }
            }).objects());
            counting[i].start();
        }
        for (int i = 0; i < counting.length; i++) {
            try {
                counting[i].join();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            expect(1L + i * each, counts[i], "thread " + i);
        }
    }

    static void failures() {
        int[] runs = {0};
        Allocations.counting().warmUp(3).of(() -> runs[0]++);
        expect(4, runs[0], "runs");
        expect(true, Allocations.areCounted(), "counted");
        Allocations two = Allocations.of(() -> sink = new Object[] {new Point(1)});
        two.atMost(2).atMost(2, 48);
        expectFailure("at most 1 object allowed, but 2 objects (", () -> two.atMost(1));
        expectFailure("at most 2 objects and 8 bytes allowed, but 2 objects (", () -> two.atMost(2, 8));
        expectFailure("at Counted.lambda$failures$", () -> two.none());
        expectFailure("allocations of this thread are being counted", () -> Allocations.of(() -> Allocations.of(() -> { })));
        expectFailure("thrown by the code", () -> Allocations.of(() -> {
            throw new java.io.IOException("thrown by the code");
        }));
        // Nothing is left counting.
        expect(0L, objects(() -> { }), "nothing after failures");
    }

    static void expectFailure(String message, Action action) {
        try {
            action.run();
        } catch (Throwable thrown) {
            expect(true, thrown.getMessage().contains(message), thrown);
            return;
        }
        expect(message, "nothing", "no failure");
    }
}
