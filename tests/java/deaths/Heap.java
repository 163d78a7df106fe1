import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;

/** Objects that statics, fields and elements hold: each dies behind the update that drops it. */
public class Heap {
    static void other() {}

    static int count;

    // Statics

    static Object slot;

    static class Dropped {}

    static class Overwritten {}

    static class Overwriting {}

    static class ToTheEnd {}

    static Object last;

    static void statics() {
        slot = new Dropped(); // dies Dropped: U Heap.slot Dropped -> null
        other();
        slot = null;
        other();
        slot = new Overwritten(); // dies Overwritten: U Heap.slot Overwritten -> Overwriting
        other();
        slot = new Overwriting(); // dies Overwriting: U Heap.slot Overwriting -> null
        other();
        slot = null;
        last = new ToTheEnd(); // dies ToTheEnd: never
    }

    /** Only read afterwards: then a local holds it, and it is used. */
    static class ReadOut {
        void use() {}
    }

    static ReadOut readOut;

    static void readOut() {
        readOut = new ReadOut(); // dies ReadOut: E ReadOut.use ReadOut
        ReadOut local = readOut;
        readOut = null;
        other();
        local.use();
        other();
    }

    // Arrays

    static class InSlot {}

    static class InRow {}

    static class InLocalArray {}

    static class Moved {}

    static class Covered {}

    static InSlot[] slots = new InSlot[4];
    static InRow[][] rows;
    static Object[] copied = new Object[2];

    static void arrays() {
        slots[3] = new InSlot(); // dies InSlot: U InSlot[][3] InSlot -> null
        other();
        slots[3] = null;
        other();
        rows = new InRow[2][1]; // @rows
        rows[1][0] = new InRow(); // dies InRow: U InRow[][][1] InRow[] -> null
        other();
        rows[1] = null;
        other();
        Object[] local = {new InLocalArray()}; // @local
        // dies InLocalArray: U java.lang.Object[][0] null -> InLocalArray
        // dies @local: U java.lang.Object[][0] null -> InLocalArray
        other();
        copied[0] = new Covered(); // dies Covered: U java.lang.Object[][0] Covered -> Moved
        copied[1] = new Moved(); // dies Moved: U Heap.copied java.lang.Object[] -> null
        System.arraycopy(copied, 1, copied, 0, 1);
        other();
        copied[1] = null;
        other();
        copied = null;
        other();
    }

    // Shapes

    static class CycleA {
        CycleB b;
    }

    static class CycleB {
        CycleA a;
    }

    static CycleA cycle;

    static class Self {
        Self self;
    }

    static class Head {
        Object next;
    }

    static class Middle {
        Object next;
    }

    static class Tail {
        void use() {}
    }

    static Object chain;

    static class Parent {
        final List<Child> children = new ArrayList<>();
    }

    static class Child {
        final Parent parent;

        Child(Parent parent) {
            this.parent = parent;
        }
    }

    static Parent root;

    static class Shared {}

    static class Left {
        Shared shared;
    }

    static class Right {
        Shared shared;
    }

    static Left left;
    static Right right;

    static void shapes() {
        cycle = new CycleA(); // dies CycleA: U Heap.cycle CycleA -> null
        cycle.b = new CycleB(); // dies CycleB: U Heap.cycle CycleA -> null
        cycle.b.a = cycle;
        other();
        cycle = null;
        other();

        Self self = new Self(); // dies Self: U Self.self null -> Self
        self.self = self;
        other();

        Head head = new Head(); // dies Head: U Heap.chain Head -> Tail
        Middle middle = new Middle(); // dies Middle: U Heap.chain Head -> Tail
        Tail tail = new Tail(); // dies Tail: E Tail.use Tail
        head.next = middle;
        middle.next = tail;
        chain = head;
        other();
        chain = tail;
        other();
        chain = null;
        other();
        tail.use();
        other();

        root = new Parent(); // dies Parent: U Heap.root Parent -> null
        root.children.add(new Child(root)); // dies Child: U Heap.root Parent -> null
        other();
        root = null;
        other();

        left = new Left(); // dies Left: U Heap.left Left -> null
        right = new Right(); // dies Right: U Heap.right Right -> null
        left.shared = new Shared(); // dies Shared: U Heap.right Right -> null
        right.shared = left.shared;
        left = null;
        other();
        right = null;
        other();
    }

