//! How long objects live, and how long they are kept after their last use (drag: Röjemo and Runciman, "Lag, drag, void and
//! use", ICFP 1996).

use et_names::SiteId;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Amount;
use crate::record::{AllocKind, ObjectId, Record, Tick};
use crate::types::TypeId;

/// Lifetimes of the objects of one class or site; times are ticks of the clock.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct LifetimeLine {
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub died: Amount,
    pub alive_at_end: u64,
    pub mean_lifetime: f64,
    pub mean_drag: f64,
    /// Bytes times ticks between last use and death, summed over the dead: what freeing at the last use would have saved.
    pub drag_byte_ticks: u64,
}

/// Lifetimes of all objects made while tracing was on.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct LifetimesPart {
    pub died: Amount,
    pub alive_at_end: Amount,
    /// Of the objects that were there when tracing began.
    pub initial_died: u64,
    pub mean_lifetime: f64,
    pub mean_drag: f64,
    /// Bytes times ticks of all.
    pub drag_byte_ticks: u64,
    /// Those with the most drag first.
    pub classes: Vec<LifetimeLine>,
    pub sites: Vec<LifetimeLine>,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    born: u64,
    used: u64,
    size: u64,
    ty: TypeId,
    site: SiteId,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    died: Amount,
    alive: Amount,
    lifetime: u64,
    drag: u64,
    drag_bytes: u64,
}

impl Sum {
    fn died(&mut self, life: &Life, now: u64) {
        self.died.add(life.size);
        self.lifetime += now - life.born;
        self.drag += now - life.used;
        self.drag_bytes = self.drag_bytes.saturating_add((now - life.used).saturating_mul(life.size));
    }

    fn mean(&self, sum: u64) -> f64 {
        if self.died.objects == 0 { 0.0 } else { sum as f64 / self.died.objects as f64 }
    }
}

/// Takes records one by one.
#[derive(Debug, Default)]
pub struct LifetimesTally {
    alive: FxHashMap<ObjectId, Life>,
    all: Sum,
    initial_died: u64,
    by_type: FxHashMap<TypeId, Sum>,
    by_site: FxHashMap<SiteId, (TypeId, Sum)>,
}

impl LifetimesTally {
    /// The next record.
    pub fn record(&mut self, record: &Record, tick: Tick) {
        let now = tick.0;
        let used = |alive: &mut FxHashMap<ObjectId, Life>, object: ObjectId| {
            if !object.is_null()
                && let Some(life) = alive.get_mut(&object)
            {
                life.used = now;
            }
        };
        match *record {
            Record::Alloc(alloc) => {
                if alloc.kind != AllocKind::Initial {
                    let life = Life { born: now, used: now, size: alloc.size, ty: alloc.ty, site: alloc.site };
                    self.alive.insert(alloc.object, life);
                }
            }
            // What an update stores or replaces is not used by it.
            Record::Update { origin, .. } => used(&mut self.alive, origin),
            Record::Death { object, .. } => match self.alive.remove(&object) {
                Some(life) => {
                    self.all.died(&life, now);
                    self.by_type.entry(life.ty).or_default().died(&life, now);
                    if life.site.0 != 0 {
                        self.by_site.entry(life.site).or_insert((life.ty, Sum::default())).1.died(&life, now);
                    }
                }
                None => self.initial_died += 1,
            },
            _ => record.objects().into_iter().for_each(|object| used(&mut self.alive, object)),
        }
    }

    /// What came of it; `texts` names types and sites.
    pub fn finish(
        mut self,
        top: usize,
        type_text: impl Fn(TypeId) -> String,
        site_text: impl Fn(SiteId) -> String,
    ) -> LifetimesPart {
        for life in self.alive.values() {
            self.all.alive.add(life.size);
            self.by_type.entry(life.ty).or_default().alive.add(life.size);
            if life.site.0 != 0 {
                self.by_site.entry(life.site).or_insert((life.ty, Sum::default())).1.alive.add(life.size);
            }
        }
        let line = |ty: TypeId, site: Option<SiteId>, sum: &Sum| LifetimeLine {
            ty: type_text(ty),
            site: site.map(&site_text),
            died: sum.died,
            alive_at_end: sum.alive.objects,
            mean_lifetime: sum.mean(sum.lifetime),
            mean_drag: sum.mean(sum.drag),
            drag_byte_ticks: sum.drag_bytes,
        };
        let most = |lines: &mut Vec<LifetimeLine>| {
            lines.sort_by(|a, b| {
                (b.drag_byte_ticks, b.died.bytes)
                    .cmp(&(a.drag_byte_ticks, a.died.bytes))
                    .then_with(|| (&a.ty, &a.site).cmp(&(&b.ty, &b.site)))
            });
            lines.truncate(top);
        };
        let mut classes: Vec<_> = self.by_type.iter().map(|(&ty, sum)| line(ty, None, sum)).collect();
        let mut sites: Vec<_> = self.by_site.iter().map(|(&site, (ty, sum))| line(*ty, Some(site), sum)).collect();
        most(&mut classes);
        most(&mut sites);
        LifetimesPart {
            died: self.all.died,
            alive_at_end: self.all.alive,
            initial_died: self.initial_died,
            mean_lifetime: self.all.mean(self.all.lifetime),
            mean_drag: self.all.mean(self.all.drag),
            drag_byte_ticks: self.all.drag_bytes,
            classes,
            sites,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Alloc, Slot, ThreadId};
    use et_names::{FieldId, MethodId};

    #[test]
    fn drag_is_what_lies_between_last_use_and_death() {
        let thread = ThreadId(1);
        let alloc = |object, kind| {
            let (object, ty, site) = (ObjectId(object), TypeId(1), SiteId(7));
            Record::Alloc(Alloc { kind, object, size: 16, ty, site, length: 0, thread })
        };
        let (origin, target) = (ObjectId(2), ObjectId(1));
        let slot = Slot::Field(FieldId(3));
        let mut tally = LifetimesTally::default();
        for (tick, record) in [
            (0, alloc(9, AllocKind::Initial)),
            (2, alloc(1, AllocKind::New)),
            (3, alloc(2, AllocKind::New)),
            (4, Record::Entry { method: MethodId(1), receiver: target, thread }),
            (8, Record::Update { old: ObjectId::NULL, origin, target, slot, thread }),
            (12, Record::Death { object: target, thread }),
            (12, Record::Death { object: ObjectId(9), thread }),
        ] {
            tally.record(&record, Tick(tick));
        }
        let part = tally.finish(5, |_| "A".into(), |site| site.0.to_string());
        assert_eq!((part.died, part.initial_died), (Amount { objects: 1, bytes: 16 }, 1));
        assert_eq!((part.mean_lifetime, part.mean_drag), (10.0, 8.0));
        assert_eq!(part.alive_at_end, Amount { objects: 1, bytes: 16 });
        assert_eq!((part.sites[0].site.as_deref(), part.sites[0].drag_byte_ticks), (Some("7"), 128));
        assert_eq!(part.classes[0].alive_at_end, 1);
    }
}
