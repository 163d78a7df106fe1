//! Numbers, strings and events as they are stored in a chunk.

/// Appends a number in seven bits a byte, the lowest first; a ninth byte has all eight of its own.
pub fn number(out: &mut Vec<u8>, mut value: u64) {
    for _ in 0..8 {
        if value < 0x80 {
            break;
        }
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends several.
pub fn numbers(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| number(out, *value));
}

/// Appends an `int`, which is not known if it is -1.
pub fn int(out: &mut Vec<u8>, value: i32) {
    number(out, value.cast_unsigned().into());
}

/// Appends a string with its text.
pub fn string(out: &mut Vec<u8>, text: &str) {
    const EMPTY: u8 = 1;
    const UTF8: u8 = 3;
    if text.is_empty() {
        out.push(EMPTY);
        return;
    }
    out.push(UTF8);
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a string that is in the pool of strings.
pub fn pooled_string(out: &mut Vec<u8>, index: u64) {
    const IN_POOL: u8 = 2;
    out.push(IN_POOL);
    number(out, index);
}

/// Appends what was encoded after its length, which includes the bytes of the length itself.
pub fn event(out: &mut Vec<u8>, content: &[u8]) {
    let mut size = content.len() as u64 + 1;
    let mut encoded = Vec::new();
    loop {
        encoded.clear();
        number(&mut encoded, size);
        let whole = (content.len() + encoded.len()) as u64;
        if whole == size {
            break;
        }
        size = whole;
    }
    out.extend_from_slice(&encoded);
    out.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_byte_of_a_number_has_eight_bits() {
        let encoded = |value| {
            let mut out = Vec::new();
            number(&mut out, value);
            out
        };
        assert_eq!(encoded(0), [0]);
        assert_eq!(encoded(300), [0xac, 2]);
        assert_eq!(encoded(u64::MAX), [0xff; 9]);
        assert_eq!(encoded(1 << 56), [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]);
        let mut out = Vec::new();
        int(&mut out, -1);
        assert_eq!(out, [0xff, 0xff, 0xff, 0xff, 0x0f]);
    }

    #[test]
    fn the_length_of_an_event_includes_itself() {
        for (content, first) in [(3, vec![4]), (126, vec![127]), (127, vec![0x81, 1]), (16_382, vec![0x81, 0x80, 1])] {
            let mut out = Vec::new();
            event(&mut out, &vec![7; content]);
            assert_eq!(out[..first.len()], first, "{content}");
            assert_eq!(out.len(), content + first.len());
        }
    }
}
