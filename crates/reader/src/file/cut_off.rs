//! Where a trace without an end stops, and what stopped it.

use et_format::FormatError;
use et_format::progress::Progress;

use super::buffer_file::BufferFile;

/// Where and why a trace stops before its end.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOff {
    /// Number of complete blocks before that place.
    pub blocks: usize,
    /// Offset of the first byte that is not part of a complete block.
    pub offset: usize,
    /// Number of bytes from there to the end of the file.
    pub bytes_left: usize,
    /// What is wrong there; `None` if the file ends between two blocks.
    pub why: Option<FormatError>,
    /// The last progress that the runtime recorded; `None` if it is not in the trace.
    pub progress: Option<Progress>,
    /// What happened to the events that were not yet in the trace.
    pub buffer_file: BufferFile,
    /// Whether a process is still writing the trace.
    pub still_runs: bool,
}

impl CutOff {
    pub(super) fn new(blocks: usize, offset: usize, bytes_left: usize, why: Option<FormatError>) -> Self {
        Self { blocks, offset, bytes_left, why, progress: None, buffer_file: BufferFile::GivenUp, still_runs: false }
    }
}

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trace is cut off after {} blocks", self.blocks)?;
        let stopped = self.progress.as_ref().and_then(|progress| progress.stopped.as_ref());
        match (&self.why, stopped) {
            (Some(why), _) => write!(f, ", at byte {} ({why})", self.offset)?,
            (None, _) if self.bytes_left > 0 => {
                write!(f, ", at byte {} (a block is incomplete)", self.offset)?;
            }
            (None, None) if self.still_runs => f.write_str(" (it has no end block: the program still runs)")?,
            (None, None) => {
                f.write_str(" (it has no end block: the program was killed, or this is a copy made while it ran)")?;
            }
            (None, Some(_)) => {}
        }
        let missing = self.progress.as_ref().map_or(0, |progress| progress.blocks.saturating_sub(self.blocks as u64));
        if missing > 0 {
            write!(f, "; at least {missing} more had been written")?;
        }
        match (&self.progress, stopped) {
            (_, Some(stopped)) => write!(
                f,
                "; tracing stopped {:.2} s after it began: {}; {} events in {} chunks did not reach the trace, and what \
                 the program did afterwards was not traced",
                stopped.seconds, stopped.why, stopped.lost_events, stopped.lost_chunks
            ),
            (Some(progress), None) => {
                write!(f, "; the last sign of life came {:.2} s after the trace began", progress.seconds)?;
                write!(f, "; {}", self.buffer_file)
            }
            (None, None) => write!(f, "; {}", self.buffer_file),
        }
    }
}
