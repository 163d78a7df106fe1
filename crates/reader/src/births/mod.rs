//! Traces that tell how objects were made and nothing else (`--mode objects`, `--events alloc`): rows are made from the events
//! whenever they are asked for, on all cores, and nothing is written.
//!
//! In such a trace an event stands for an object, whatever was before. Only in the order of all do three things show: how many objects
//! and bytes there were before; whether an id has been given before; and whether an object that somebody came across is new. So one
//! reading makes an index: of each run of events between two tickets, what there was before it ([`index`]). From then on any rows can
//! be made from the blocks that have them ([`rows`]).
//!
//! Traces with other events, and those of which something is missing, are read in the usual ways ([`blocks`](crate::blocks)).

mod born;
mod events;
mod ids;
mod index;
mod joined;
mod made;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use et_names::MethodId;

use crate::axis;
use crate::file::ReadError;
use crate::observed::{Observed, ThreadRecords};
use crate::population::Population;
use crate::record::ThreadId;
use crate::resolve::{CutOffThread, Lost};
use crate::trace::Trace;
pub use born::untold;
use index::Index;
pub use joined::{Alike, NEVER_JOINED};
use rows::MadeRows;

/// Reads all objects of a trace, and what their rows do not tell. `None`: it has to be read in another way.
///
/// # Errors
/// The trace cannot be read.
pub fn read(trace: &Trace) -> Result<Option<(Population, Observed)>, ReadError> {
    in_groups(trace, rows::GROUP, axis::BINS)
}

/// The same, with about so many rows in a group, and spans of up to so many bins.
fn in_groups(trace: &Trace, group: u64, bins: usize) -> Result<Option<(Population, Observed)>, ReadError> {
    let Some(Index { order, contexts, totals, records, anomalies, fates }) = index::index(trace)? else {
        return Ok(None);
    };
    let of_thread = |(thread, records)| ThreadRecords { thread: ThreadId(thread), records };
    let mut threads: Vec<ThreadRecords> = records.into_iter().map(of_thread).collect();
    threads.sort_unstable_by_key(|thread| thread.thread);
    threads.retain(|thread| thread.records > 0);
    let with_frames = || trace.threads.iter().filter(|thread| !thread.frames.is_empty());
    let mut entered: Vec<MethodId> =
        with_frames().flat_map(|thread| &thread.frames).map(|frame| frame.method).collect();
    entered.sort_unstable();
    entered.dedup();
    let cut_off =
        with_frames().map(|thread| CutOffThread { thread: ThreadId(thread.index), frames: thread.frames.len() });
    let cut_off = cut_off.collect();
    let observed = Observed { totals, threads, entered, cut_off, anomalies, ..Observed::default() };
    let survival = fates.as_ref().map(|fates| fates.survival().clone());
    let end = order.end.moment();
    let objects = order.end.births;
    let (plain, of_stacks) = contexts;
    let Some(rows) = MadeRows::of(trace, order, of_stacks, fates.map(Arc::new), bins, group) else {
        return Ok(None);
    };
    let population = Population {
        groups: Box::new(rows),
        objects,
        contexts: plain,
        types: trace.types.clone(),
        has_deaths: false,
        has_uses: false,
        survival,
        end,
        lost: Lost::known(&trace.file),
        warnings: Vec::new(),
    };
    Ok(Some((population, observed)))
}
