//! The rows for classes, sites and contexts.

use std::cmp::Reverse;

use et_names::MethodId;
use et_reader::made_in::MadeIn;
use et_reader::model::ContextId;
use et_reader::observed::usage::{ArrayUsage, Fill, Usage};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;

use super::Told;
use super::data::{
    Alive, ArrayLine, Axis, CollectionLine, ExceptionLine, Growth, Holder, LifeLine, Lifetimes, Series, Suspects,
};
use super::moments::{Course, Courses, most};
use super::totals::{LIMITS, Sums, Totals};
use super::uses::{Use, Uses};
use crate::heap::growth::{self, LOOKS, grows};
use crate::summary::{Amount, Origin};

/// Maximum number of rows in a list.
const ROWS: usize = 150;
/// Maximum number of methods displayed for a context.
const CONTEXT: usize = 24;
/// Maximum number of growing sites.
const GROWING: usize = 30;

fn line(name: String, sums: &Sums, course: Option<&Course>, uses: Use) -> LifeLine {
    let died = sums.made.objects.saturating_sub(sums.alive.objects);
    LifeLine {
        name,
        made: sums.made,
        alive: sums.alive,
        died: course.map(Course::ages).unwrap_or_default(),
        mean_age_bytes: if died == 0 { 0.0 } else { sums.age_bytes as f64 / died as f64 },
        drag_share: if sums.space_time > 0 { sums.drag as f64 / sums.space_time as f64 } else { 0.0 },
        drag_byte_ticks: sums.drag as f64,
        on_stack: sums.on_stack,
        in_thread: sums.in_thread,
        with_thread: sums.with_thread,
        unused: uses.unused,
        usable: uses.all,
        stale: sums.stale,
        young: sums.young.to_vec(),
        ..LifeLine::default()
    }
}

/// How long the objects of classes and sites live.
pub(super) fn lifetimes(
    totals: &Totals,
    courses: &Courses,
    uses: &Uses,
    callers: &Callers,
    told: &mut Told<'_>,
) -> Lifetimes {
    let classes = most(
        &courses.classes.keys().map(|class| (class.0, totals.classes[class])).collect::<FxHashMap<u32, Sums>>(),
        ROWS,
        &[&|sums| sums.made.bytes as f64, &|sums| sums.drag as f64],
    );
    let classes = classes.into_iter().map(|class| {
        let class = TypeId(class);
        let used = uses.of_class(class);
        line(told.class(class), &totals.classes[&class], courses.classes.get(&class), used)
    });
    let classes = classes.collect();
    let sites = most(
        &courses.sites.keys().map(|&(place, class)| ((place, class.0), totals.sites[&(place, class)])).collect(),
        ROWS,
        &[&|sums: &Sums| sums.made.bytes as f64, &|sums| sums.drag as f64],
    );
    let sites = sites.into_iter().map(|(site, class)| {
        let key @ (site, class) = (site, TypeId(class));
        let used = site.site().map_or_else(Use::default, |site| uses.of_place(site, class));
        let line = line(told.place(site), &totals.sites[&key], courses.sites.get(&key), used);
        let caller = callers.get(&key).map(|caller| format!(" for {}", told.method(*caller)));
        let detail = format!("{}{}", told.class(class), caller.unwrap_or_default());
        LifeLine { detail, origin: told.origin_of_place(site), ..line }
    });
    let sites = sites.collect();
    Lifetimes {
        all: line("all objects".into(), &totals.all, Some(&courses.all), uses.all),
        classes,
        sites,
        limits: LIMITS.to_vec(),
    }
}

/// The method on whose behalf sites in the JDK allocate.
pub(super) type Callers = FxHashMap<(MadeIn, TypeId), MethodId>;

/// The innermost method outside the JDK that asked for most of what a site of the JDK's made.
pub(super) fn callers(totals: &Totals, told: &mut Told<'_>) -> Callers {
    let mut sums: FxHashMap<(MadeIn, TypeId), FxHashMap<MethodId, u64>> = FxHashMap::default();
    let mut of_jdk: FxHashMap<MadeIn, bool> = FxHashMap::default();
    for (&(context, site, class), weights) in &totals.places {
        let is_jdk = *of_jdk
            .entry(site)
            .or_insert_with(|| told.origin_of_place(site).is_none_or(|origin| origin == Origin::Jdk));
        if let Some(outside) = told.outside(context).filter(|_| is_jdk) {
            // What is alive has priority.
            let bytes = weights.made.bytes.saturating_add(weights.alive.bytes.saturating_mul(16));
            *sums.entry((site, class)).or_default().entry(outside).or_default() += bytes;
        }
    }
    let largest = |sums: FxHashMap<MethodId, u64>| {
        sums.into_iter().max_by_key(|(method, bytes)| (*bytes, Reverse(method.0))).map(|(method, _)| method)
    };
    sums.into_iter().filter_map(|(key, sums)| Some((key, largest(sums)?))).collect()
}

