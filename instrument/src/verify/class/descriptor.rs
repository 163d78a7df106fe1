//! Descriptors (JVMS §4.3), measured in slots.

/// What a method takes and gives, in slots: a long or double counts two. The receiver is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub parameters: u32,
    pub returns: u32,
}

/// The slots of a field's type; `None` if it is no field descriptor.
pub(super) fn field(descriptor: &[u8]) -> Option<u32> {
    match one(descriptor)? {
        (slots, []) => Some(slots),
        _ => None,
    }
}

/// A method's shape; `None` if it is not a method descriptor.
pub(super) fn method(descriptor: &[u8]) -> Option<Shape> {
    let mut parameters = 0;
    each_parameter(descriptor, |slots| parameters += slots).and_then(|rest| {
        let returns = if rest == b"V" { 0 } else { field(rest)? };
        Some(Shape { parameters, returns })
    })
}

/// Calls `each` with the slots of each parameter; returns what follows them.
pub(super) fn each_parameter(descriptor: &[u8], mut each: impl FnMut(u32)) -> Option<&[u8]> {
    let mut rest = descriptor.strip_prefix(b"(")?;
    loop {
        if let Some(behind) = rest.strip_prefix(b")") {
            return Some(behind);
        }
        let (slots, behind) = one(rest)?;
        each(slots);
        rest = behind;
    }
}

fn one(descriptor: &[u8]) -> Option<(u32, &[u8])> {
    let dimensions = descriptor.iter().take_while(|byte| **byte == b'[').count();
    if dimensions > 255 {
        return None;
    }
    let (first, rest) = descriptor[dimensions..].split_first()?;
    let (slots, rest) = match first {
        b'B' | b'C' | b'F' | b'I' | b'S' | b'Z' => (1, rest),
        b'D' | b'J' => (2, rest),
        b'L' => {
            let end = rest.iter().position(|byte| *byte == b';')?;
            if end == 0 {
                return None;
            }
            (1, &rest[end + 1..])
        }
        _ => return None,
    };
    Some((if dimensions > 0 { 1 } else { slots }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_measured() {
        assert_eq!(field(b"J"), Some(2));
        assert_eq!(field(b"[[J"), Some(1));
        assert_eq!(method(b"(IJ[DLa/B;)V"), Some(Shape { parameters: 5, returns: 0 }));
        assert_eq!(method(b"()D"), Some(Shape { parameters: 0, returns: 2 }));
        for wrong in [&b""[..], b"V", b"L", b"La", b"L;", b"[", b"II"] {
            assert_eq!(field(wrong), None);
        }
        for wrong in [&b"I"[..], b"(", b"()", b"(V)V", b"()VV", b"(La)V"] {
            assert_eq!(method(wrong), None);
        }
    }
}
