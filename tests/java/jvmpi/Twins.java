/**
 * Makes classes whose identity hashes are those of other classes. The main thread's hashes come in the same order in every run, also in the one
 * that made the archive of classes, whose mirrors keep theirs: so the first classes that it makes are twins of archived ones, some of which are
 * loaded. The agent makes an object of each, and checks what it was told; and of clones as well.
 */
public class Twins extends ClassLoader {
    /** `public class N000 {}`, without constructors. */
    static final byte[] FILE = {
        (byte) 0xca, (byte) 0xfe, (byte) 0xba, (byte) 0xbe, 0, 0, 0, 49, 0, 5, 7, 0, 2, 1, 0, 4, 'N', '0', '0', '0', 7, 0, 4, 1, 0, 16, 'j', 'a',
        'v', 'a', '/', 'l', 'a', 'n', 'g', '/', 'O', 'b', 'j', 'e', 'c', 't', 0, 0x21, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0,
    };
    static final int DIGITS = 17;

    static class Copied implements Cloneable {
        int number = 3;

        @Override
        public Copied clone() throws CloneNotSupportedException {
            return (Copied) super.clone();
        }
    }

    static native void check(Class<?>[] all);

    static native void checkObjects(Object[] all);

    public static void main(String[] arguments) throws Exception {
        Twins loader = new Twins();
        Class<?>[] all = new Class<?>[200];
        // Before anything else takes these hashes.
        for (int number = 0; number < all.length; number++) {
            FILE[DIGITS] = (byte) ('0' + number / 100);
            FILE[DIGITS + 1] = (byte) ('0' + number / 10 % 10);
            FILE[DIGITS + 2] = (byte) ('0' + number % 10);
            all[number] = loader.defineClass(null, FILE, 0, FILE.length);
        }
        System.load(arguments[0]);
        check(all);
        // The VM copies an object over its clone, once that is made.
        Object[] clones = new Object[300];
        for (int number = 0; number < clones.length; number += 3) {
            clones[number] = new Copied().clone();
            clones[number + 1] = new int[number].clone();
            clones[number + 2] = new Object[number].clone();
        }
        checkObjects(clones);
        System.out.println("done");
    }
}
