//! How far a run has come: what a trace without an end still says of it.

use serde::{Deserialize, Serialize};

use super::dynamic::DynamicCounts;
use super::{BLOCK_HEADER, BlockKind, Codec, FILE_HEADER, write_block};
use crate::event::Ticket;

/// Where the block lies that is written over and over: right behind the file header.
pub const PROGRESS_AT: u64 = FILE_HEADER as u64;
/// Bytes of that block, its header included.
pub const PROGRESS_BLOCK: usize = 1024;

/// What [`Progress::overflows`] counts, for people. The program's code goes on there, and the hook does not.
pub const OVERFLOWS: &str = "events were not written because the stack ended there, where the program overflowed it";

/// Which run a file is of: the trace and its buffer file have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunId(u64);

impl RunId {
    /// Bytes that it takes.
    pub const BYTES: usize = 6;

    /// Another one each time.
    pub fn random() -> Self {
        use std::hash::{BuildHasher, Hasher};
        // Keyed by the system's random numbers.
        let hasher = std::hash::RandomState::new().build_hasher();
        Self((hasher.finish() & Self::MASK).max(1))
    }

    const MASK: u64 = (1 << (8 * Self::BYTES)) - 1;

    /// As a file header has it.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let mut wide = [0; 8];
        wide[..Self::BYTES].copy_from_slice(&bytes);
        Self(u64::from_le_bytes(wide))
    }

    /// For a file header.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&self.0.to_le_bytes()[..Self::BYTES]);
        bytes
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

/// A `Progress` block: the last known state of a run that goes on, or why tracing stopped before the program did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Since tracing began.
    pub seconds: f64,
    /// The last one given out.
    pub ticket: Ticket,
    /// Of events, before packing, that are in the trace.
    pub event_bytes: u64,
    /// Whole blocks in the trace.
    pub blocks: u64,
    /// Events that no buffer could be had for.
    pub lost_events: u64,
    /// See [`OVERFLOWS`].
    pub overflows: u64,
    /// None if classes made at run time were not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<DynamicCounts>,
    /// None while all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
}

/// Why tracing stopped before the program did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stopped {
    /// One line for people; the end of a very long one is missing.
    pub why: String,
    /// Since tracing began.
    pub seconds: f64,
    /// Chunks of events that were on their way to the trace and did not arrive.
    pub lost_chunks: u64,
    /// The events in them.
    pub lost_events: u64,
}

impl Progress {
    /// The block of [`PROGRESS_BLOCK`] bytes that lies at [`PROGRESS_AT`].
    pub fn fixed_block(&self) -> Vec<u8> {
        const ROOM: usize = PROGRESS_BLOCK - BLOCK_HEADER;
        let mut progress = self.clone();
        let mut raw = progress.json();
        // A path may be as long as the block.
        while raw.len() > ROOM
            && let Some(stopped) = progress.stopped.as_mut().filter(|stopped| !stopped.why.is_empty())
        {
            let excess = raw.len() - ROOM;
            // Quoted, a character may take six bytes.
            for _ in 0..excess.div_ceil(6) {
                stopped.why.pop();
            }
            raw = progress.json();
        }
        raw.resize(ROOM, b' ');
        let mut block = Vec::with_capacity(PROGRESS_BLOCK);
        // It is far too small to be refused.
        let _ = write_block(&mut block, BlockKind::Progress, Codec::Stored, 0, 0, Ticket(0), &raw);
        block
    }

    /// The content of a block of its own, for what cannot be written over.
    pub fn json(&self) -> Vec<u8> {
        super::encode_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockHeader, decode_json};

    fn decoded(block: &[u8]) -> Progress {
        let header = BlockHeader::decode(block).unwrap().unwrap();
        assert_eq!((header.kind, block.len()), (BlockKind::Progress, PROGRESS_BLOCK));
        decode_json(&header.unpack(&block[BLOCK_HEADER..]).unwrap()).unwrap()
    }

    #[test]
    fn the_block_has_one_size_whatever_it_says() {
        let counts = DynamicCounts {
            seen: u64::MAX,
            rewritten: u64::MAX,
            redefined: u64::MAX,
            already_instrumented: u64::MAX,
            excluded: u64::MAX,
            malformed: u64::MAX,
            refused: u64::MAX,
            failed: u64::MAX,
            nanos: u64::MAX,
        };
        let mut progress = Progress {
            seconds: 1e-300,
            ticket: Ticket(u64::MAX),
            event_bytes: u64::MAX,
            blocks: u64::MAX,
            lost_events: u64::MAX,
            overflows: u64::MAX,
            dynamic: Some(counts),
            stopped: None,
        };
        assert_eq!(decoded(&progress.fixed_block()), progress);
        for why in ["", "no space left", &"ü".repeat(3000), &"\\\"".repeat(700)] {
            progress.stopped = Some(Stopped { why: why.into(), seconds: 2.5, lost_chunks: 3, lost_events: 4 });
            let read = decoded(&progress.fixed_block());
            let stopped = read.stopped.clone().unwrap();
            assert!(why.starts_with(&stopped.why) && (why.len() > 300 || why == stopped.why), "{}", stopped.why);
            assert!(why.is_empty() == stopped.why.is_empty());
            assert_eq!(stopped.lost_events, 4);
            assert_eq!(Progress { stopped: None, ..read }, Progress { stopped: None, ..progress.clone() });
        }
    }

    #[test]
    fn run_ids_come_back_and_differ() {
        let (one, other) = (RunId::random(), RunId::random());
        assert_ne!(one, other);
        assert_ne!(one, RunId::default());
        assert_eq!(RunId::from_bytes(one.to_bytes()), one);
        assert_eq!(one.to_string().len(), 12);
    }
}
