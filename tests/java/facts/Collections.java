/** Makes garbage and asks for two collections. */
public class Collections {
    static Object sink;

    static void garbage() {
        for (int i = 0; i < 100_000; i++) {
            sink = new byte[64]; // @garbage
        }
    }

    public static void main(String[] args) {
        garbage();
        System.gc();
        garbage();
        System.gc();
        System.out.println("collections");
    }
}
