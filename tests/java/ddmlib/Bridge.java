package com.android.ddmlib;

import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.Iterator;
import java.util.stream.Collectors;

/**
 * Android's own monitor at a VM of ours: as much of ddmlib as goes without a device and adb. In its package, since what speaks to sockets is not
 * public. Prints one line for each thing that ddmlib has understood; the VM ends by its EXIT.
 */
public class Bridge {
    interface Known<T> {
        T get() throws Exception;
    }

    /** Answers come on ddmlib's own thread. */
    static <T> T until(String what, Known<T> known) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (System.nanoTime() < end) {
            T found = known.get();
            if (found != null) {
                return found;
            }
            Thread.sleep(20);
        }
        System.out.println("never: " + what);
        System.exit(2);
        return null;
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        int pid = Integer.parseInt(arguments[1]);
        // Starts the thread that reads, and registers all handlers of chunks.
        AndroidDebugBridge.init(true);
        Device device = new Device(null, "here", IDevice.DeviceState.ONLINE);
        SocketChannel channel = SocketChannel.open(new InetSocketAddress("127.0.0.1", port));
        channel.configureBlocking(false);
        Client client = new Client(device, channel, pid);
        // As its DeviceMonitor does with what adb has found.
        if (!client.sendHandshake()) {
            System.out.println("no handshake");
            System.exit(2);
        }
        device.addClient(client);
        MonitorThread.getInstance().addClient(client);
        ClientData data = client.getClientData();
        String name = until("HELO", () -> data.getClientDescription());
        System.out.println("hello " + data.getPid() + " " + name + " " + data.getVmIdentifier());
        System.out.println("aware " + data.isDdmAware() + " dumps " + data.hasFeature("hprof-heap-dump"));

        client.setThreadUpdateEnabled(true);
        ThreadInfo main = until("THCR", () -> thread(data, "main"));
        until("THST", () -> {
            client.requestThreadUpdate();
            return main.getStatus() >= 0 ? main : null;
        });
        System.out.println("threads " + data.getThreads().length + " main " + main.getStatus());
        client.requestThreadStackTrace(main.getThreadId());
        StackTraceElement[] stack = until("STKL", () -> main.getStackTrace() == null || main.getStackTrace().length == 0 ? null : main.getStackTrace());
        System.out.println("stack " + Arrays.stream(stack).map(StackTraceElement::getMethodName).collect(Collectors.joining(" ")));

        client.setHeapInfoUpdateEnabled(true);
        // A request for the map at each collection, and one.
        HandleHeap.sendHPSG(client, 1, 0);
        client.executeGarbageCollector();
        until("HPIF", () -> data.getVmHeapIds().hasNext() ? data : null);
        for (Iterator<Integer> ids = data.getVmHeapIds(); ids.hasNext();) {
            int id = ids.next();
            ClientData.HeapInfo info = data.getVmHeapInfo(id);
            System.out.println("heap " + id + " " + info.maxSizeInBytes + " " + info.sizeInBytes + " " + info.bytesAllocated + " "
                + info.objectsAllocated);
        }
        until("HPSG", () -> data.getVmHeapData().isHeapDataComplete() ? data : null);
        // Bytes of arrays of long that something holds, and of all.
        long longs = 0;
        long all = 0;
        for (HeapSegment segment : data.getVmHeapData().getHeapSegments()) {
            segment.rewindElements();
            for (HeapSegment.HeapSegmentElement element; (element = segment.getNextElement(null)) != null;) {
                all += element.getLength();
                if (element.getSolidity() == HeapSegment.HeapSegmentElement.SOLIDITY_HARD
                        && element.getKind() == HeapSegment.HeapSegmentElement.KIND_ARRAY_8) {
                    longs += element.getLength();
                }
            }
        }
        System.out.println("map " + all + " longs " + longs);
        client.requestAllocationStatus();
        ClientData.AllocationTrackingStatus off = ClientData.AllocationTrackingStatus.OFF;
        until("REAQ", () -> data.getAllocationStatus() == off ? data : null);
        System.out.println("allocations off");
        client.kill();
        System.out.println("killed");
        Thread.sleep(500);
        System.exit(0);
    }

    static ThreadInfo thread(ClientData data, String name) {
        for (ThreadInfo thread : data.getThreads()) {
            if (name.equals(thread.getThreadName())) {
                return thread;
            }
        }
        return null;
    }
}
