//! What a reading by blocks has observed besides objects.

use super::Passed;
use crate::attribution::{Attribution, Callers};
use crate::made_in::Places;
use crate::observed::held::by_origins;
use crate::observed::{HeldByLocal, Observed, ThreadRecords};
use crate::record::ThreadId;
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
        by_origins(&self.held_by_locals, |&(made, context)| {
            let made_in = places.in_context(made, context, &self.contexts, &types);
            let of_context = callers.get(context.0 as usize).copied().unwrap_or_default();
            attribution.origins(made_in, made.ty, of_context, self.contexts.get(context).method)
        })
    }
}
