//! How long objects live, and how long they are kept after their last use (drag: Röjemo and Runciman, "Lag, drag, void and
//! use", ICFP 1996).

use std::ops::AddAssign;

use et_names::SiteId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Amount;
use super::tally::{Callers, Row};
use et_trace::model::{FrameRef, Objects, Stacks};
use et_trace::record::ObjectId;
use et_trace::types::TypeId;

/// Lifetimes of the objects of one class or site; times are ticks of the clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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

/// Where an object is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It is one of those that the row with that number counts.
    Traced(u32),
    /// It was there when tracing began.
    Before(TypeId),
}

/// An object that is not dead yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    born: u64,
    used: u64,
    pub size: u64,
    pub made: Made,
    /// The outermost method that had it in hand and, when that was last looked at, still ran.
    pub holder: Option<FrameRef>,
}

impl Life {
    pub fn new(now: u64, size: u64, made: Made, holder: Option<FrameRef>) -> Self {
        Self { born: now, used: now, size, made, holder }
    }
}

/// All that are not dead yet.
#[derive(Debug, Default)]
pub(super) struct Lives {
    alive: Objects<Life>,
    initial_died: u64,
}

impl Lives {
    /// There is another.
    pub fn born(&mut self, object: ObjectId, life: Life) {
        self.alive.insert(object, life);
    }

    /// One died.
    pub fn died(&mut self, object: ObjectId) -> Option<Life> {
        let life = self.alive.forget(object).map(|node| {
            self.alive.free(node);
            self.alive[node]
        });
        self.initial_died += u64::from(life.is_none_or(|life| matches!(life.made, Made::Before(_))));
        life
    }

    /// What is known of one that is not dead.
    pub fn get(&self, object: ObjectId) -> Option<&Life> {
        self.alive.find(object).map(|node| &self.alive[node])
    }

    /// One was mentioned: used, if `now` is given, and a method may have it in hand.
    #[inline]
    pub fn mentioned(&mut self, object: ObjectId, now: Option<u64>, frame: Option<FrameRef>, stacks: &Stacks<Callers>) {
        let Some(node) = self.alive.node(object) else { return };
        let life = &mut self.alive[node];
        life.used = now.unwrap_or(life.used);
        let Some(frame) = frame else { return };
        let keeps = life.holder.is_some_and(|holder| {
            (holder.thread != frame.thread || holder.depth <= frame.depth) && stacks.running(holder).is_some()
        });
        if !keeps {
            life.holder = Some(frame);
        }
    }
}

/// Lifetimes of those that died.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LifetimeSum {
    died: Amount,
    lifetime: u64,
    drag: u64,
    drag_bytes: u64,
}

impl LifetimeSum {
    pub fn died(&mut self, life: &Life, now: u64) {
        self.died.add(life.size);
        self.lifetime += now - life.born;
        self.drag += now - life.used;
        self.drag_bytes = self.drag_bytes.saturating_add((now - life.used).saturating_mul(life.size));
    }

    fn mean(&self, sum: u64) -> f64 {
        if self.died.objects == 0 { 0.0 } else { sum as f64 / self.died.objects as f64 }
    }
}

impl AddAssign for LifetimeSum {
    fn add_assign(&mut self, other: Self) {
        self.died += other.died;
        self.lifetime += other.lifetime;
        self.drag += other.drag;
        self.drag_bytes = self.drag_bytes.saturating_add(other.drag_bytes);
    }
}

/// What came of it; `texts` name types and sites.
pub(super) fn part(
    rows: &[Row],
    lives: &Lives,
    top: usize,
    type_text: impl Fn(TypeId) -> String,
    site_text: impl Fn(SiteId) -> String,
) -> LifetimesPart {
    let mut all = (LifetimeSum::default(), Amount::default());
    let mut by_type: FxHashMap<TypeId, (LifetimeSum, u64)> = FxHashMap::default();
    let mut by_site: FxHashMap<SiteId, (TypeId, LifetimeSum, u64)> = FxHashMap::default();
    for row in rows {
        all.0 += row.lifetime;
        all.1 += row.alive;
        let of_type = by_type.entry(row.key.ty).or_default();
        of_type.0 += row.lifetime;
        of_type.1 += row.alive.objects;
        if row.key.site.0 != 0 {
            let of_site = by_site.entry(row.key.site).or_insert((row.key.ty, LifetimeSum::default(), 0));
            of_site.1 += row.lifetime;
            of_site.2 += row.alive.objects;
        }
    }
    let line = |ty: TypeId, site: Option<SiteId>, sum: &LifetimeSum, alive: u64| LifetimeLine {
        ty: type_text(ty),
        site: site.map(&site_text),
        died: sum.died,
        alive_at_end: alive,
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
    let mut classes: Vec<_> = by_type.iter().map(|(&ty, (sum, alive))| line(ty, None, sum, *alive)).collect();
    let mut sites: Vec<_> =
        by_site.iter().map(|(&site, (ty, sum, alive))| line(*ty, Some(site), sum, *alive)).collect();
    most(&mut classes);
    most(&mut sites);
    let (sum, alive) = all;
    LifetimesPart {
        died: sum.died,
        alive_at_end: alive,
        initial_died: lives.initial_died,
        mean_lifetime: sum.mean(sum.lifetime),
        mean_drag: sum.mean(sum.drag),
        drag_byte_ticks: sum.drag_bytes,
        classes,
        sites,
    }
}
