import java.util.Arrays;

/** What native code makes and stores, by the functions of JNI. */
// library: JniCalls.c
public class JniCalls {
    static class Box {
        Object held;
        int number;
        static Object shared;
    }

    static class SubBox extends Box {}

    static native Object allocate(Class<?> type);

    static native void construct(Object object);

    static native Object create(Class<?> type, int way);

    static native String text(boolean utf);

    static native Object array(char type, int length);

    static native Object[] objects(Class<?> type, int length, Object element);

    static native Object buffer();

    static native Object reflected(Class<?> type, int what);

    static native void setField(Object origin, Object value);

    static native void setNumber(Object origin, int value);

    static native void setStatic(Class<?> type, Object value);

    static native void setElement(Object[] array, int index, Object value);

    static native void goOn(Object origin, Object value, Object[] array);

    static native void runThread();

    static native int many(Object origin, int count);

    static void allocated() {
        allocate(Box.class);
    }
    /* expect allocated
     * V #1 Box
     */

    static void constructed() {
        construct(allocate(SubBox.class));
    }
    /* expect constructed
     * V #1 SubBox
     * M SubBox.<init> #1
     * M Box.<init> #1
     * E Box.<init> #1
     * E SubBox.<init> #1
     */

    static void created() {
        for (int way = 0; way < 3; way++) {
            create(Box.class, way);
        }
    }
    /* expect created
     * N #1 Box
     * M Box.<init> #1
     * E Box.<init> #1
     * N #2 Box
     * M Box.<init> #2
     * E Box.<init> #2
     * N #3 Box
     * M Box.<init> #3
     * E Box.<init> #3
     */

    static void texts() {
        text(true);
        text(false);
    }
    /* expect texts
     * V #1 java.lang.String
     * V #2 byte[3]
     * U #1.value null -> #2
     * V #3 java.lang.String
     * V #4 byte[5]
     * U #3.value null -> #4
     */

    static void arrays() {
        array('Z', 1);
        array('B', 2);
        array('C', 3);
        array('S', 4);
        array('I', 5);
        array('J', 6);
        array('F', 7);
        array('D', 8);
    }
    /* expect arrays
     * V #1 boolean[1]
     * V #2 byte[2]
     * V #3 char[3]
     * V #4 short[4]
     * V #5 int[5]
     * V #6 long[6]
     * V #7 float[7]
     * V #8 double[8]
     */

    static void objectArrays() {
        Box box = new Box(); // @box
        objects(Box.class, 2, box);
        objects(Object.class, 3, null);
    }
    /* expect objectArrays
     * N #1 Box @box
     * M Box.<init> #1
     * E Box.<init> #1
     * V #2 Box[2]
     * U #2[0] null -> #1
     * U #2[1] null -> #1
     * V #3 java.lang.Object[3]
     */

    static void fields() {
        Box box = new SubBox(); // @field
        setField(box, box);
        setNumber(box, 5);
        box.held = null;
        setField(box, null);
    }
    /* expect fields
     * N #1 SubBox @field
     * M SubBox.<init> #1
     * M Box.<init> #1
     * E Box.<init> #1
     * E SubBox.<init> #1
     * U #1.held null -> #1
     * U #1.held #1 -> null
     * U #1.held null -> null
     */

    static void statics() {
        Box box = new Box(); // @static
        setStatic(Box.class, box);
        setStatic(SubBox.class, null);
        Box.shared = box;
        Box.shared = null;
    }
    /* expect statics
     * N #1 Box @static
     * M Box.<init> #1
     * E Box.<init> #1
     * U Box.shared null -> #1
     * U Box.shared #1 -> null
     * U Box.shared null -> #1
     * U Box.shared #1 -> null
     */

    /** What throws has stored nothing. */
    static void elements() {
        Box[] boxes = new Box[2]; // @elements
        Box box = new Box(); // @element
        setElement(boxes, 1, box);
        for (int index = 0; index < 3; index += 2) {
            try {
                setElement(boxes, index, "no box");
            } catch (ArrayStoreException | ArrayIndexOutOfBoundsException expected) {
                System.out.println(expected.getClass().getName());
            }
        }
        setElement(boxes, 1, null);
    }
    /* expect elements own
     * A #1 Box[2] @elements
     * N #2 Box @element
     * M Box.<init> #2
     * E Box.<init> #2
     * U #1[1] null -> #2
     * T JniCalls.elements !#3(java.lang.ArrayStoreException)
     * H JniCalls.elements !#3
     * T JniCalls.elements !#4(java.lang.ArrayIndexOutOfBoundsException)
     * H JniCalls.elements !#4
     * U #1[1] #2 -> null
     */

    static void exceptionPending() {
        Box box = new Box(); // @pending
        Object[] array = new Object[1]; // @array
        try {
            goOn(box, box, array);
        } catch (IllegalStateException expected) {
            System.out.println(expected.getMessage() + " " + (box.held == box) + " " + (array[0] == box));
        }
    }
    /* expect exceptionPending own
     * N #1 Box @pending
     * M Box.<init> #1
     * E Box.<init> #1
     * A #2 java.lang.Object[1] @array
     * U #1.held null -> #1
     * U #2[0] null -> #1
     * T JniCalls.exceptionPending !#3(java.lang.IllegalStateException)
     * H JniCalls.exceptionPending !#3
     */

    static void onThreadOfNativeCode() {
        Box box = (Box) allocate(Box.class);
        setField(box, box);
        setStatic(Box.class, box);
        setStatic(Box.class, null);
    }
    /* expect onThreadOfNativeCode
     * V #1 Box
     * U #1.held null -> #1
     * U Box.shared null -> #1
     * U Box.shared #1 -> null
     */

    static void directBuffer() {
        System.out.println(buffer());
    }

    static void reflection() {
        for (int what = 0; what < 3; what++) {
            System.out.println(reflected(Box.class, what));
        }
    }

    public static void main(String[] args) {
        System.loadLibrary("native");
        for (int i = 0; i < 2; i++) {
            allocated();
            constructed();
            created();
            texts();
            arrays();
            objectArrays();
            fields();
            statics();
            elements();
            exceptionPending();
            runThread();
            directBuffer();
            reflection();
        }
        Box box = new Box();
        System.out.println(many(box, Integer.getInteger("many", 100_000)) + " " + Arrays.toString((int[]) box.held));
    }
}
