//! Numbers in texts.

/// The radix of ids in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radix {
    /// Dialect `replayer`, and some texts in dialect `et`.
    Decimal,
    /// Dialect `et`.
    Hexadecimal,
}

/// Parses a number, with or without `0x`.
pub fn parse_number(word: &str, radix: Radix) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if radix == Radix::Decimal => word.parse(),
        None => u64::from_str_radix(word, 16),
    }
    .ok()
}

/// Appends a decimal number.
pub(crate) fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut text = [0; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
}

/// Appends a decimal number with a space before it.
pub(crate) fn decimal_word(out: &mut Vec<u8>, value: u64) {
    out.push(b' ');
    decimal(out, value);
}

/// The eight hexadecimal digits of a number, the first one in the highest byte.
#[inline]
fn hex_digits(value: u32) -> u64 {
    let mut digits = u64::from(value);
    digits = (digits << 16 | digits) & 0x0000_ffff_0000_ffff;
    digits = (digits << 8 | digits) & 0x00ff_00ff_00ff_00ff;
    digits = (digits << 4 | digits) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    digits + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'9' - 1)
}

/// Appends a hexadecimal number with a space before it.
///
/// Texts consist of these: all digits are made at once, and more is copied than is kept, since a copy of a constant length takes two
/// instructions.
#[inline]
pub(crate) fn hex_word(out: &mut Vec<u8>, value: u64) {
    let (high, low) = ((value >> 32) as u32, value as u32);
    out.push(b' ');
    let mut first = low;
    if high != 0 {
        first = high;
    }
    let digits = (35 - (first | 1).leading_zeros()) / 4;
    let start = out.len();
    out.extend_from_slice(&(hex_digits(first) << (8 * (8 - digits))).to_be_bytes());
    out.truncate(start + digits as usize);
    if high != 0 {
        out.extend_from_slice(&hex_digits(low).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_hexadecimal() {
        let mut out = Vec::new();
        let powers = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, 0xfedc_ba98_7654_3210 >> bit]);
        for value in powers {
            out.clear();
            hex_word(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), format!(" {value:x}"));
        }
        for value in [0, 1, 15, 16, 255, 256, 0xdead_beef, u64::MAX, 1 << 60, (1 << 60) - 1] {
            out.clear();
            hex_word(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), format!(" {value:x}"));
        }
    }
}
