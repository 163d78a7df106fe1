import java.io.File;
import java.util.ArrayList;
import java.util.List;
import org.graalvm.visualvm.lib.jfluid.heap.FieldValue;
import org.graalvm.visualvm.lib.jfluid.heap.Heap;
import org.graalvm.visualvm.lib.jfluid.heap.HeapFactory;
import org.graalvm.visualvm.lib.jfluid.heap.Instance;
import org.graalvm.visualvm.lib.jfluid.heap.JavaClass;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectArrayInstance;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectFieldValue;

/** Counts what VisualVM's library finds in a heap dump. */
public class CountHprof {
    static long references;

    static void count(List<?> values) {
        for (Object value : values) {
            if (value instanceof ObjectFieldValue && ((ObjectFieldValue) value).getInstance() != null) {
                references++;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(args[0]));
        List<String> lines = new ArrayList<>();
        int classes = 0;
        for (Object each : heap.getAllClasses()) {
            JavaClass type = (JavaClass) each;
            // The library adds classes of its own for arrays of numbers.
            if (type.getJavaClassId() != 0) {
                classes++;
            }
            for (Object field : type.getStaticFieldValues()) {
                FieldValue value = (FieldValue) field;
                // Not in the file as fields.
                String name = value.getField().getName();
                if (!name.equals("<classLoader>")) {
                    count(List.of(value));
                }
            }
            for (Object one : type.getInstances()) {
                Instance instance = (Instance) one;
                if (instance instanceof ObjectArrayInstance) {
                    for (Object element : ((ObjectArrayInstance) instance).getValues()) {
                        references += element == null ? 0 : 1;
                    }
                } else {
                    count(instance.getFieldValues());
                }
            }
            if (type.getInstancesCount() > 0) {
                lines.add(type.getInstancesCount() + " " + type.getName());
            }
        }
        System.out.println("references " + references);
        System.out.println("classes " + classes);
        lines.forEach(line -> System.out.println("objects " + line));
    }
}
