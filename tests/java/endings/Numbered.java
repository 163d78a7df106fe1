import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Makes arrays of known lengths, one after the other, and counts those it has made in a file that is mapped: the count survives
 * whatever kills the program. Two threads, each with a type and a count of its own.
 */
public class Numbered {
    static final int LENGTHS = 1000;

    static Object last;

    static void bytes(MappedByteBuffer counts) {
        for (int made = 0; ; made++) {
            last = new byte[made % LENGTHS]; // @bytes
            counts.putInt(0, made + 1);
        }
    }

    static void chars(MappedByteBuffer counts) {
        for (int made = 0; ; made++) {
            last = new char[made % LENGTHS]; // @chars
            counts.putInt(4, made + 1);
        }
    }

    public static void main(String[] args) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(args[0], "rw")) {
            MappedByteBuffer counts = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8);
            System.out.println("ready");
            new Thread(() -> chars(counts), "chars").start();
            bytes(counts);
        }
    }
}
