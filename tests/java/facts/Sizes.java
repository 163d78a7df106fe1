/** Classes whose instances have known sizes: 12 bytes of header, then fields, rounded up to 8. */
public class Sizes {
    static class Size0 {}

    static class Size1 {
        byte a;
    }

    static class Size12 {
        int a;
        int b;
        Object c;
    }

    static class Size16 {
        int a;
        int b;
        Object c;
        Object d;
        byte e;
    }

    static class SizeLong {
        long a;
    }

    static Object last;

    public static void main(String[] args) {
        last = new Size0();
        last = new Size1();
        last = new Size12();
        last = new Size16();
        last = new SizeLong();
        System.out.println("sizes");
    }
}
