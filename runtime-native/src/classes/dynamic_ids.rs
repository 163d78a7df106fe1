//! Static ids given out at run time, for what no artifact on disk describes: classes created at run time, and fields
//! that native code stores to. Each block of them has its own names table in the trace.

use et_names::{Artifact, ArtifactKind, EventSet, NamesTable};

use crate::output::queue::Queue;

/// The artifact whose ids start at `base`, shown to users as `name`.
pub fn artifact(base: u32, name: impl Into<String>, kind: ArtifactKind) -> Artifact {
    // Within a trace, the base is unique.
    Artifact { hash: base.into(), base, name: name.into(), kind, events: EventSet::ALL }
}

/// Queues a table. It may come after events that use its ids: readers read all tables first.
pub fn publish(queue: &Queue, table: &NamesTable) {
    queue.names(table.encode());
}

#[cfg(test)]
mod tests {
    use et_names::DYNAMIC_BASE;

    use super::*;

    #[test]
    fn a_table_goes_to_the_trace_as_it_is() {
        let queue = Queue::default();
        publish(&queue, &NamesTable::new(artifact(DYNAMIC_BASE, "made", ArtifactKind::Dynamic)));
        assert_eq!(queue.take_names()[0].artifact, artifact(DYNAMIC_BASE, "made", ArtifactKind::Dynamic));
    }
}
