import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Threads that make arrays for as long as the VM lets them, each counting those it has made in a file that is mapped. With
 * `exit` the main thread ends the program in their midst; else it waits, and somebody else does.
 */
public class Endless {
    static final int THREADS = 2;

    static void make(MappedByteBuffer counts, int at) {
        Object last = null;
        for (int made = 0; ; made++) {
            last = new short[5];
            counts.putInt(at, made + 1);
        }
    }

    public static void main(String[] args) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(args[0], "rw")) {
            MappedByteBuffer counts = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4 * THREADS);
            for (int thread = 0; thread < THREADS; thread++) {
                int at = 4 * thread;
                Thread maker = new Thread(() -> make(counts, at), "maker");
                maker.setDaemon(true);
                maker.start();
            }
            System.out.println("ready");
            if (args.length > 1) {
                Thread.sleep(300);
                System.exit(7);
            }
            System.in.read();
        }
    }
}
