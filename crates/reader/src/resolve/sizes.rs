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
        self.layout(descriptor).map(|layout| layout.size(length))
    }

    /// Where the elements of arrays of this type are; `None` if that is not in the trace.
    pub fn layout(&self, descriptor: &str) -> Option<Layout> {
        let letter = match descriptor.as_bytes() {
            [b'[', b'[', ..] => b'L',
            [b'[', letter, ..] => *letter,
            _ => return None,
        };
        let (base, scale) = self.layout[usize::from(letter)]?;
        Some(Layout { base, scale, alignment: self.alignment })
    }
}

/// Arrays of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the first element, and size of one, in bytes.
    base: u64,
    scale: u64,
    alignment: u64,
}

impl Layout {
    /// Size in bytes of an array of that length.
    #[inline]
    pub fn size(&self, length: u32) -> u64 {
        // The alignment is a power of two.
        (self.base + self.scale * u64::from(length) + self.alignment - 1) & !(self.alignment - 1)
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
