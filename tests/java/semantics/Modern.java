// needs: 25
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SequencedCollection;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;

/** What compilers of today make of the language of today. */
public class Modern {
    sealed interface Shape permits Circle, Square, Group {}

    record Circle(double radius) implements Shape {
        Circle {
            if (radius < 0) {
                throw new IllegalArgumentException("radius " + radius);
            }
        }
    }

    record Square(double side, Object... tags) implements Shape {
        static int made;

        Square(double side) {
            this(side, "one", 2);
            made++;
        }
    }

    record Group(List<Shape> parts) implements Shape {
        Group(Shape... parts) {
            this(List.of(parts));
        }
    }

    record Pair<A, B>(A one, B other) {}

    enum Op implements Function<Double, Double> {
        HALF {
            @Override
            public Double apply(Double value) {
                return value / 2;
            }
        },
        SAME;

        @Override
        public Double apply(Double value) {
            return value;
        }
    }

    /** Statements before `super(…)`: JDK 25. */
    static class Early {
        final Object first;
        final List<String> list;

        Early(Object argument) {
            if (argument == null) {
                throw new IllegalArgumentException("null before super");
            }
            var made = new ArrayList<String>();
            made.add(argument.toString());
            this.first = made;
            super();
            list = made;
        }
    }

    static class EarlyChild extends Early {
        final Object own;

        EarlyChild(int count) {
            Object[] table = new Object[count];
            own = table;
            super(table.length > 2 ? "large" : null);
        }
    }

    static double area(Shape shape) {
        return switch (shape) {
            case Circle(double radius) when radius > 100 -> Double.POSITIVE_INFINITY;
            case Circle(var radius) -> Math.PI * radius * radius;
            case Square(double side, Object[] tags) -> side * side + tags.length;
            case Group(List<Shape> parts) -> parts.stream().mapToDouble(Modern::area).sum();
        };
    }

    static String kind(Object value) {
        return switch (value) {
            case null -> "null";
            case Integer number when number > 10 -> "large " + number;
            case Integer number -> "number " + number;
            case String text -> "text " + text.length();
            case Op op -> "op " + op.ordinal();
            case Pair(Pair(var a, var b), String c) -> "nested " + a + b + c;
            case Pair<?, ?> pair -> "pair " + pair;
            case int[] array -> "array " + array.length;
            case Record other -> "record " + other;
            default -> value.getClass().getSimpleName();
        };
    }

    static int word(String text) {
        return switch (text) {
            case "Aa", "BB" -> 1;
            case "AaAa", "BBBB" -> {
                int sum = 0;
                for (char letter : text.toCharArray()) {
                    sum += letter;
                }
                yield sum;
            }
            default -> -1;
        };
    }

    static class Resource implements AutoCloseable {
        @Override
        public void close() {
            throw new IllegalStateException("on close");
        }
    }

    public static void main(String[] args) throws Exception {
        System.out.println(area(new Group(new Circle(1), new Square(2), new Group(new Circle(200)))));
        Object[] values = {null, 3, 30, "abc", Op.HALF, new Pair<>(new Pair<>(1, 2), "c"), new Pair<>(1, 2), new int[4], new Circle(3), 4L};
        for (Object value : values) {
            System.out.println(kind(value));
        }
        try {
            new Circle(-1);
        } catch (IllegalArgumentException expected) {
            System.out.println(expected.getMessage() + Square.made);
        }
        System.out.println(word("BB") + word("AaAa") + word("none") + Op.HALF.apply(3.0) + Op.SAME.apply(1.0));
        System.out.println(new EarlyChild(3).list + " " + new Early("x").first);
        for (int count : new int[] {1, -1}) {
            try {
                new EarlyChild(count);
            } catch (RuntimeException expected) {
                System.out.println(expected);
            }
        }
        try (var one = new Resource(); var other = new Resource()) {
            throw new RuntimeException("body of " + (one != other));
        } catch (RuntimeException expected) {
            System.out.println(expected.getMessage() + " " + expected.getSuppressed().length);
        }
        SequencedCollection<String> list = new ArrayList<>(List.of("a", "b"));
        System.out.println(list.reversed() + """
             a text block with "quotes" \
            and a joined line""");
        var lock = new ReentrantLock();
        int[] sum = new int[1];
        try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int index = 0; index < 50; index++) {
                int value = index;
                executor.submit(() -> {
                    Thread.sleep(value % 5);
                    lock.lock();
                    try {
                        sum[0] += value;
                        return new Pair<>(value, Thread.currentThread().isVirtual());
                    } finally {
                        lock.unlock();
                    }
                });
            }
        }
        System.out.println(sum[0] + " " + Map.of("k", new Pair<>("a", 1)));
        ScopedValue<String> scoped = ScopedValue.newInstance();
        ScopedValue.where(scoped, "bound").run(() -> System.out.println(scoped.get()));
    }
}
