//! The lists of the summary: packages, sites, what grew, what running methods hold.

use std::cmp::Reverse;

use et_names::MethodId;
use rustc_hash::FxHashMap;

use super::code::{NONE, Origin, PackageId};
use super::lives::Made;
use super::tally::Tally;
use super::{Amount, GrowthLine, HeldBy, HeldLine, PackageLine, SiteLine};
use et_reader::lifetimes::HeldByStack;
use et_reader::made_in::{MadeIn, Means};
use et_reader::model::OnStack;
use et_reader::types::TypeId;

/// Functions that return display names of ids.
pub(super) struct Texts<'a> {
    /// The type allocated in a place, given a type that was seen there.
    pub ty: &'a dyn Fn(MadeIn, TypeId) -> String,
    pub place: &'a dyn Fn(MadeIn) -> String,
    pub method: &'a dyn Fn(MethodId) -> String,
}

/// Packages with what their code asked for, `top` of each origin; how many there are in all.
pub(super) fn packages(tally: &mut Tally<'_>, top: usize) -> (Vec<PackageLine>, usize) {
    if !tally.code.is_known() {
        return (Vec::new(), 0);
    }
    let mut sums: FxHashMap<PackageId, Amount> = FxHashMap::default();
    for index in 0..tally.rows.len() {
        let row = tally.rows[index];
        *sums.entry(tally.package_of(row.key)).or_default() += row.made;
    }
    let count = sums.len();
    let mut lines: Vec<PackageLine> = sums
        .into_iter()
        .map(|(id, amount)| {
            let package = tally.code.package(id);
            PackageLine { package: package.name.clone(), origin: package.origin, amount }
        })
        .collect();
    lines.sort_by(|a, b| {
        let key = |line: &PackageLine| (line.origin, Reverse(line.amount.bytes), Reverse(line.amount.objects));
        key(a).cmp(&key(b)).then_with(|| a.package.cmp(&b.package))
    });
    cut_packages(&mut lines, top);
    (lines, count)
}

/// Keeps the first `top` packages of each origin; those of one origin are adjacent.
pub(super) fn cut_packages(lines: &mut Vec<PackageLine>, top: usize) {
    let mut of_origin = (None, 0);
    lines.retain(|line| {
        if of_origin.0 != Some(line.origin) {
            of_origin = (Some(line.origin), 0);
        }
        of_origin.1 += 1;
        of_origin.1 <= top
    });
}

/// Data of a place.
#[derive(Default)]
struct OfSite {
    ty: Option<TypeId>,
    made: Amount,
    /// Of it what code outside the JDK asked for.
    asked: Amount,
    middle: Amount,
    alive: Amount,
    callers: FxHashMap<MethodId, Amount>,
}

impl OfSite {
    /// The caller that asked for the most, how many there were, and what all of them asked for.
    fn caller(&self, texts: &Texts<'_>) -> (Option<String>, usize, Amount) {
        let most =
            self.callers.iter().max_by_key(|&(method, amount)| (amount.bytes, amount.objects, Reverse(method.0)));
        let mut sum = Amount::default();
        self.callers.values().for_each(|&amount| sum += amount);
        (most.map(|(&method, _)| (texts.method)(method)), self.callers.len(), sum)
    }
}

/// Sums by place; where no site is known, by type as well. Callers by what `count` says of a row.
fn by_site(tally: &mut Tally<'_>, count: impl Fn(usize, &Tally<'_>) -> Amount) -> FxHashMap<(MadeIn, TypeId), OfSite> {
    let mut sites: FxHashMap<(MadeIn, TypeId), OfSite> = FxHashMap::default();
    for index in 0..tally.rows.len() {
        let row = tally.rows[index];
        let place = row.key.made_in;
        let of_jdk = tally.origin_of(place) == Origin::Jdk;
        let ty = if place.site().is_none() { row.key.ty } else { TypeId::UNKNOWN };
        let counted = count(index, tally);
        let site = sites.entry((place, ty)).or_default();
        site.ty.get_or_insert(row.key.ty);
        site.made += row.made;
        site.alive += row.alive;
        site.middle += tally.middle().1.get(index).copied().unwrap_or_default();
        if row.key.caller != NONE {
            *site.callers.entry(row.key.caller).or_default() += counted;
        }
        if !of_jdk || row.key.caller != NONE {
            site.asked += row.made;
        }
    }
    sites
}

