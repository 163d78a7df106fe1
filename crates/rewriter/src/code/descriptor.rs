//! Descriptors of methods, taken apart (JVMS §4.3.3).

/// Descriptors of a method's parameters.
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

/// As constants of classes name the type of a descriptor; `None` for numbers.
pub fn class_of(descriptor: &[u8]) -> Option<&[u8]> {
    match descriptor {
        [b'L', name @ .., b';'] => Some(name),
        [b'[', ..] => Some(descriptor),
        _ => None,
    }
}

/// The return descriptor, `V` for none.
pub fn return_descriptor(descriptor: &[u8]) -> &[u8] {
    let close = descriptor.iter().rposition(|&byte| byte == b')');
    close.map_or(&[], |at| &descriptor[at + 1..])
}

/// Slots that the arguments of a method take, its receiver not counted.
pub fn parameter_slots(descriptor: &[u8]) -> usize {
    parameters(descriptor).map(|parameter| if matches!(parameter, b"J" | b"D") { 2 } else { 1 }).sum()
}
