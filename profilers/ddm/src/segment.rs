//! The heap as runs of allocation units (`HPSG`, `HPSO`, `NHSG`).
//!
//! A run is two bytes: a state, and the number of units minus one. The bits of a state:
//!
//! ```text
//! +---------------------------------------+
//! | P  | 0  | K2 | K1 | K0 | S2 | S1 | S0 |   P partial, K kind, S solidity
//! +---------------------------------------+
//! ```

use crate::wire::{Malformed, Reader, Writer};

/// The most units that a run can have.
pub const MOST_UNITS: u16 = 256;

/// How firmly an allocation unit is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Solidity {
    Free,
    Hard,
    Soft,
    Weak,
    Phantom,
    /// Waiting for its finalizer.
    Finalizable,
    /// Garbage, to be swept.
    Sweep,
}

impl Solidity {
    /// All of them, by their numbers.
    pub const ALL: [Self; 7] =
        [Self::Free, Self::Hard, Self::Soft, Self::Weak, Self::Phantom, Self::Finalizable, Self::Sweep];
}

/// Kind of object that an allocation unit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Object,
    Class,
    /// An array of `byte` or `boolean`.
    Array1,
    /// An array of `char` or `short`.
    Array2,
    /// An array of references, `int` or `float`.
    Array4,
    /// An array of `long` or `double`.
    Array8,
    /// No object of the VM: of native heaps only, number 7.
    Native,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Object, Self::Class, Self::Array1, Self::Array2, Self::Array4, Self::Array8, Self::Native];

    fn number(self) -> u8 {
        if self == Self::Native { 7 } else { self as u8 }
    }
}

/// The state of the units of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Strength of the references that hold them.
    pub solidity: Solidity,
    pub kind: Kind,
}

impl State {
    /// Free memory.
    pub const FREE: Self = Self { solidity: Solidity::Free, kind: Kind::Object };

    fn byte(self) -> u8 {
        (self.kind.number() << 3) | self.solidity as u8
    }

    fn read(byte: u8) -> Option<Self> {
        let kind = match (byte >> 3) & 7 {
            7 => Kind::Native,
            6 => return None,
            number => Kind::ALL[usize::from(number)],
        };
        let solidity = *Solidity::ALL.get(usize::from(byte & 7))?;
        (byte & 0x40 == 0).then_some(Self { solidity, kind })
    }
}

/// Consecutive units with the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub state: State,
    /// Whether the object continues in the next run.
    pub is_partial: bool,
    /// Number of units, 1 to 256.
    pub units: u16,
}

/// Which of the three chunks it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `HPSG`: runs hold any number of objects.
    Merged,
    /// `HPSO`: a run ends where its object does.
    Objects,
    /// `NHSG`: of a native heap.
    Native,
}

/// A piece of a contiguous stretch of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Type of the chunk.
    pub form: Form,
    /// Number of the heap.
    pub heap: u32,
    /// Bytes of an allocation unit, at least 1.
    pub unit: u8,
    /// Where the stretch begins; of 64 bits the lower 32.
    pub address: u32,
    /// Where the piece begins in it, in allocation units.
    pub offset: u32,
    /// Runs in order of their addresses.
    pub runs: Vec<Run>,
}

impl Segment {
    /// Of all of its runs together.
    pub fn units(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.units)).sum()
    }

    pub(crate) fn read(form: Form, data: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "a heap segment";
        let mut reader = Reader::new(WHAT, data);
        let (heap, unit, address, offset, says) =
            (reader.u4()?, reader.u1()?, reader.u4()?, reader.u4()?, reader.u4()?);
        if unit == 0 {
            return reader.wrong(unit);
        }
        let pairs = reader.rest();
        if !pairs.len().is_multiple_of(2) {
            return Err(Malformed::Long { what: WHAT, extra: 1 });
        }
        let mut has = 0;
        let mut runs = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks_exact(2) {
            let Some(state) = State::read(pair[0]) else { return reader.wrong(pair[0]) };
            let units = u16::from(pair[1]) + 1;
            has += u64::from(units);
            runs.push(Run { state, is_partial: pair[0] & 0x80 != 0, units });
        }
        if has != u64::from(says) {
            return Err(Malformed::Units { what: WHAT, says, has });
        }
        Ok(Self { form, heap, unit, address, offset, runs })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u4(self.heap).u1(self.unit).u4(self.address).u4(self.offset);
        out.u4(u32::try_from(self.units()).unwrap_or(u32::MAX));
        for run in &self.runs {
            let partial = if run.is_partial { 0x80 } else { 0 };
            out.u1(run.state.byte() | partial).u1((run.units.clamp(1, MOST_UNITS) - 1) as u8);
        }
        out.finish()
    }
}

/// Makes segments of what is said of a contiguous stretch from its start to its end, one object or gap after the other.
#[derive(Clone, Debug)]
pub struct SegmentWriter {
    piece: Segment,
    done: Vec<Segment>,
    most_runs: usize,
    /// Number of units in the current part.
    units: u32,
}

