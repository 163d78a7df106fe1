package words;

/** Counts the words it is given. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        Index index = new Index();
        for (String argument : arguments) {
            index.add(argument);
        }
        System.out.println(index);
    }
}
