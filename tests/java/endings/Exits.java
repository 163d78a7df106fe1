/** Says when its last statement ran; with an argument, that is a call of `exit`. */
public class Exits {
    public static void main(String[] arguments) {
        System.out.println(System.currentTimeMillis());
        if (arguments.length > 0) {
            System.exit(0);
        }
    }
}
