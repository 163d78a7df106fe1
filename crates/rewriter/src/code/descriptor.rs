//! Parsing of method descriptors (JVMS §4.3.3).

/// The descriptors of a method's parameters.
pub fn parameters(descriptor: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = descriptor.strip_prefix(b"(").unwrap_or_default();
    std::iter::from_fn(move || {
        let length = field_descriptor_length(rest)?;
        let (first, tail) = rest.split_at(length);
        rest = tail;
        Some(first)
    })
}

fn field_descriptor_length(text: &[u8]) -> Option<usize> {
    let dimensions = text.iter().take_while(|&&byte| byte == b'[').count();
    match text.get(dimensions)? {
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' => Some(dimensions + 1),
        b'L' => Some(dimensions + 2 + text[dimensions + 1..].iter().position(|&byte| byte == b';')?),
        _ => None,
    }
}

/// Converts a descriptor to the form that a `CONSTANT_Class` has; `None` for primitive types.
pub fn class_of(descriptor: &[u8]) -> Option<&[u8]> {
    match descriptor {
        [b'L', name @ .., b';'] => Some(name),
        [b'[', ..] => Some(descriptor),
        _ => None,
    }
}

/// Returns the return descriptor, `V` for void.
pub fn return_descriptor(descriptor: &[u8]) -> &[u8] {
    let close = descriptor.iter().rposition(|&byte| byte == b')');
    close.map_or(&[], |at| &descriptor[at + 1..])
}

/// Number of local variables that a method's arguments take, without the receiver.
pub fn parameter_slots(descriptor: &[u8]) -> usize {
    parameters(descriptor).map(|parameter| if matches!(parameter, b"J" | b"D") { 2 } else { 1 }).sum()
}
