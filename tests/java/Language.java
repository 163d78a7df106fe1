import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

// no expectations: most of what it does is the JDK's, and another on each; it prints the same, and its trace is valid
/** What the language and the library do behind one's back. */
public class Language {
    enum Colour {
        RED,
        GREEN {
            @Override
            String shout() {
                return "GREEN!";
            }
        };

        String shout() {
            return name();
        }
    }

    static class Point implements Serializable {
        final int x;
        final String name;

        Point(int x, String name) {
            this.x = x;
            this.name = name;
        }

        String show() {
            return name + "@" + x;
        }
    }

    interface Greeter {
        String greet(String whom);
    }

    static String switched(String word) {
        switch (word) {
            case "one":
                return "1";
            case "two":
                return "2";
            default:
                return "?";
        }
    }

    static String lambdas(int n) {
        Supplier<String> captured = () -> "n=" + n;
        Function<Integer, Point> constructor = i -> new Point(i, "p");
        Function<Point, String> method = Point::show;
        return captured.get() + constructor.andThen(method).apply(n);
    }

    static String streams() {
        Map<Boolean, List<String>> parts = IntStream.range(0, 50).boxed()
                .map(i -> new Point(i, "s"))
                .collect(Collectors.partitioningBy(p -> p.x % 2 == 0, Collectors.mapping(Point::show, Collectors.toList())));
        return parts.get(true).size() + "/" + String.join(",", parts.get(false).subList(0, 3));
    }

    static String reflection() throws Exception {
        Point point = Point.class.getDeclaredConstructor(int.class, String.class).newInstance(7, "r");
        Object array = java.lang.reflect.Array.newInstance(Point.class, 3);
        java.lang.reflect.Array.set(array, 1, point);
        Greeter greeter = (Greeter) Proxy.newProxyInstance(
                Language.class.getClassLoader(),
                new Class<?>[] {Greeter.class},
                (InvocationHandler) (proxy, method, arguments) -> method.getName() + " " + arguments[0]);
        return Point.class.getDeclaredMethod("show").invoke(point) + " " + greeter.greet("you")
                + " " + Arrays.asList((Point[]) array).indexOf(point);
    }

    static String serialized() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(new ArrayList<>(List.of(new Point(1, "a"), new Point(2, "b"))));
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            List<?> points = (List<?>) in.readObject();
            return ((Point) points.get(1)).show();
        }
    }

    static String cloned() {
        int[][] table = {{1, 2}, {3}};
        int[][] copy = table.clone();
        Object[] wider = Arrays.copyOf(new Object[] {"x", null}, 4);
        System.arraycopy(wider, 0, wider, 1, 3);
        return copy[0][1] + " " + Arrays.toString(wider);
    }

    static String boxes() {
        Map<Object, Object> map = new TreeMap<>(Collections.reverseOrder());
        for (long l = 126; l < 130; l++) {
            map.put(l, (double) l);
        }
        Map<Colour, Integer> colours = new HashMap<>();
        for (Colour colour : Colour.values()) {
            colours.merge(colour, 1, Integer::sum);
        }
        return map + " " + Colour.GREEN.shout() + Colour.valueOf("RED").shout() + colours.size();
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 2; i++) {
            System.out.println(lambdas(i) + " " + switched("two") + switched("three"));
            System.out.println(streams());
            System.out.println(reflection());
            System.out.println(serialized());
            System.out.println(cloned());
            System.out.println(boxes());
        }
        System.err.println("to the other stream");
        System.exit(3);
    }
}
