package org.elephanttracks.ddm;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A chunk of data on its way between a program and a monitor. Big-endian numbers are customary in it, and not required. */
public final class Chunk {
    /** Four letters, the first in the highest byte. */
    public final int type;
    public final byte[] data;
    public final int offset;
    public final int length;

    public Chunk(int type, byte[] data, int offset, int length) {
        if (offset < 0 || length < 0 || offset > data.length - length) {
            throw new IndexOutOfBoundsException("offset " + offset + ", length " + length + " of " + data.length);
        }
        this.type = type;
        this.data = data;
        this.offset = offset;
        this.length = length;
    }

    public Chunk(int type, byte[] data) {
        this(type, data, 0, data.length);
    }

    /** The number of four ASCII letters. Monitors know those of four capitals by themselves; take others for your own. */
    public static int type(String letters) {
        byte[] bytes = letters.getBytes(StandardCharsets.ISO_8859_1);
        if (bytes.length != 4 || letters.length() != 4) {
            throw new IllegalArgumentException("a type has four letters: " + letters);
        }
        return (bytes[0] & 0xff) << 24 | (bytes[1] & 0xff) << 16 | (bytes[2] & 0xff) << 8 | bytes[3] & 0xff;
    }

    /** A copy of the data. */
    public byte[] bytes() {
        return Arrays.copyOfRange(data, offset, offset + length);
    }
}
