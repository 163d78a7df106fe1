//! How far a run got: available even from a trace without an end.

use serde::{Deserialize, Serialize};

use super::dynamic::DynamicCounts;
use super::{BLOCK_HEADER, BlockKind, Codec, FILE_HEADER, write_block};
use crate::event::Ticket;

/// File offset of the progress block, which is overwritten repeatedly: directly after the file header.
pub const PROGRESS_AT: u64 = FILE_HEADER as u64;
/// Length of that block in bytes, its header included.
pub const PROGRESS_BLOCK: usize = 1024;

/// For users: describes what [`Progress::overflows`] counts. The hook is abandoned and the program continues.
pub const OVERFLOWS: &str = "events were not written because the stack ended there, where the program overflowed it";

/// Identifies a run: a trace and its buffer file have the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunId(u64);

impl RunId {
    /// Length of an encoded id in bytes.
    pub const BYTES: usize = 6;

    /// Returns a new random id.
    pub fn random() -> Self {
        use std::hash::{BuildHasher, Hasher};
        // `RandomState` is seeded with random numbers of the operating system.
        let hasher = std::hash::RandomState::new().build_hasher();
        Self((hasher.finish() & Self::MASK).max(1))
    }

    const MASK: u64 = (1 << (8 * Self::BYTES)) - 1;

    /// Decodes an id in a file header.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let mut wide = [0; 8];
        wide[..Self::BYTES].copy_from_slice(&bytes);
        Self(u64::from_le_bytes(wide))
    }

    /// Encodes the id for a file header.
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

/// The `Progress` block: the last known state of a run in progress, or why tracing stopped before the program did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Seconds since tracing began.
    pub seconds: f64,
    /// The last ticket issued.
    pub ticket: Ticket,
    /// Bytes of events in the trace, before packing.
    pub event_bytes: u64,
    /// Complete blocks in the trace.
    pub blocks: u64,
    /// Events lost because no buffer was available.
    pub lost_events: u64,
    /// Number of events that were not written for the reason in [`OVERFLOWS`].
    pub overflows: u64,
    /// `None` if classes created at run time were not instrumented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<DynamicCounts>,
    /// `None` as long as tracing goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
}

/// Why tracing stopped before the program did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stopped {
    /// The reason, one line for users. Truncated if very long.
    pub why: String,
    /// Seconds since tracing began.
    pub seconds: f64,
    /// Chunks of events that were queued for the trace and did not reach it.
    pub lost_chunks: u64,
    /// Events in these chunks.
    pub lost_events: u64,
}

impl Progress {
    /// Encodes the block of [`PROGRESS_BLOCK`] bytes that goes to [`PROGRESS_AT`].
    pub fn fixed_block(&self) -> Vec<u8> {
        const ROOM: usize = PROGRESS_BLOCK - BLOCK_HEADER;
        let mut progress = self.clone();
        let mut raw = progress.json();
        // A path in the reason may be as long as the block.
        while raw.len() > ROOM
            && let Some(stopped) = progress.stopped.as_mut().filter(|stopped| !stopped.why.is_empty())
        {
            let excess = raw.len() - ROOM;
            // JSON may need six bytes for a character.
            for _ in 0..excess.div_ceil(6) {
                stopped.why.pop();
            }
            raw = progress.json();
        }
        raw.resize(ROOM, b' ');
        let mut block = Vec::with_capacity(PROGRESS_BLOCK);
        // Far below the maximum length, so it cannot fail.
        let _ = write_block(&mut block, BlockKind::Progress, Codec::Stored, 0, 0, Ticket(0), &raw);
        block
    }

    /// Encodes the content of a separate block, for outputs that cannot be overwritten.
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
