// Java as it was: compiled by ECJ for Java 1.1, with subroutines for finally, class literals by Class.forName, no frames.
import java.io.*;
import java.util.*;

public class Old {
    static class Account {
        private final String owner;
        private int balance;
        private Vector log = new Vector();
        Account(String owner) { this.owner = owner; }
        synchronized int change(int by) {
            try {
                if (balance + by < 0) throw new IllegalStateException(owner + " has only " + balance);
                balance += by;
                return balance;
            } finally {
                log.addElement(new Integer(by));
                synchronized (Old.class) { changes++; }
            }
        }
    }
    interface Visitor { Object visit(Object key, Object value) throws IOException; }
    static int changes;

    static String nested(int i) {
        StringBuffer text = new StringBuffer();
        for (int j = 0; j < 3; j++) {
            try {
                try {
                    if (i % 5 == j) continue;
                    if (i % 7 == j) throw new Exception("seven " + i);
                    if (i % 11 == j) return text.append("eleven").toString();
                    text.append(j);
                } catch (RuntimeException never) {
                    text.append(never);
                } finally {
                    text.append('f');
                    try { text.append(100 / (i % 3)); } catch (ArithmeticException e) { text.append('-'); } finally { text.append(';'); }
                }
            } catch (Exception e) {
                text.append(e.getMessage());
                break;
            } finally {
                text.append('F');
            }
        }
        return text.toString();
    }

    static Object walk(Hashtable table, Visitor visitor) {
        Object last = null;
        for (Enumeration keys = table.keys(); keys.hasMoreElements();) {
            Object key = keys.nextElement();
            try { last = visitor.visit(key, table.get(key)); } catch (IOException e) { return e.getMessage(); }
        }
        return last;
    }

    static long big(long x, double y) {
        long sum = 0;
        try { for (int i = 0; i < 10; i++) sum += x * i + (long) y; } finally { sum = -sum; }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        final int n = Integer.parseInt(args[0]);
        int hash = 0, refused = 0;
        Account[][] accounts = new Account[3][4];
        for (int i = 0; i < 12; i++) accounts[i / 4][i % 4] = new Account("a" + i);
        for (int i = 0; i < n * 20; i++) {
            hash = hash * 31 + nested(i).hashCode();
            try { hash += accounts[i % 3][i % 4].change(i % 13 - 6); } catch (IllegalStateException e) { refused++; }
            hash += (int) big(i, i / 3.0);
        }
        System.out.println(hash + " " + refused + " " + changes + " " + nested(22) + " " + nested(8));
        Hashtable table = new Hashtable();
        for (int i = 0; i < n; i++) table.put("k" + i * 7919 % 97, new Integer(i));
        final int[] sum = new int[1];
        System.out.println(walk(table, new Visitor() {
            public Object visit(Object key, Object value) throws IOException {
                sum[0] += ((Integer) value).intValue();
                if (sum[0] > n * 300) throw new IOException("over " + n * 300);
                return table();
            }
            private Object table() { return getClass().getName(); }
        }) + " " + table.size());
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            final Account account = accounts[0][i];
            threads[i] = new Thread() { public void run() { for (int j = 0; j < 50; j++) account.change(1); } };
            threads[i].start();
        }
        for (int i = 0; i < threads.length; i++) threads[i].join();
        System.out.println(accounts[0][3].balance + " " + accounts[0][3].log.size() + " " + Account[].class.getName() + " " + ((Account[][]) accounts.clone()).length);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintWriter writer = new PrintWriter(bytes);
        try { writer.print(table.get("k0")); } finally { writer.close(); }
        System.out.println(bytes + " " + String.class.getName().length() + " " + (table instanceof Dictionary) + " " + int[][].class);
    }
}
