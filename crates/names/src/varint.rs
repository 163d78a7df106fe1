//! Numbers of variable length (LEB128): seven bits per byte, the lowest first.

/// Appends a number.
pub fn put(out: &mut Vec<u8>, value: impl Into<u64>) {
    let mut value = value.into();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
