//! Static ids that are given out while the program runs, for what no artifact on disk describes: classes made at run
//! time, and fields that native code stores to. Each block of them has a names table of its own in the trace.

use std::sync::atomic::{AtomicU32, Ordering};

use et_format::BlockKind;
use et_names::{Artifact, ArtifactKind, DYNAMIC_BASE, EventSet, ID_LIMIT, NamesTable};

use crate::queue::Queue;

/// Hands out blocks of ids.
#[derive(Debug)]
pub struct DynamicIds {
    next: AtomicU32,
}

impl Default for DynamicIds {
    fn default() -> Self {
        Self { next: AtomicU32::new(DYNAMIC_BASE) }
    }
}

impl DynamicIds {
    /// The first of `count` ids that are nobody else's; none if they are used up.
    pub fn take(&self, count: u32) -> Option<u32> {
        let after = |base: u32| base.checked_add(count).filter(|end| *end <= ID_LIMIT);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()
    }
}

/// The artifact whose ids start at `base`, called `name` where people see it.
pub fn artifact(base: u32, name: impl Into<String>, kind: ArtifactKind) -> Artifact {
    // Within a trace the base is enough to tell it from all others.
    Artifact { hash: base.into(), base, name: name.into(), kind, events: EventSet::ALL }
}

/// Puts a table into the trace. It may come behind events that use its ids: readers read all tables first.
pub fn publish(queue: &Queue, table: &NamesTable) {
    queue.block(BlockKind::Names, table.encode());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_come_to_an_end() {
        let ids = DynamicIds::default();
        assert_eq!(ids.take(10), Some(DYNAMIC_BASE));
        assert_eq!(ids.take(1), Some(DYNAMIC_BASE + 10));
        assert_eq!(ids.take(ID_LIMIT), None);
        assert_eq!(ids.take(ID_LIMIT - DYNAMIC_BASE - 11), Some(DYNAMIC_BASE + 11));
        assert_eq!(ids.take(1), None);
        assert_eq!(ids.take(u32::MAX), None);
    }

    #[test]
    fn a_table_goes_to_the_trace_as_it_is() {
        let queue = Queue::default();
        publish(&queue, &NamesTable::new(artifact(DYNAMIC_BASE, "made", ArtifactKind::Dynamic)));
        let (kind, bytes) = queue.take_blocks().remove(0);
        assert_eq!(kind, BlockKind::Names);
        assert_eq!(NamesTable::decode(&bytes).unwrap().artifact, artifact(DYNAMIC_BASE, "made", ArtifactKind::Dynamic));
    }
}
