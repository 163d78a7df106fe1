//! The lists of the summary: packages, sites, what grew, what running methods hold.

use std::cmp::Reverse;

use et_names::MethodId;
use rustc_hash::FxHashMap;

use super::held::Holding;
use super::rows::Sum;
use super::sums::Sums;
use super::{Amount, GrowthLine, HeldLine, PackageLine, SiteLine};
use et_reader::attribution::NONE;
use et_reader::made_in::MadeIn;
use et_reader::owners::{Origin, PackageId};
use et_reader::types::TypeId;

/// Functions that return display names of ids.
pub(super) struct Texts<'a> {
    /// The type allocated in a place, given a type that was seen there.
    pub ty: &'a dyn Fn(MadeIn, TypeId) -> String,
    pub place: &'a dyn Fn(MadeIn) -> String,
    pub method: &'a dyn Fn(MethodId) -> String,
}

/// Packages with what their code asked for, `top` of each origin; how many there are in all.
pub(super) fn packages(sums: &mut Sums<'_>, top: usize) -> (Vec<PackageLine>, usize) {
    let Sums { attribution, rows, .. } = sums;
    if !attribution.owners.is_known() {
        return (Vec::new(), 0);
    }
    let mut packages: FxHashMap<PackageId, Amount> = FxHashMap::default();
    for row in rows.iter() {
        *packages.entry(attribution.package_of(row.key)).or_default() += row.sum.made;
    }
    let count = packages.len();
    let mut lines: Vec<PackageLine> = packages
        .into_iter()
        .map(|(id, amount)| {
            let package = attribution.owners.package(id);
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
fn by_site(sums: &mut Sums<'_>, count: impl Fn(&Sum) -> Amount) -> FxHashMap<(MadeIn, TypeId), OfSite> {
    let mut sites: FxHashMap<(MadeIn, TypeId), OfSite> = FxHashMap::default();
    let Sums { attribution, rows, .. } = sums;
    for row in rows.iter() {
        let place = row.key.made_in;
        let of_jdk = attribution.owner_of(place) == Origin::Jdk;
        let ty = if place.site().is_none() { row.key.ty } else { TypeId::UNKNOWN };
        let site = sites.entry((place, ty)).or_default();
        site.ty.get_or_insert(row.key.ty);
        site.made += row.sum.made;
        site.alive += row.sum.alive;
        site.middle += row.sum.middle;
        if row.key.caller != NONE {
            *site.callers.entry(row.key.caller).or_default() += count(&row.sum);
        }
        if !of_jdk || row.key.caller != NONE {
            site.asked += row.sum.made;
        }
    }
    sites
}

/// The first `top` sites.
pub(super) fn sites(sums: &mut Sums<'_>, texts: &Texts<'_>, top: usize) -> Vec<SiteLine> {
    let mut sites: Vec<_> = by_site(sums, |sum| sum.made).into_iter().collect();
    sites.sort_by_cached_key(|((site, ty), of)| {
        (Reverse((of.asked.bytes, of.asked.objects, of.made.bytes, of.made.objects)), (texts.place)(*site), *ty)
    });
    sites.truncate(top);
    let line = |((site, _), of): ((MadeIn, TypeId), OfSite)| {
        let (caller, callers, for_callers) = of.caller(texts);
        SiteLine {
            site: (texts.place)(site),
            ty: (texts.ty)(site, of.ty.unwrap_or(TypeId::UNKNOWN)),
            origin: sums.attribution.owner_of(site),
            amount: of.made,
            caller,
            callers,
            for_callers,
        }
    };
    sites.into_iter().map(line).collect()
}

/// The first `top` places with more bytes alive at the end than in the middle of the run.
pub(super) fn grew(sums: &mut Sums<'_>, texts: &Texts<'_>, top: usize) -> Vec<GrowthLine> {
    let mut sites: Vec<_> = by_site(sums, |sum| sum.alive).into_iter().collect();
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

/// The first `top` of what methods hold that were running at the end.
pub(super) fn held(all: &FxHashMap<Holding, Amount>, texts: &Texts<'_>, top: usize) -> Vec<HeldLine> {
    let line = |(&Holding { by, method, made_in, ty }, &amount): (&Holding, &Amount)| HeldLine {
        by,
        method: (texts.method)(method),
        ty: (texts.ty)(made_in, ty),
        site: (texts.place)(made_in),
        amount,
    };
    let mut lines: Vec<HeldLine> = all.iter().map(line).collect();
    lines.sort_by(|a, b| {
        let key = |line: &HeldLine| (Reverse(line.amount.bytes), Reverse(line.amount.objects), line.by);
        key(a).cmp(&key(b)).then_with(|| (&a.method, &a.ty, &a.site).cmp(&(&b.method, &b.ty, &b.site)))
    });
    lines.truncate(top);
    lines
}
