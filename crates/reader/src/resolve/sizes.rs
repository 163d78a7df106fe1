//! Object sizes according to the VM.

use et_format::ArrayLayout;

/// Computes sizes of arrays from the layout that the runtime measured.
#[derive(Debug)]
pub struct ArraySizes {
    /// Offset of the first element and size of an element in bytes, by descriptor letter.
    layout: [Option<(u64, u64)>; 256],
    alignment: u64,
}

impl ArraySizes {
    /// Creates it from the `arrayLayout` of a `Meta` block.
    pub fn new(layout: &ArrayLayout) -> Self {
        let mut by_letter = [None; 256];
        for (letter, &base) in &layout.base_offset {
            if let (Some(&byte), Some(&scale)) = (letter.as_bytes().first(), layout.index_scale.get(letter)) {
                by_letter[usize::from(byte)] = Some((base.into(), scale.into()));
            }
        }
        let alignment = u64::from(layout.object_alignment);
        Self { layout: by_letter, alignment: if alignment.is_power_of_two() { alignment } else { 8 } }
    }

    /// Size in bytes of an array of this type; `None` if the layout is not in the trace.
    pub fn of(&self, descriptor: &str, length: u32) -> Option<u64> {
        let letter = match descriptor.as_bytes() {
            [b'[', b'[', ..] => b'L',
            [b'[', letter, ..] => *letter,
            _ => return None,
        };
        let (base, scale) = self.layout[usize::from(letter)]?;
        Some((base + scale * u64::from(length)).next_multiple_of(self.alignment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_base_plus_elements_rounded_up() {
        let layout = ArrayLayout {
            base_offset: [("I".into(), 16), ("L".into(), 16), ("J".into(), 16)].into(),
            index_scale: [("I".into(), 4), ("L".into(), 4), ("J".into(), 8)].into(),
            object_alignment: 8,
        };
        let sizes = ArraySizes::new(&layout);
        assert_eq!(sizes.of("[I", 1), Some(24));
        assert_eq!(sizes.of("[I", 0), Some(16));
        assert_eq!(sizes.of("[[J", 3), Some(32));
        assert_eq!(sizes.of("[La/B;", 2), Some(24));
        assert_eq!(sizes.of("[Z", 2), None);
        assert_eq!(sizes.of("La/B;", 0), None);
    }
}