    // Collections

    static class Value {}

    static class Key {
        @Override
        public int hashCode() {
            return 3007;
        }
    }

    static class Concurrent {}

    static class Listed {}

    static class Cleared {}

    static class Queued {}

    static Map<Object, Object> map = new HashMap<>(4000); // the JDK's own have no such indexes
    static Map<Object, Object> concurrent = new ConcurrentHashMap<>(4000);
    static List<Object> list = new ArrayList<>();
    static ArrayDeque<Object> queue = new ArrayDeque<>();

    static void collections() {
        map.put(3005, new Value()); // dies Value: U java.util.HashMap$Node[][3005] java.util.HashMap$Node -> null
        // dies Value refs: R java.util.HashMap$Node in Heap.collections
        // dies Value all: R Value
        other();
        map.remove(3005);
        other();
        Key key = new Key(); // dies Key: U java.util.HashMap$Node[][3007] java.util.HashMap$Node -> null
        map.put(key, "value");
        other();
        map.clear();
        other();
        concurrent.put(3009, new Concurrent());
        // dies Concurrent: U java.util.concurrent.ConcurrentHashMap$Node[][3009] java.util.concurrent.ConcurrentHashMap$Node -> null
        // dies Concurrent all: R Concurrent
        other();
        concurrent.remove(3009);
        other();
        list.add(new Listed()); // dies Listed: U java.lang.Object[][0] Listed -> null
        // dies Listed all: R Listed
        other();
        list.remove(0);
        other();
        list.add("first");
        list.add(new Cleared()); // dies Cleared: U java.lang.Object[][1] Cleared -> null
        list.clear();
        other();
        queue.addLast(new Queued()); // dies Queued: U java.lang.Object[][0] Queued -> null
        // dies Queued all: R Queued
        other();
        queue.removeFirst();
        other();
    }

    // Stores that no bytecode does

    static class Swapped {}

    static class SwappedIn {}

    static class NotSwapped {}

    static class Exchanged {}

    static class InAtomicArray {}

    static class ByHandle {}

    static class ByElementHandle {}

    static class Updated {}

    static class Reflected {}

    static class Cell {
        volatile Object value;
        Object handled;
        Object reflected;
    }

    static final AtomicReference<Object> ATOMIC = new AtomicReference<>();
    static final AtomicReferenceArray<Object> ATOMICS = new AtomicReferenceArray<>(3);
    static final AtomicReferenceFieldUpdater<Cell, Object> UPDATER =
            AtomicReferenceFieldUpdater.newUpdater(Cell.class, Object.class, "value");
    static final Cell CELL = new Cell();
    static final Object[] ELEMENTS = new Object[2];

    static void storesOfOtherKinds() throws ReflectiveOperationException {
        Object swapped = new Swapped(); // dies Swapped: U java.util.concurrent.atomic.AtomicReference.value Swapped -> SwappedIn
        ATOMIC.set(swapped);
        other();
        Object notSwapped = new NotSwapped(); // dies NotSwapped: E NotSwapped.<init> NotSwapped
        // dies NotSwapped all: R NotSwapped
        count += ATOMIC.compareAndSet("another", notSwapped) ? 1 : 0;
        other();
        count += ATOMIC.compareAndSet(swapped, new SwappedIn()) ? 1 : 0; // dies SwappedIn: U java.util.concurrent.atomic.AtomicReference.value SwappedIn -> Exchanged
        // dies SwappedIn all: R SwappedIn
        other();
        ATOMIC.getAndSet(new Exchanged()); // dies Exchanged: U java.util.concurrent.atomic.AtomicReference.value Exchanged -> null
        other();
        ATOMIC.lazySet(null);
        other();

        ATOMICS.set(2, new InAtomicArray()); // dies InAtomicArray: U java.lang.Object[][2] InAtomicArray -> null
        other();
        ATOMICS.set(2, null);
        other();

        UPDATER.set(CELL, new Updated()); // dies Updated: U Cell.value Updated -> null
        // dies Updated all: R Updated
        other();
        UPDATER.getAndSet(CELL, null);
        other();

        VarHandle field = MethodHandles.lookup().findVarHandle(Cell.class, "handled", Object.class);
        field.setVolatile(CELL, (Object) new ByHandle()); // dies ByHandle: U Cell.handled ByHandle -> null
        other();
        field.setRelease(CELL, (Object) null);
        other();
        VarHandle element = MethodHandles.arrayElementVarHandle(Object[].class);
        element.set(ELEMENTS, 1, (Object) new ByElementHandle()); // dies ByElementHandle: U java.lang.Object[][1] ByElementHandle -> null
        other();
        ELEMENTS[1] = null;
        other();

        java.lang.reflect.Field reflection = Cell.class.getDeclaredField("reflected");
        reflection.set(CELL, new Reflected()); // dies Reflected: U Cell.reflected Reflected -> null
        other();
        reflection.set(CELL, null);
        other();
    }

