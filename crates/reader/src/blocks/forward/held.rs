//! What only local variables may hold.

use et_names::MethodId;
use rustc_hash::FxHashMap;

use super::super::HeldByLocal;
use super::{Holder, Row};
use crate::record::AllocKind;

/// What may be held only by local variables of methods that run at the end (see `docs/semantics.md`): of each frame and
/// each kind of object the last one.
#[derive(Debug, Default)]
pub(super) struct HeldByLocals {
    pub all: FxHashMap<(Holder, Kind), HeldByLocal>,
    /// The step and the key of the last death of an object that a frame had in hand.
    batch: Option<(u64, (Holder, Kind))>,
    tidy_at: usize,
}

/// What makes objects alike.
type Kind = (u32, u32, u32, AllocKind);

impl HeldByLocals {
    pub fn died(&mut self, row: &Row) {
        let (step, alloc) = (row.step, row.row.alloc);
        if self.batch.is_some_and(|(last, _)| last != step) {
            self.batch = None;
        }
        if alloc.kind == AllocKind::Initial {
            return;
        }
        if let Some(holder) = row.holder {
            let key = (holder, (alloc.site.0, alloc.ty.0, row.row.context.0, alloc.kind));
            let known = self.all.contains_key(&key);
            // Two of a kind that die at once may both be held.
            if !(known && self.batch == Some((step, key))) {
                let first = HeldByLocal {
                    frame: (holder.thread, holder.depth),
                    method: MethodId(0),
                    step,
                    alloc,
                    context: row.row.context,
                    objects: 0,
                    bytes: 0,
                };
                if self.all.get(&key).is_none_or(|held| held.step <= step) {
                    self.all.insert(key, first);
                }
            }
            self.batch = Some((step, key));
        }
        if let Some(held) = self.batch.and_then(|(_, key)| self.all.get_mut(&key)) {
            held.objects += 1;
            held.bytes += alloc.size;
        }
    }

    /// Drops what frames held that have ended.
    pub fn tidy(&mut self, runs: impl Fn(&Holder) -> bool) {
        if self.all.len() >= self.tidy_at.max(1024) {
            self.all.retain(|(holder, _), _| runs(holder));
            self.tidy_at = self.all.len() * 2;
        }
    }
}
