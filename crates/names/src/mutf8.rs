//! Modified UTF-8 (JVMS §4.4.7): the encoding of strings in class files and in the JVM.
//!
//! A name may contain an unpaired surrogate, and two names may differ in nothing else. Rust strings cannot hold one, so
//! the last 2,048 private-use characters, U+10F800 to U+10FFFF, stand for them.

const FIRST: u32 = 0x10_f800;
const SURROGATES: u32 = 0xd800;

/// The surrogate that a character stands for, if any.
pub(crate) fn half_of_pair(character: char) -> Option<u16> {
    u32::from(character).checked_sub(FIRST).and_then(|half| u16::try_from(SURROGATES + half).ok())
}

/// Converts a UTF-16 unit that is not part of a surrogate pair to a character.
pub(crate) fn of_unit(unit: u16) -> char {
    let unit = u32::from(unit);
    char::from_u32(unit).or_else(|| char::from_u32(FIRST + (unit - SURROGATES))).unwrap_or('\u{fffd}')
}

/// Decodes modified UTF-8; invalid bytes become U+FFFD.
pub fn decode(bytes: &[u8]) -> String {
    // Nearly all names are ASCII, for which the encodings agree; surrogate pairs and C0 80 are not valid UTF-8.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let characters = char::decode_utf16(units(bytes));
            characters.map(|character| character.unwrap_or_else(|half| of_unit(half.unpaired_surrogate()))).collect()
        }
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
    use super::*;

    #[test]
    fn ascii_nul_surrogates_and_rubbish() {
        assert_eq!(decode(b"java/lang/Object"), "java/lang/Object");
        assert_eq!(decode("é€".as_bytes()), "é€");
        assert_eq!(decode(&[b'a', 0xc0, 0x80, b'b']), "a\0b");
        // U+1F418 as the surrogates D83D DC18, three bytes each.
        assert_eq!(decode(&[0xed, 0xa0, 0xbd, 0xed, 0xb0, 0x98]), "\u{1F418}");
        assert_eq!(decode(&[b'x', 0xff, b'y']), "x\u{fffd}y");
        assert_eq!(decode(&[0xe2, 0x82]), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn halves_of_pairs_stay_apart() {
        let (one, other) = (decode(&[0xed, 0xa0, 0x80]), decode(&[0xed, 0xbf, 0xbf]));
        assert_eq!((one.as_str(), other.as_str()), ("\u{10f800}", "\u{10ffff}"));
        assert_eq!((&*crate::escape::word(&one), &*crate::escape::word(&other)), (r"\ud800", r"\udfff"));
        for unit in 0..=u16::MAX {
            assert_eq!(half_of_pair(of_unit(unit)), (0xd800..0xe000).contains(&unit).then_some(unit));
        }
    }
}
