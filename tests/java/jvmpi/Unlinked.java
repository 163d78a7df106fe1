import java.io.Serializable;

/** Has classes that are loaded and never linked, with interfaces and static fields that stand in dumps; and arrays of one. */
public class Unlinked {
    static class Never implements Runnable, Serializable {
        static Object reference = "x";
        static long number = 7;
        int own;
        Never next;

        @Override
        public void run() {}
    }

    static class Small extends Never {
        static byte[] bytes = {1, 2, 3};
        byte one;
    }

    static class Held {
        byte one;
        long two;
    }

    static Object held = new Held();
    static Object[] classes;

    public static void main(String[] arguments) throws Exception {
        ClassLoader loader = Unlinked.class.getClassLoader();
        classes = new Object[] {
            Class.forName("Unlinked$Never", false, loader),
            Class.forName("Unlinked$Small", false, loader),
            Class.forName("[LUnlinked$Small;", false, loader),
        };
        System.out.println("done");
    }
}
