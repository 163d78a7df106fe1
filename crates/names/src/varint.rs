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

/// Takes a number off the beginning; `None` if the bytes end before it does, or if it has more than 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends a difference, which may be negative: small ones are short (zigzag).
pub fn put_difference(out: &mut Vec<u8>, difference: i64) {
    put(out, (difference << 1 ^ difference >> 63) as u64);
}

/// Takes a difference off the beginning.
pub fn take_difference(bytes: &mut &[u8]) -> Option<i64> {
    let value = take(bytes)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_differences_are_read_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX];
        let differences = [0, -1, 1, -64, 64, i64::MIN, i64::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| put(&mut bytes, number));
        differences.iter().for_each(|&difference| put_difference(&mut bytes, difference));
        let mut rest = &bytes[..];
        assert!(numbers.iter().all(|&number| take(&mut rest) == Some(number)));
        assert!(differences.iter().all(|&difference| take_difference(&mut rest) == Some(difference)));
        assert_eq!((rest, take(&mut &[][..])), (&[][..], None));
    }

    #[test]
    fn what_is_no_number_is_not_read() {
        for bytes in [&[0x80][..], &[0xff; 10], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]] {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