/// What was alive at each moment.
pub(super) fn alive(courses: &Courses, axes: &[Axis], told: &mut Told<'_>) -> Alive {
    let (objects, bytes) = courses.all.alive();
    // What never reaches a thousandth of the total is omitted.
    let is_seen =
        |series: &Series| series.bytes.iter().zip(&bytes).any(|(part, whole)| *part > 0 && part * 1000 >= *whole);
    let series = |name: String, detail: String, course: &Course| {
        let (objects, bytes) = course.alive();
        Series { name, detail, objects, bytes }
    };
    let sorted = |mut all: Vec<Series>| {
        all.retain(is_seen);
        all.sort_by_cached_key(|series| {
            (Reverse(series.bytes.iter().max().copied()), series.name.clone(), series.detail.clone())
        });
        all.truncate(2 * ROWS);
        all
    };
    let classes = courses.classes.iter().map(|(class, course)| series(told.class(*class), String::new(), course));
    let classes = sorted(classes.collect());
    let sites = courses.sites.iter();
    let sites = sites.map(|((site, class), course)| series(told.place(*site), told.class(*class), course));
    let sites = sorted(sites.collect());
    let contexts = courses.contexts.iter().map(|((context, class), course)| {
        let chain = told.context(*context, CONTEXT);
        let chain = if chain.is_empty() { "no method running".to_owned() } else { chain.join(" ← ") };
        series(told.class(*class), chain, course)
    });
    let contexts = sorted(contexts.collect());
    Alive { moments: courses.moments(axes), objects, bytes, classes, sites, contexts }
}

/// Finds suspected problems.
pub(super) fn suspects(
    totals: &Totals,
    courses: &Courses,
    uses: &Uses,
    callers: &Callers,
    told: &mut Told<'_>,
) -> (Suspects, Vec<(MadeIn, TypeId)>) {
    let (keys, growing) = growing(totals, courses, uses, callers, told).into_iter().unzip();
    let suspects = Suspects {
        holdings: Vec::new(),
        idle: None,
        growing,
        arrays: arrays(uses.usage, told),
        collections: collections(uses, told),
        exceptions: exceptions(uses.usage, told),
        thrown: uses.usage.thrown,
    };
    (suspects, keys)
}

/// A course is one of growth if more than this share of what is alive at the end came in the second half of the run.
const GROWN: f64 = 0.2;

/// Whether live bytes grew to the end. The moments are evenly spaced, and the last is the end.
fn still_grows(bytes: &[u64]) -> bool {
    let at = |thousandths: u64| {
        let moment = (bytes.len() as u64 * thousandths).div_ceil(1000);
        (moment as usize).checked_sub(1).and_then(|index| bytes.get(index)).copied().unwrap_or(0)
    };
    let [half, three_quarters, last] = LOOKS;
    let looks: growth::Looks = [half, three_quarters, last, 1000];
    grows(&looks.map(at), &looks, 1)
}

fn growing(
    totals: &Totals,
    courses: &Courses,
    uses: &Uses,
    callers: &Callers,
    told: &mut Told<'_>,
) -> Vec<((MadeIn, TypeId), Growth)> {
    let (_, whole) = courses.all.alive();
    let at_the_end = whole.last().copied().unwrap_or(0);
    let mut grown: Vec<((MadeIn, TypeId), Growth)> = Vec::new();
    let mut keys: Vec<(MadeIn, TypeId)> = courses.sites.keys().copied().collect();
    keys.sort_unstable_by_key(|(site, class)| (*site, class.0));
    for key @ (site, class) in keys {
        let (objects, bytes) = courses.sites[&key].alive();
        let middle_at = bytes.len() / 2;
        let (Some(&end), Some(&middle)) = (bytes.last(), bytes.get(middle_at.saturating_sub(1))) else { continue };
        // What is negligible at the end is of no interest.
        if end == 0 || end * 200 < at_the_end || ((end - middle.min(end)) as f64) < GROWN * end as f64 {
            continue;
        }
        let sums = &totals.sites[&key];
        let growth = Growth {
            site: told.place(site),
            class: told.class(class),
            caller: None,
            context: Vec::new(),
            made: sums.made,
            middle: Amount { objects: objects[middle_at.saturating_sub(1)], bytes: middle },
            end: Amount { objects: objects.last().copied().unwrap_or(0), bytes: end },
            still_grows: still_grows(&bytes),
            bytes,
            stale: sums.stale,
            stored_in: Vec::new(),
            ways: Vec::new(),
        };
        grown.push((key, growth));
    }
    grown.sort_by_key(|(_, growth)| {
        (
            Reverse(growth.still_grows),
            Reverse(growth.end.bytes.saturating_sub(growth.middle.bytes)),
            growth.site.clone(),
        )
    });
    grown.truncate(GROWING);
    let shown: FxHashMap<(MadeIn, TypeId), ()> = grown.iter().map(|(key, _)| (*key, ())).collect();
    let mut contexts: FxHashMap<(MadeIn, TypeId), (u64, ContextId)> = FxHashMap::default();
    for (&(context, site, class), weights) in &totals.places {
        if shown.contains_key(&(site, class)) {
            let most = contexts.entry((site, class)).or_default();
            *most = (*most).max((weights.alive.bytes, context));
        }
    }
    grown
        .into_iter()
        .map(|(key, growth)| {
            let context = contexts.get(&key).map(|(_, context)| *context).unwrap_or(ContextId::EMPTY);
            let stored_in = key.0.site().map_or(&[][..], |site| uses.stored_in(site, key.1));
            let mut holders: Vec<Holder> = stored_in
                .iter()
                .map(|stored| Holder { field: told.source().naming().field(stored.field), bytes: stored.bytes })
                .collect();
            holders.sort_by_key(|holder| (Reverse(holder.bytes), holder.field.clone()));
            holders.truncate(3);
            let growth = Growth {
                caller: callers.get(&key).map(|caller| told.method(*caller)),
                context: told.context(context, CONTEXT),
                stored_in: holders,
                ..growth
            };
            (key, growth)
        })
        .collect()
}

