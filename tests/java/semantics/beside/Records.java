import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/** Flight recordings, with events of the program's own. */
public class Records {
    @Label("Round")
    static class Round extends Event {
        int number;
        String text;
    }

    public static void main(String[] args) throws Exception {
        for (int time = 0; time < 2; time++) {
            Path file = Files.createTempFile("records", ".jfr");
            try (Recording recording = new Recording()) {
                recording.enable("jdk.ObjectAllocationInNewTLAB").withStackTrace();
                recording.enable("jdk.ExecutionSample");
                recording.enable("jdk.ThreadStart");
                recording.start();
                List<Object> kept = new ArrayList<>();
                for (int index = 0; index < 50; index++) {
                    Round round = new Round();
                    round.begin();
                    kept.add(new byte[10_000]);
                    round.number = index;
                    round.text = "round " + index;
                    round.commit();
                }
                Thread thread = new Thread(kept::clear, "recorded");
                thread.start();
                thread.join();
                recording.stop();
                recording.dump(file);
            }
            int rounds = 0;
            long sum = 0;
            boolean threads = false;
            for (RecordedEvent event : RecordingFile.readAllEvents(file)) {
                if (event.getEventType().getName().endsWith("Round")) {
                    rounds++;
                    sum += event.getInt("number") + event.getString("text").length();
                }
                threads |= event.getEventType().getName().equals("jdk.ThreadStart");
            }
            System.out.println(rounds + " " + sum + " " + threads);
            Files.delete(file);
        }
    }
}
