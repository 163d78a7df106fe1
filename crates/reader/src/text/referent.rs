//! Finds the field `java.lang.ref.Reference.referent` in a text without a names file: it is the first one that the
//! constructor of `Reference` stores to.

use et_names::FieldId;

use super::line::{self, RawLine, TypeWord};
use super::number::Radix;

/// Classes of the JDK whose constructors store nothing themselves.
const REFERENCES: [&str; 3] =
    ["Ljava/lang/ref/WeakReference;", "Ljava/lang/ref/SoftReference;", "Ljava/lang/ref/PhantomReference;"];

/// The field; `None` if the text has no such object whose creation is in the text.
pub(super) fn find(text: &[u8], radix: Radix) -> Option<FieldId> {
    let mut made = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let is_wanted = match line.first() {
            Some(b'N') => line.windows(PACKAGE.len()).any(|part| part == PACKAGE),
            Some(b'U') => !made.is_empty(),
            _ => false,
        };
        if !is_wanted {
            continue;
        }
        match line::parse(std::str::from_utf8(line).ok()?.trim(), radix).ok()? {
            RawLine::Alloc { object, ty: TypeWord::Descriptor(ty), .. } if REFERENCES.contains(&ty) => {
                made.push(object)
            }
            RawLine::Update { origin, field, .. } if made.contains(&origin) => return Some(FieldId(field)),
            _ => {}
        }
        // If this many have no constructor, they are created in another way.
        if made.len() > 100 {
            return None;
        }
    }
    None
}

const PACKAGE: &[u8] = b" Ljava/lang/ref/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_store_tells() {
        let text = "N 1 10 LA; 0 0 1\nU 0 1 0 9 1\nN 2 30 Ljava/lang/ref/WeakReference; 0 0 1\nM 5 2 1\nU 0 1 0 9 1\nU 0 2 1 1f 1\n\
                    U 0 2 4 20 1\n";
        assert_eq!(find(text.as_bytes(), Radix::Hexadecimal), Some(FieldId(0x1f)));
        // One that existed before, and is enqueued now.
        let text = "I 2 30 Ljava/lang/ref/WeakReference; 0 0 0\nU 0 2 4 20 1\n";
        assert_eq!(find(text.as_bytes(), Radix::Hexadecimal), None);
    }
}