fn arrays(usage: &Usage, told: &mut Told<'_>) -> Vec<ArrayLine> {
    // By field where there is one, else by site.
    let mut lines: FxHashMap<(String, String), ArrayLine> = FxHashMap::default();
    for &ArrayUsage { owner, site, ty, fill } in &usage.arrays {
        let owner = match owner {
            Some(field) => told.source().naming().field(field),
            None => told.place(MadeIn::of_site(site)),
        };
        let class = told.class(ty);
        let line = lines.entry((owner.clone(), class.clone())).or_insert_with(|| ArrayLine {
            owner,
            class,
            fill: Fill::default(),
        });
        line.fill += fill;
    }
    let mut lines: Vec<ArrayLine> = lines.into_values().filter(|line| line.fill.sparse > 0).collect();
    lines.sort_by(|a, b| (b.fill.wasted_bytes, &a.owner, &a.class).cmp(&(a.fill.wasted_bytes, &b.owner, &b.class)));
    lines.truncate(ROWS / 3);
    lines
}

/// Whether a class may be a collection. Others of the JDK keep arrays as well: a class those of reflection, an exception its stack.
fn may_collect(class: &str) -> bool {
    const JDK: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];
    class.starts_with("java.util.") || !JDK.iter().any(|prefix| class.starts_with(prefix))
}

/// Classes of which some objects keep arrays, and others never do.
fn collections(uses: &Uses, told: &mut Told<'_>) -> Vec<CollectionLine> {
    let keeps = uses
        .keeping
        .iter()
        .filter(|(_, keeping)| keeping.without.objects > 0 && keeping.without.objects < keeping.all.objects);
    let mut lines: Vec<CollectionLine> = keeps
        .map(|(class, keeping)| CollectionLine {
            class: told.class(*class),
            made: keeping.all,
            without: keeping.without,
        })
        .filter(|line| may_collect(&line.class))
        .collect();
    lines.sort_by(|a, b| (b.without.bytes, &a.class).cmp(&(a.without.bytes, &b.class)));
    lines.truncate(ROWS / 3);
    lines
}

/// Minimum number of exceptions to suspect control flow.
const OFTEN: u64 = 100;
/// Maximum mean number of frames up to the handler.
const NEAR: f64 = 8.0;

fn exceptions(usage: &Usage, told: &mut Told<'_>) -> Vec<ExceptionLine> {
    let mut lines: Vec<ExceptionLine> = usage
        .flights
        .iter()
        .map(|flights| {
            let frames = flights.frames as f64 / flights.count.max(1) as f64;
            ExceptionLine {
                class: told.class(flights.ty),
                thrown_in: told.method(flights.thrown_in),
                caught_in: flights.caught_in.map(|method| told.method(method)),
                count: flights.count,
                frames,
                is_control_flow: flights.caught_in.is_some() && flights.count >= OFTEN && frames <= NEAR,
            }
        })
        .collect();
    lines.sort_by(|a, b| {
        (b.count, &a.class, &a.thrown_in, &a.caught_in).cmp(&(a.count, &b.class, &b.thrown_in, &b.caught_in))
    });
    lines.truncate(ROWS / 2);
    lines
}