    // Objects that no bytecode makes, or not the program's

    static class Sheep implements Cloneable {
        Wool wool = new Wool(); // dies Wool: U Heap.copy Sheep -> null

        @Override
        public Sheep clone() {
            try {
                return (Sheep) super.clone();
            } catch (CloneNotSupportedException never) {
                throw new AssertionError(never);
            }
        }
    }

    static class Wool {}

    static Sheep original;
    static Sheep copy;

    static class InClone {}

    static Object[] cloned;
    static Object[] grown;

    static class InCopy {}

    static class ByConstructorHandle {
        void use() {}
    }

    static class Stored implements Serializable {
        final Part part = new Part();
    }

    static class Part implements Serializable {}

    static Stored stored;

    static class Built {
        void use() {}

        public Built() {}
    }

    static class Boxes {
        Object integer;
        Object text;
        Object builder;
    }

    static final Boxes BOXES = new Boxes();

    static void madeElsewhere() throws Exception {
        original = new Sheep(); // dies Heap.original: U Heap.original Sheep -> null
        copy = original.clone(); // dies Heap.copy: U Heap.copy Sheep -> null
        other();
        original = null;
        other();
        copy = null;
        other();

        Object[] array = {new InClone()}; // dies InClone: U Heap.cloned java.lang.Object[] -> null
        cloned = array.clone(); // dies Heap.cloned: U Heap.cloned java.lang.Object[] -> null
        other();
        cloned = null;
        other();
        Object[] two = {null, new InCopy()}; // dies InCopy: U Heap.grown java.lang.Object[] -> null
        grown = Arrays.copyOf(two, 5);
        other();
        grown = null;
        other();

        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(new Stored());
        stored = (Stored) new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
        // dies Heap.stored: U Heap.stored Stored -> null
        other();
        stored = null;
        other();

        Built built = Built.class.getConstructor().newInstance(); // dies Built: E Built.use Built
        other();
        built.use();
        other();

        MethodHandle constructor =
                MethodHandles.lookup().findConstructor(ByConstructorHandle.class, MethodType.methodType(void.class));
        ByConstructorHandle byHandle = handled(constructor); // dies ByConstructorHandle: E ByConstructorHandle.use ByConstructorHandle
        other();
        byHandle.use();
        other();

        BOXES.integer = 100_000; // dies Boxes.integer: U Boxes.integer java.lang.Integer -> null
        other();
        BOXES.integer = null;
        other();
        BOXES.text = "text " + count; // dies Boxes.text: U Boxes.text java.lang.String -> null
        other();
        BOXES.text = null;
        other();
        BOXES.builder = new StringBuilder("x").append(count); // dies Boxes.builder: U Boxes.builder java.lang.StringBuilder -> null
        other();
        BOXES.builder = null;
        other();
        constant = "a constant"; // dies Heap.constant: never
        other();
        constant = null;
        other();
    }

    static ByConstructorHandle handled(MethodHandle constructor) throws Exception {
        try {
            return (ByConstructorHandle) constructor.invokeExact();
        } catch (Throwable never) {
            throw new AssertionError(never);
        }
    }

    static String constant;

    enum Colour { RED } // dies Colour: never

    public static void main(String[] args) throws Exception {
        statics();
        readOut();
        arrays();
        shapes();
        collections();
        storesOfOtherKinds();
        madeElsewhere();
        System.out.println("heap " + count + Colour.RED);
    }
}
