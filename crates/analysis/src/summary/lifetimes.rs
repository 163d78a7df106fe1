//! How long objects live, and how long they remain after their last use (drag: Röjemo and Runciman, "Lag, drag, void
//! and use", ICFP 1996).

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Amount;
use super::rows::{LifetimeSum, Row};
use et_reader::made_in::MadeIn;
use et_reader::types::TypeId;

/// Lifetimes of the objects of one class or site; times are ticks of the clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifetimeLine {
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub died: Amount,
    pub alive_at_end: u64,
    pub mean_lifetime: f64,
    /// `None`: the trace has no calls, which tell uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_drag: Option<f64>,
    /// Bytes times ticks between last use and death, summed over the dead: what freeing at the last use would have saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drag_byte_ticks: Option<u64>,
}

/// Lifetimes of all objects made while tracing was on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifetimesPart {
    pub died: Amount,
    pub alive_at_end: Amount,
    /// Of the objects that were there when tracing began.
    pub initial_died: u64,
    pub mean_lifetime: f64,
    /// `None`: the trace has no calls, which tell uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_drag: Option<f64>,
    /// Sum of bytes times ticks of drag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drag_byte_ticks: Option<u64>,
    /// Those with the most drag first.
    pub classes: Vec<LifetimeLine>,
    pub sites: Vec<LifetimeLine>,
}

/// Returns the results, given how many objects died in all; the texts name types and places.
pub(super) fn part(
    rows: &[Row],
    deaths: u64,
    has_uses: bool,
    top: usize,
    type_text: impl Fn(TypeId) -> String,
    place_text: impl Fn(MadeIn) -> String,
) -> LifetimesPart {
    let mut all = (LifetimeSum::default(), Amount::default());
    let mut by_type: FxHashMap<TypeId, (LifetimeSum, u64)> = FxHashMap::default();
    let mut by_place: FxHashMap<(MadeIn, TypeId), (TypeId, LifetimeSum, u64)> = FxHashMap::default();
    for row in rows {
        all.0 += row.sum.lifetime;
        all.1 += row.sum.alive;
        let of_type = by_type.entry(row.key.ty).or_default();
        of_type.0 += row.sum.lifetime;
        of_type.1 += row.sum.alive.objects;
        let place = row.key.made_in;
        let ty = if place.site().is_none() { row.key.ty } else { TypeId::UNKNOWN };
        let of_place = by_place.entry((place, ty)).or_insert((row.key.ty, LifetimeSum::default(), 0));
        of_place.1 += row.sum.lifetime;
        of_place.2 += row.sum.alive.objects;
    }
    let line = |ty: TypeId, place: Option<MadeIn>, sum: &LifetimeSum, alive: u64| LifetimeLine {
        ty: type_text(ty),
        site: place.map(&place_text),
        died: sum.died,
        alive_at_end: alive,
        mean_lifetime: sum.mean(sum.lifetime),
        mean_drag: has_uses.then(|| sum.mean(sum.drag)),
        drag_byte_ticks: has_uses.then_some(sum.drag_bytes),
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
        by_place.iter().map(|(&(place, _), (ty, sum, alive))| line(*ty, Some(place), sum, *alive)).collect();
    most(&mut classes);
    most(&mut sites);
    let (sum, alive) = all;
    LifetimesPart {
        died: sum.died,
        alive_at_end: alive,
        initial_died: deaths.saturating_sub(sum.died.objects),
        mean_lifetime: sum.mean(sum.lifetime),
        mean_drag: has_uses.then(|| sum.mean(sum.drag)),
        drag_byte_ticks: has_uses.then_some(sum.drag_bytes),
        classes,
        sites,
    }
}
