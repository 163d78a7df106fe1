package java.lang;

/** Stands in for the rewritten java.lang.Thread while HeapProxy is compiled. */
public class Thread {
    long etPos;
    long etEnd;
    long etTicket;
    long etStackLow;
    long etStackHigh;
    int etSite;
    long etIds;
    long etContext;
    long etStack;
    static int etEvents;

    public static native Thread currentThread();

    static native Thread currentCarrierThread();
}