impl SegmentWriter {
    /// Starts a range at an address with units of this many bytes; each part has a limited number of runs (two bytes
    /// each).
    pub fn new(form: Form, heap: u32, unit: u8, address: u32, most_runs: usize) -> Self {
        let piece = Segment { form, heap, unit: unit.max(1), address, offset: 0, runs: Vec::new() };
        Self { piece, done: Vec::new(), most_runs: most_runs.max(1), units: 0 }
    }

    /// Appends an object or a gap with this number of units. In the merged forms, it is joined with its predecessor if
    /// they have the same state.
    pub fn push(&mut self, state: State, mut units: u64) {
        let is_merged = self.piece.form != Form::Objects;
        if is_merged && let Some(last) = self.piece.runs.last_mut().filter(|last| last.state == state) {
            let more = units.min(u64::from(MOST_UNITS - last.units)) as u16;
            last.units += more;
            self.units += u32::from(more);
            units -= u64::from(more);
        }
        while units > 0 {
            if self.piece.runs.len() >= self.most_runs {
                self.cut();
            }
            let run = units.min(u64::from(MOST_UNITS)) as u16;
            units -= u64::from(run);
            self.units += u32::from(run);
            self.piece.runs.push(Run { state, is_partial: !is_merged && units > 0, units: run });
        }
    }

    /// Starts the next part.
    fn cut(&mut self) {
        let next = Segment { offset: self.piece.offset.wrapping_add(self.units), runs: Vec::new(), ..self.piece };
        self.done.push(std::mem::replace(&mut self.piece, next));
        self.units = 0;
    }

    /// Pieces that are complete: they can be sent already.
    pub fn take_done(&mut self) -> Vec<Segment> {
        std::mem::take(&mut self.done)
    }

    /// All pieces that were not taken.
    pub fn finish(mut self) -> Vec<Segment> {
        if !self.piece.runs.is_empty() {
            self.cut();
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn state() -> impl Strategy<Value = State> {
        (prop::sample::select(&Solidity::ALL[..]), prop::sample::select(&Kind::ALL[..]))
            .prop_map(|(solidity, kind)| State { solidity, kind })
    }

    /// State of each unit; with objects, also whether an object ends after it.
    fn unit_by_unit(segments: &[Segment]) -> Vec<(State, bool)> {
        let mut units = Vec::new();
        for segment in segments {
            assert_eq!(units.len(), segment.offset as usize, "pieces follow each other");
            for run in &segment.runs {
                units.extend((1..=run.units).map(|at| (run.state, at == run.units && !run.is_partial)));
            }
        }
        units
    }

    proptest! {
        #[test]
        fn pieces_say_what_each_unit_is(
            objects in prop::collection::vec((state(), 1..700_u64), 0..60),
            most_runs in 1..20_usize,
            form in prop::sample::select(&[Form::Merged, Form::Objects, Form::Native][..]),
        ) {
            let mut writer = SegmentWriter::new(form, 7, 8, 0x10000, most_runs);
            objects.iter().for_each(|&(state, units)| writer.push(state, units));
            let segments = writer.finish();
            let again: Vec<Segment> = segments.iter().map(|segment| Segment::read(form, &segment.write()).unwrap()).collect();
            prop_assert_eq!(&segments, &again);
            prop_assert!(segments.iter().all(|segment| segment.runs.len() <= most_runs));
            let expected = objects.iter().flat_map(|&(state, units)| (1..=units).map(move |at| (state, at == units)));
            let units = unit_by_unit(&again);
            if form == Form::Objects {
                prop_assert_eq!(units, expected.collect::<Vec<_>>());
            } else {
                let states = |units: &mut dyn Iterator<Item = (State, bool)>| units.map(|(state, _)| state).collect::<Vec<_>>();
                prop_assert_eq!(states(&mut units.into_iter()), states(&mut expected.into_iter()));
            }
        }

        #[test]
        fn bytes_are_refused_or_come_back(data in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(segment) = Segment::read(Form::Objects, &data) {
                prop_assert_eq!(segment.write(), data);
            }
        }
    }

    #[test]
    fn the_example_of_the_specification() {
        // A heap at 0x10000 of 0x400 units, in one piece or in two.
        let segments = |most_runs| {
            let mut writer = SegmentWriter::new(Form::Merged, 1, 8, 0x10000, most_runs);
            writer.push(State { solidity: Solidity::Hard, kind: Kind::Object }, 0x300);
            writer.push(State::FREE, 0x100);
            writer.finish().iter().map(|it| (it.address, it.offset, it.units())).collect::<Vec<_>>()
        };
        assert_eq!(segments(100), [(0x10000, 0, 0x400)]);
        assert_eq!(segments(3), [(0x10000, 0, 0x300), (0x10000, 0x300, 0x100)]);
    }

    #[test]
    fn units_must_come_out_even() {
        let mut data = vec![0, 0, 0, 1, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1];
        data[16] = 2;
        assert_eq!(data.len(), 19);
        let short = Segment::read(Form::Merged, &data[..17]);
        assert_eq!(short, Err(Malformed::Units { what: "a heap segment", says: 258, has: 0 }));
        assert!(Segment::read(Form::Merged, &data[..18]).is_err(), "half a run");
    }
}
