import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Service: answers requests, and leaks in two places: sessions are never removed, and each request leaves a listener. Requests are handed to
 * another thread, which keeps those that failed for a retry that never comes.
 */
public class Service {
    static final Map<Integer, Session> SESSIONS = new HashMap<>();
    static final List<Listener> LISTENERS = new ArrayList<>();
    static final Auditor AUDITOR = new Auditor();

    static final class Session {
        final byte[] basket = new byte[200];
        final int customer;

        Session(int customer) {
            this.customer = customer;
        }
    }

    static final class Listener {
        final long[] seen = new long[16];
    }

    static final class Request {
        final char[] body = new char[40];
        final int number;

        Request(int number) {
            this.number = number;
        }
    }

    /** Audits requests on a thread of its own. */
    static final class Auditor extends Thread {
        private final ArrayDeque<Request> waiting = new ArrayDeque<>();
        private Request[] failed = new Request[16];
        private int failures;

        Auditor() {
            super("auditor");
        }

        synchronized void hand(Request request) {
            waiting.add(request);
            notify();
        }

        private synchronized Request next() throws InterruptedException {
            while (waiting.isEmpty()) {
                wait();
            }
            return waiting.remove();
        }

        @Override
        public void run() {
            try {
                for (Request request = next(); request.number >= 0; request = next()) {
                    if (request.number % 4 == 0) {
                        keepForRetry(request);
                    }
                }
            } catch (InterruptedException end) {
                // The service ends.
            }
        }

        private void keepForRetry(Request request) {
            if (failures == failed.length) {
                failed = java.util.Arrays.copyOf(failed, failures * 2);
            }
            failed[failures++] = request;
        }
    }

    static void open(int customer) {
        SESSIONS.put(customer, new Session(customer));
    }

    static void subscribe() {
        LISTENERS.add(new Listener());
    }

    public static void main(String[] arguments) throws InterruptedException {
        AUDITOR.start();
        for (int number = 0; number < 12_000; number++) {
            open(number);
            subscribe();
            AUDITOR.hand(new Request(number));
        }
        AUDITOR.hand(new Request(-1));
        AUDITOR.join();
    }
}
