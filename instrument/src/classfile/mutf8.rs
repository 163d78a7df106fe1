//! Modified UTF-8 (JVMS §4.4.7) for people and names tables.

/// The string behind modified UTF-8 bytes; what is not valid becomes U+FFFD.
pub fn to_string(bytes: &[u8]) -> String {
    // Nearly every name is ASCII, where both encodings agree; surrogate pairs and C0 80 are not valid UTF-8.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf16_lossy(&units(bytes)),
    }
}

fn units(bytes: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    let continued = |byte: u8| (byte & 0xc0 == 0x80).then_some(u16::from(byte & 0x3f));
    while let [first, tail @ ..] = rest {
        let (unit, used) = match (*first, tail) {
            (0x00..=0x7f, _) => (u16::from(*first), 1),
            (0xc0..=0xdf, [second, ..]) if continued(*second).is_some() => {
                (u16::from(first & 0x1f) << 6 | u16::from(second & 0x3f), 2)
            }
            (0xe0..=0xef, [second, third, ..]) if continued(*second).is_some() && continued(*third).is_some() => {
                (u16::from(first & 0x0f) << 12 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f), 3)
            }
            _ => (0xfffd, 1),
        };
        units.push(unit);
        rest = &rest[used..];
    }
    units
}

#[cfg(test)]
mod tests {
    use super::to_string;

    #[test]
    fn ascii_nul_surrogates_and_rubbish() {
        assert_eq!(to_string(b"java/lang/Object"), "java/lang/Object");
        assert_eq!(to_string(&[b'a', 0xc0, 0x80, b'b']), "a\0b");
        // U+1F418 as the surrogates D83D DC18, three bytes each.
        assert_eq!(to_string(&[0xed, 0xa0, 0xbd, 0xed, 0xb0, 0x98]), "\u{1F418}");
        assert_eq!(to_string(&[b'x', 0xff, b'y']), "x\u{fffd}y");
    }
}
