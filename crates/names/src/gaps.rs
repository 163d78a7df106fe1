//! Conversion between ids and indexes for a table that contains only some classes of its artifact.

use std::ops::Index;

/// The kinds of ids, each of which is numbered separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Class,
    Method,
    Field,
    Site,
    FieldRef,
}

/// One number for each kind of id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(pub [u32; 5]);

impl Index<Kind> for Counts {
    type Output = u32;

    fn index(&self, kind: Kind) -> &u32 {
        &self.0[kind as usize]
    }
}

impl Counts {
    /// Whether every number is at least that of `other`.
    pub(crate) fn reaches(&self, other: &Counts) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own >= other)
    }
}

/// Says which ranges of the artifact's classes are in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gaps {
    sizes: Counts,
    runs: Vec<Run>,
}

/// Consecutive classes of the artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Ids of the first class, relative to the artifact's base.
    offset: Counts,
    /// Indexes of the first class in the vectors of the table.
    index: Counts,
}

impl Gaps {
    /// Creates the gaps of an empty table whose artifact has `sizes` ids of each kind.
    pub(crate) fn new(sizes: Counts) -> Self {
        Self { sizes, runs: Vec::new() }
    }

    /// Number of ids of each kind in the artifact.
    pub(crate) fn sizes(&self) -> Counts {
        self.sizes
    }

    /// Adds a class whose ids begin at `offset` and whose entries in the vectors begin at `index`.
    pub(crate) fn push(&mut self, offset: Counts, index: Counts) {
        let follows = self.runs.last().is_some_and(|last| {
            let distance =
                |at: usize| (offset.0[at].checked_sub(last.offset.0[at]), index.0[at].checked_sub(last.index.0[at]));
            (0..5).map(distance).all(|(offset, index)| offset == index)
        });
        if !follows {
            self.runs.push(Run { offset, index });
        }
    }

    /// Converts a relative id to an index; `None` if its class is missing. The index may be past the end of the vector.
    pub(crate) fn index(&self, kind: Kind, offset: u32) -> Option<u32> {
        // Of several runs that begin at the same offset, all but the last are empty for this kind.
        let next = self.runs.partition_point(|run| run.offset[kind] <= offset);
        let run = self.runs.get(next.checked_sub(1)?)?;
        // Damaged events may contain any id.
        let index = run.index[kind].checked_add(offset - run.offset[kind])?;
        self.runs.get(next).is_none_or(|next| index < next.index[kind]).then_some(index)
    }

    /// Converts an index to a relative id.
    pub(crate) fn offset(&self, kind: Kind, index: u32) -> u32 {
        let next = self.runs.partition_point(|run| run.index[kind] <= index);
        let run = next.checked_sub(1).and_then(|at| self.runs.get(at));
        run.map_or(index, |run| run.offset[kind].wrapping_add(index - run.index[kind]))
    }

    /// Relative ids of the class whose entries begin at `index`. For kinds of which it has no entries, any value
    /// between those of its neighbours will do.
    pub(crate) fn first_offsets(&self, index: Counts) -> Counts {
        // Every run contains a class, so the class index identifies the run.
        let next = self.runs.partition_point(|run| run.index[Kind::Class] <= index[Kind::Class]);
        let Some(run) = next.checked_sub(1).and_then(|at| self.runs.get(at)) else { return index };
        let mut offsets = index;
        offsets.0.iter_mut().zip(run.offset.0.iter().zip(&run.index.0)).for_each(|(at, (offset, first))| {
            *at = *at - first + offset;
        });
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_offset_is_too_large_to_be_looked_up() {
        let mut gaps = Gaps::new(Counts([100; 5]));
        gaps.push(Counts([3; 5]), Counts([0; 5]));
        gaps.push(Counts([9; 5]), Counts([2; 5]));
        let index = |offset| gaps.index(Kind::Method, offset);
        assert_eq!([0, 3, 4, 5, 9].map(index), [None, Some(0), Some(1), None, Some(2)]);
        let mut later = Gaps::new(Counts([u32::MAX; 5]));
        later.push(Counts([1; 5]), Counts([7; 5]));
        assert_eq!(later.index(Kind::Method, u32::MAX), None);
        assert_eq!(gaps.offset(Kind::Method, 2), 9);
    }
}
