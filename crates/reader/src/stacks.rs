//! Call stacks that a trace has of its own (`--events alloc,stacks`), so that they need not be worked out from calls.

use et_format::{STACK, StackCounts, StackRecord};
use et_names::{MethodId, SiteId};
use rustc_hash::FxHashMap;

use crate::names::Names;
use crate::record::StackId;

#[derive(Clone, Copy, Debug)]
struct Frame {
    caller: StackId,
    site: SiteId,
    /// The method of the site; 0 if it is not known.
    method: MethodId,
    /// One of the sites on the line of the site; 0 if its line is not known.
    at: SiteId,
    /// Whether something is called at the site, and not allocated; unknown sites do neither.
    is_call: bool,
}

impl Frame {
    const UNKNOWN: Self =
        Self { caller: StackId::NONE, site: SiteId(0), method: MethodId(0), at: SiteId(0), is_call: false };
}

/// The stacks of a trace, by number.
#[derive(Clone, Debug, Default)]
pub struct StackTable {
    frames: Vec<Frame>,
    /// What the runtime has counted; `None` if the trace has no end.
    pub counts: Option<StackCounts>,
}

impl StackTable {
    /// The stacks of these records.
    pub(crate) fn new(records: Vec<StackRecord>, names: &Names) -> Self {
        let mut table = Self::default();
        // Contexts differ by lines, not by calls on a line.
        let mut lines: FxHashMap<(MethodId, u32), SiteId> = FxHashMap::default();
        let mut look_up = |site| {
            let found = names.site(SiteId(site));
            let method = found.map_or(MethodId(0), |(table, there)| table.method_id(there.method));
            let line = found.map_or(0, |(_, there)| there.line);
            let is_call = found.is_some_and(|(_, there)| there.is_call());
            let at = if line == 0 { SiteId(0) } else { *lines.entry((method, line)).or_insert(SiteId(site)) };
            Frame { caller: StackId::NONE, site: SiteId(site), method, at, is_call }
        };
        // There may be a hundred frames at each site.
        let mut at_sites: FxHashMap<u32, Frame> = FxHashMap::default();
        let mut frame = |caller, site| {
            let at_site = *at_sites.entry(site).or_insert_with(|| look_up(site));
            Frame { caller: StackId(caller), ..at_site }
        };
        for record in records {
            match record {
                StackRecord::Frame { number, caller, site } => {
                    // A damaged trace may name any number, one of the runtime has all of them.
                    let place = number as usize;
                    if place >= table.frames.len() && place < table.frames.len() + MOST_MISSING {
                        table.frames.resize(place + 1, Frame::UNKNOWN);
                    }
                    // Callers come first, so that chains end.
                    if let Some(place) = table.frames.get_mut(place).filter(|_| caller < number) {
                        *place = frame(caller, site);
                    }
                }
                StackRecord::Counts(counts) => table.counts = Some(counts),
            }
        }
        table
    }

    /// Whether the trace has none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Number of stacks.
    pub fn len(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// The site in an event, and the stack if the event has its number in place of the site. If the innermost frame is at a call, the object was
    /// allocated by native code, the VM or a method without hooks, and there is no site.
    #[inline]
    pub fn split(&self, site: SiteId) -> (SiteId, StackId) {
        match site.0.checked_sub(STACK) {
            None => (site, StackId::NONE),
            Some(number) => match self.frames.get(number as usize) {
                Some(frame) => (if frame.is_call { SiteId(0) } else { frame.site }, StackId(number)),
                None => (SiteId(0), StackId::NONE),
            },
        }
    }

    /// The stack of the caller, the method of the innermost frame (0 if it is not known), and one of the sites on the line at which that is
    /// (0 if its line is not known).
    pub(crate) fn top(&self, stack: StackId) -> Option<(StackId, MethodId, SiteId)> {
        let frame = self.frames.get(stack.0 as usize).filter(|_| stack != StackId::NONE)?;
        Some((frame.caller, frame.method, frame.at))
    }

    /// Whether the innermost frame allocates something.
    pub(crate) fn allocates(&self, stack: StackId) -> bool {
        self.frames.get(stack.0 as usize).is_some_and(|frame| frame.method != MethodId(0) && !frame.is_call)
    }

    /// The sites of a stack, innermost first.
    pub fn sites(&self, stack: StackId) -> impl Iterator<Item = SiteId> + '_ {
        let mut at = stack;
        std::iter::from_fn(move || {
            let frame = self.frames.get(at.0 as usize).filter(|_| at != StackId::NONE)?;
            at = frame.caller;
            Some(frame.site)
        })
    }
}

/// Numbers that may be missing between two: those of records that a killed program has left behind out of order.
const MOST_MISSING: usize = 1 << 16;