/// The first `top` sites.
pub(super) fn sites(tally: &mut Tally<'_>, texts: &Texts<'_>, top: usize) -> Vec<SiteLine> {
    let mut sites: Vec<_> = by_site(tally, |index, tally| tally.rows[index].made).into_iter().collect();
    sites.sort_by_cached_key(|((site, ty), of)| {
        (Reverse((of.asked.bytes, of.asked.objects, of.made.bytes, of.made.objects)), (texts.place)(*site), *ty)
    });
    sites.truncate(top);
    let line = |((site, _), of): ((MadeIn, TypeId), OfSite)| {
        let (caller, callers, for_callers) = of.caller(texts);
        SiteLine {
            site: (texts.place)(site),
            ty: (texts.ty)(site, of.ty.unwrap_or(TypeId::UNKNOWN)),
            origin: tally.origin_of(site),
            amount: of.made,
            caller,
            callers,
            for_callers,
        }
    };
    sites.into_iter().map(line).collect()
}

/// The first `top` places with more bytes alive at the end than in the middle of the run.
pub(super) fn grew(tally: &mut Tally<'_>, texts: &Texts<'_>, top: usize) -> Vec<GrowthLine> {
    if tally.lives.is_none() {
        return Vec::new();
    }
    let mut sites: Vec<_> = by_site(tally, |index, tally| tally.rows[index].alive).into_iter().collect();
    sites.retain(|(_, of)| of.alive.bytes > of.middle.bytes);
    sites.sort_by_cached_key(|((site, ty), of)| {
        (Reverse((of.alive.bytes - of.middle.bytes, of.alive.objects)), (texts.place)(*site), *ty)
    });
    sites.truncate(top);
    let line = |((site, _), of): ((MadeIn, TypeId), OfSite)| {
        let (caller, callers, for_callers) = of.caller(texts);
        GrowthLine {
            site: (texts.place)(site),
            ty: (texts.ty)(site, of.ty.unwrap_or(TypeId::UNKNOWN)),
            in_the_middle: of.middle,
            at_the_end: of.alive,
            made: of.made,
            caller,
            callers,
            for_callers,
        }
    };
    sites.into_iter().map(line).collect()
}

/// The first `top` objects held only by methods running at the end: certainly, according to `by_stacks`, or possibly,
/// by local variables.
pub(super) fn held(tally: &Tally<'_>, by_stacks: &[HeldByStack], texts: &Texts<'_>, top: usize) -> Vec<HeldLine> {
    // Threads that do the same are one line.
    let mut sums: FxHashMap<(HeldBy, MethodId, MadeIn, TypeId), Amount> = FxHashMap::default();
    for HeldByStack { by: OnStack { method, object, is_in_flight, .. }, objects } in by_stacks {
        let Some((made, amount)) = tally.alive(*object, objects) else { continue };
        let (site, ty) = match made {
            Made::Traced(row) => (tally.rows[row as usize].key.made_in, tally.rows[row as usize].key.ty),
            Made::Before(ty) => (MadeIn::Nowhere(Means::Initial), ty),
        };
        let by = if *is_in_flight { HeldBy::Exception } else { HeldBy::Receiver };
        *sums.entry((by, *method, site, ty)).or_default() += amount;
    }
    for (method, row, amount) in tally.held_by_locals() {
        let key = tally.rows[row as usize].key;
        *sums.entry((HeldBy::Local, method, key.made_in, key.ty)).or_default() += amount;
    }
    let line = |((by, method, site, ty), amount): ((HeldBy, MethodId, MadeIn, TypeId), Amount)| HeldLine {
        by,
        method: (texts.method)(method),
        ty: (texts.ty)(site, ty),
        site: (texts.place)(site),
        amount,
    };
    let mut lines: Vec<HeldLine> = sums.into_iter().map(line).collect();
    lines.sort_by(|a, b| {
        let key = |line: &HeldLine| (Reverse(line.amount.bytes), Reverse(line.amount.objects), line.by);
        key(a).cmp(&key(b)).then_with(|| (&a.method, &a.ty, &a.site).cmp(&(&b.method, &b.ty, &b.site)))
    });
    lines.truncate(top);
    lines
}
