import org.elephanttracks.ddm.Chunk;
import org.elephanttracks.ddm.ChunkHandler;
import org.elephanttracks.ddm.DdmServer;

/** A program with chunks of its own. */
public class Chunks {
    public static void main(String[] arguments) throws Exception {
        DdmServer.registerHandler(Chunk.type("echo"), new ChunkHandler() {
            @Override
            public Chunk handleChunk(Chunk request) {
                byte[] data = request.bytes();
                if (data.length == 0) {
                    return null;
                }
                if (data[0] == '!') {
                    throw new IllegalStateException("as it was asked to");
                }
                for (int i = 0; i < data.length / 2; i++) {
                    byte last = data[data.length - 1 - i];
                    data[data.length - 1 - i] = data[i];
                    data[i] = last;
                }
                return new Chunk(Chunk.type("ohce"), data);
            }

            @Override
            public void connected() {
                System.out.println("connected");
                DdmServer.sendChunk(new Chunk(Chunk.type("news"), new byte[] {1, 2, 3}));
                DdmServer.setAppName("Renamed");
            }

            @Override
            public void disconnected() {
                System.out.println("disconnected");
            }
        });
        System.out.println("ready");
        while (System.in.read() != '\n') {
        }
    }
}
