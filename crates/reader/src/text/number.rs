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

/// Appends a hexadecimal number with a space before it.
#[inline]
pub(crate) fn hex_word(out: &mut Vec<u8>, value: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (67 - (value | 1).leading_zeros()) / 4;
    let mut text = [0; 17];
    text[0] = b' ';
    for place in 0..digits {
        text[(digits - place) as usize] = DIGITS[(value >> (4 * place)) as usize & 15];
    }
    out.extend_from_slice(&text[..=digits as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_hexadecimal() {
        let mut out = Vec::new();
        for value in [0, 1, 15, 16, 255, 256, 0xdead_beef, u64::MAX, 1 << 60, (1 << 60) - 1] {
            out.clear();
            hex_word(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), format!(" {value:x}"));
        }
    }
}
