//! What a reading by blocks has observed besides objects.

use rustc_hash::FxHashMap;

use super::Passed;
use crate::attribution::{Attribution, Callers, Origins};
use crate::made_in::Places;
use crate::observed::{HeldByLocal, Observed, ThreadRecords};
use crate::record::{AllocKind, ThreadId};
use crate::source::Source;

impl Passed {
    /// The same as an [`Observer`](crate::observed::Observer) of all records finds.
    pub fn observed(&self, source: &Source) -> Observed {
        let of_thread = |(&thread, &records): (&u32, &u64)| ThreadRecords { thread: ThreadId(thread), records };
        let mut threads: Vec<ThreadRecords> =
            self.records.iter().map(of_thread).filter(|thread| thread.records > 0).collect();
        threads.sort_unstable_by_key(|thread| thread.thread);
        let mut entered: Vec<_> = self.ran.iter().copied().collect();
        entered.sort_unstable();
        Observed {
            totals: self.outcome.totals,
            threads,
            entered,
            held_by_locals: self.held(source),
            usage: self.usage.clone(),
            cut_off: self.outcome.cut_off.clone(),
            anomalies: self.outcome.anomalies.clone(),
        }
    }

    /// Objects that local variables may hold. Here they are told apart by their calling contexts; those that one caller
    /// asked for are of one kind.
    fn held(&self, source: &Source) -> Vec<HeldByLocal> {
        let mut attribution = Attribution::of(source);
        let mut places = Places::new(source.naming());
        let types = source.types();
        let callers = Callers::of_contexts(&self.contexts, &mut attribution.owners);
        let mut last: FxHashMap<((u32, u32), Origins), super::HeldByLocal> = FxHashMap::default();
        for held in self.held_by_locals.iter().filter(|held| held.alloc.kind != AllocKind::Initial) {
            let made_in = places.in_context((&held.alloc).into(), held.context, &self.contexts, &types);
            let of_context = callers.get(held.context.0 as usize).copied().unwrap_or_default();
            let top = self.contexts.get(held.context).method;
            let origins = attribution.origins(made_in, held.alloc.ty, of_context, top);
            let known =
                last.entry((held.frame, origins)).or_insert(super::HeldByLocal { objects: 0, bytes: 0, ..*held });
            if known.step < held.step {
                *known = *held;
            } else if known.step == held.step {
                // Two of a kind that die at once may both be held.
                known.objects += held.objects;
                known.bytes = known.bytes.saturating_add(held.bytes);
            }
        }
        let mut sums: FxHashMap<_, (u64, u64)> = FxHashMap::default();
        for ((_, Origins { made_in, ty, .. }), held) in last {
            // Threads that do the same are one.
            let sum = sums.entry((held.method, made_in, ty)).or_default();
            sum.0 += held.objects;
            sum.1 = sum.1.saturating_add(held.bytes);
        }
        let line = |((method, made_in, ty), (objects, bytes))| HeldByLocal { method, made_in, ty, objects, bytes };
        let mut all: Vec<HeldByLocal> = sums.into_iter().map(line).collect();
        all.sort_unstable_by_key(|held| (held.method, held.made_in, held.ty));
        all
    }
}
