//! The code of a method as the checks of it share it: instructions, marks by offset, exception table.

use super::bytes::Bytes;

/// Mark: an instruction starts here.
pub(super) const START: u8 = 1;
/// Control comes here other than from the instruction before.
pub(super) const NEEDS_FRAME: u8 = 2;
/// Mark: there is a stack map frame here.
pub(super) const HAS_FRAME: u8 = 4;
/// Mark: the instruction is a `new`.
pub(super) const IS_NEW: u8 = 8;

/// The method that the code is of.
pub(super) struct Signature<'a> {
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
    /// In slots, without the receiver.
    pub parameters: u32,
    /// Whether the receiver is uninitialised at entry; `None` if there is no receiver.
    pub receiver: Option<bool>,
}

/// An instruction, as far as the depth of the stack is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub at: u32,
    pub pops: u32,
    pub pushes: u32,
    /// Where its targets start in [`Code::targets`]; they end where the next instruction's start.
    pub targets: u32,
    pub ends_block: bool,
    /// `jsr`: the instruction after it is reached by its `ret`.
    pub calls_subroutine: bool,
}

/// A row of the exception table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handler {
    pub start: u16,
    pub end: u16,
    pub handler: u16,
}

/// The code under verification.
pub(super) struct Code<'a> {
    pub max_stack: u16,
    pub max_locals: u16,
    pub bytes: Bytes<'a>,
    /// Marks of each offset.
    pub marks: Vec<u8>,
    pub steps: Vec<Step>,
    pub targets: Vec<u32>,
    pub handlers: Vec<Handler>,
}

impl Code<'_> {
    pub(super) fn length(&self) -> usize {
        self.marks.len()
    }

    pub(super) fn has(&self, offset: usize, mark: u8) -> bool {
        self.marks.get(offset).is_some_and(|marks| marks & mark != 0)
    }

    /// Whether it is an instruction's offset, or the end.
    pub(super) fn is_bound(&self, offset: usize) -> bool {
        offset == self.length() || self.has(offset, START)
    }
}
