//! An overview of a trace.

#[cfg(test)]
mod against_records;
mod cut;
mod held;
mod info;
mod lifetimes;
mod lines;
mod long;
mod peak;
mod render;
mod rows;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;

use crate::contention::{Contention, contention};
use crate::labels::Labels;
use crate::selection::Selected;
use crate::survival::{SurvivalPart, survival};
pub use et_reader::amount::Amount;

use et_names::{EventSet, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

pub use et_reader::owners::Origin;
pub use info::{Sizes, info, sizes, text_info};
pub use lifetimes::{LifetimeLine, LifetimesPart};
pub use long::render_long;
pub use render::render;

use et_format::dynamic::DynamicCounts;
use et_format::progress::Stopped;
use et_format::{Problem, class_flags};
use rows::KindCounts;
use sums::Sums;

use et_reader::attribution::NONE;
use et_reader::made_in::{MadeIn, Means};
use et_reader::observed::Observed;
use et_reader::population::Population;
use et_reader::record::{AllocKind, Clock};
use et_reader::resolve::{Anomalies, Lost};
use et_reader::source::Source;
use et_reader::types::{TypeId, for_people};
use et_reader::{Thread, Trace};

/// Threads from here up are stacks of virtual threads.
const FIRST_CONTINUATION: u32 = 1 << 31;

/// Objects of one class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassLine {
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(flatten)]
    pub amount: Amount,
    /// The same objects by the letters of their records.
    pub kinds: BTreeMap<char, u64>,
}

/// Objects that code of one package asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PackageLine {
    pub package: String,
    pub origin: Origin,
    #[serde(flatten)]
    pub amount: Amount,
}

/// Objects of one site or, where none is known, of one method and by one means.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteLine {
    pub site: String,
    #[serde(rename = "type")]
    pub ty: String,
    /// Whose code the site is in.
    pub origin: Origin,
    #[serde(flatten)]
    pub amount: Amount,
    /// Of a site of the JDK's the method outside it that asked for the most bytes, of a library's the program's.
    pub caller: Option<String>,
    /// Number of callers.
    pub callers: usize,
    /// What was allocated on their behalf. The JDK and libraries also allocate on their own, in their own threads.
    pub for_callers: Amount,
}

/// A site's objects in the middle and at the end of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrowthLine {
    /// Where no site is known, the method that ran and how it allocated it was made.
    pub site: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub in_the_middle: Amount,
    pub at_the_end: Amount,
    pub made: Amount,
    pub caller: Option<String>,
    pub callers: usize,
    /// Of what there was at the end.
    pub for_callers: Amount,
}

/// When the most bytes were alive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peak {
    /// Those included that were there when tracing began.
    #[serde(flatten)]
    pub live: Amount,
    pub tick: u64,
    /// How much of all that was made had been made by then.
    pub made_bytes: u64,
    /// The method that made the last of it, the innermost outside the JDK.
    pub method: Option<String>,
    /// What is alive at the end.
    pub at_the_end: Amount,
}

/// How a method that was running at the end held an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HeldBy {
    /// The object is alive as its receiver.
    Receiver,
    /// The object is alive as an exception in flight.
    Exception,
    /// According to the trace the object is dead, but a local variable may hold it.
    Local,
}

/// Objects held, certainly or possibly, only by a method that was running at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldLine {
    pub by: HeldBy,
    pub method: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub site: String,
    /// The object and all that only it held.
    #[serde(flatten)]
    pub amount: Amount,
}

/// Statistics of a thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLine {
    pub id: u32,
    pub name: String,
    pub daemon: bool,
    pub ended: bool,
    pub records: u64,
    #[serde(flatten)]
    pub allocated: Amount,
    /// Frames that were on its stack at the end.
    pub frames_left: usize,
}

/// A garbage collection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcLine {
    pub start_seconds: f64,
    pub pause_seconds: f64,
    pub heap_used_bytes: u64,
    pub heap_committed_bytes: u64,
}

/// Classes without hooks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotInstrumented {
    pub classes: usize,
    /// Of these, classes made at run time (lambdas, proxies …).
    pub hidden: usize,
    /// Those with the most objects first.
    pub top: Vec<ClassLine>,
}

/// A method that ran without some of its hooks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShortfallLine {
    pub method: String,
    pub hooks: String,
    pub why: String,
}

/// How the traced program was started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    pub command: String,
    pub pid: u32,
    pub jvm: String,
    pub java_home: String,
    pub id_scheme: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub locked_ids: String,
    pub tool: String,
    pub start_unix_millis: u64,
    pub options: BTreeMap<String, String>,
}

/// All of it; `--json` prints this.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub trace: String,
    pub trace_bytes: u64,
    pub program: Program,
    /// Of the traced run; if the trace is cut off, up to the last sign of life, as far as there was one.
    pub seconds: Option<f64>,
    pub complete: bool,
    /// It was cut off, and `et-trace recover` gave it an end.
    pub recovered: bool,
    /// Where the trace is cut off.
    pub cut_off: Option<String>,
    /// Why tracing stopped before the program did.
    pub stopped: Option<Stopped>,
    /// Number of records by letter, and `total`.
    pub records: BTreeMap<String, u64>,
    /// Value of the clock at the end: calls and returns, or bytes allocated if there are no calls.
    pub ticks: u64,
    pub bytes_per_record: f64,
    /// Bytes of events before they were packed; 0 if that is not known.
    pub event_bytes: u64,
    /// When they were packed, but not compressed yet.
    pub packed_event_bytes: u64,
    /// CPU time of writing the trace in seconds, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_cpu_seconds: Option<f64>,
    /// Events that the classes have hooks for.
    pub events: Vec<String>,
    /// What the summary is of, if it is not of all allocations: then there is nothing on the peak, on what grew, and on what methods hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<Selected>,
    /// How long slices are in a trace that only counts allocations (`counts=1s`): it has no records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
    /// Call stacks that the trace has of its own (`--events alloc,stacks`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stacks: Option<StacksOfTrace>,
    /// Objects made while tracing was on.
    pub allocated: Amount,
    /// Allocations by letter.
    pub kinds: BTreeMap<String, Amount>,
    pub class_count: usize,
    pub classes: Vec<ClassLine>,
    /// The program's first, then libraries', then the JDK's; of each those that asked for the most bytes.
    pub packages: Vec<PackageLine>,
    pub package_count: usize,
    pub site_count: usize,
    /// Those of which code outside the JDK asked for the most bytes first; what the JDK made for itself alone comes last.
    pub sites: Vec<SiteLine>,
    /// Of all objects made while tracing was on those that no line of code is known of; their methods are among `sites`.
    pub without_site: Amount,
    /// `None` if deaths are unknown.
    pub peak: Option<Peak>,
    /// If deaths are known: those that grew the most first.
    pub grew: Vec<GrowthLine>,
    /// If deaths are known: what only methods held, or may have held, that were running at the end.
    pub held_by_running_methods: Vec<HeldLine>,
    /// Without `--deaths=none`, if they can be known.
    pub lifetimes: Option<LifetimesPart>,
    /// Which collections objects survived, if deaths are not known and the runtime looked (`survival=5`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survival: Option<SurvivalPart>,
    pub threads: Vec<ThreadLine>,
    pub gcs: Vec<GcLine>,
    /// Only with `monitors=on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
    /// Outcomes for classes defined at run time; `None` if they were not instrumented. The last known state if the
    /// trace is cut off.
    pub dynamic: Option<DynamicCounts>,
    pub not_instrumented: NotInstrumented,
    pub shortfalls: Vec<ShortfallLine>,
    pub shortfall_count: usize,
    pub anomalies: Anomalies,
    pub problems: Vec<Problem>,
    pub overlaps: Vec<String>,
    pub lost: u64,
    pub lost_details: Lost,
    /// Warnings about anything unusual in a text.
    pub warnings: Vec<String>,
}

impl Summary {
    /// Whether the trace has calls.
    pub fn has_calls(&self) -> bool {
        EventSet::METHOD.names().all(|method| self.events.iter().any(|event| event == method))
    }

    /// What the clock counts.
    pub fn ticks_of(&self) -> &'static str {
        if self.has_calls() { "calls and returns" } else { "bytes allocated" }
    }
}

fn by_letter(counts: &KindCounts) -> BTreeMap<char, u64> {
    let letters = AllocKind::ALL.iter().map(|kind| kind.letter());
    letters.zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}

/// Sums up a trace: its objects, and what their rows do not tell. Lists are cut to `top` entries.
///
/// # Errors
/// The rows cannot be read.
pub fn summarize(source: &Source, population: &Population, observed: &Observed, top: usize) -> io::Result<Summary> {
    sum_up(source, population, observed, None, top)
}

/// As [`summarize`], for a population of some allocations.
///
/// # Errors
/// The rows cannot be read.
pub fn summarize_selected(
    source: &Source,
    population: &Population,
    observed: &Observed,
    selected: Selected,
    top: usize,
) -> io::Result<Summary> {
    sum_up(source, population, observed, Some(selected), top)
}

fn sum_up(
    source: &Source,
    population: &Population,
    observed: &Observed,
    selected: Option<Selected>,
    top: usize,
) -> io::Result<Summary> {
    let types = &population.types;
    let type_text = |ty: TypeId| for_people(types.descriptor(ty));
    // The type that a site allocates; types seen there differ only for inner arrays.
    let naming = source.naming();
    let made_at = |site: SiteId, seen: TypeId| naming.type_of_site(site).map_or_else(|| type_text(seen), for_people);
    let texts = lines::Texts {
        ty: &|place, seen| place.site().map_or_else(|| type_text(seen), |site| made_at(site, seen)),
        place: &|place| place.text(naming),
        method: &|method| naming.method(method),
    };
    let is_all = selected.is_none();
    let mut sums = Sums::of(source, population, is_all)?;
    let mut summary = of_records(source, population, observed);
    let by_type = sums.by(|row| row.key.ty);
    add_objects(&mut summary, &mut sums, &by_type, &texts, top);
    summary.selected = selected;
    if population.has_deaths {
        let deaths = is_all.then(|| observed.totals.of('D'));
        add_lives(&mut summary, &mut sums, deaths, &texts, top);
    }
    if population.has_deaths && is_all {
        let held = held::held(source, population, observed, &sums.groups_alive)?;
        summary.held_by_running_methods = lines::held(&held, &texts, top);
    }
    match source {
        Source::Trace(trace) => {
            summary.threads = thread_lines(&trace.threads, &sums, observed);
            add_trace(&mut summary, trace, observed, &by_type, top);
        }
        Source::Text(text) => {
            summary.trace_bytes = text.size();
            summary.threads = thread_lines(&[], &sums, observed);
        }
    }
    if let (Some(walks), Some(sums)) = (&population.survival, sums.survived.take()) {
        let labels = Labels::of(source, population);
        summary.survival = Some(survival(population, walks, sums, labels, summary.seconds, top));
    }
    summary.bytes_per_record = summary.trace_bytes as f64 / observed.totals.sum().max(1) as f64;
    Ok(summary)
}

/// How the stacks of a trace came to be known; apart from `frames` 0 if the trace was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StacksOfTrace {
    /// Frames of different stacks.
    pub frames: u64,
    /// Values of the stack at which something was allocated.
    pub stacks: u64,
    /// Stacks that did not fit what calls had stored, and were recorded as the VM told them.
    pub walked_whole: u64,
    /// Allocations of which only the nearest callers are known.
    pub beyond_limit: u64,
}

/// The parts that only need the records' totals.
fn of_records(source: &Source, population: &Population, observed: &Observed) -> Summary {
    let totals = &observed.totals;
    let mut records: BTreeMap<String, u64> = totals.iter().map(|(letter, n)| (letter.to_string(), n)).collect();
    records.insert("total".into(), totals.sum());
    let stacks = source.trace().filter(|trace| !trace.stacks.is_empty()).map(|trace| {
        let counts = trace.stacks.counts.unwrap_or_default();
        StacksOfTrace {
            frames: trace.stacks.len() as u64,
            stacks: counts.values,
            walked_whole: counts.walked_whole,
            beyond_limit: counts.beyond_limit,
        }
    });
    Summary {
        trace: source.path().display().to_string(),
        complete: true,
        records,
        ticks: match source.clock(Clock::default()) {
            // That of counts stands still.
            Clock::Bytes => population.end.tick.max(population.end.bytes),
            _ => totals.of('M') + totals.of('E') + totals.of('X'),
        },
        events: source.events().names().chain(stacks.is_some().then_some("stacks")).map(str::to_owned).collect(),
        stacks,
        counts: source
            .trace()
            .filter(|trace| trace.only_counts())
            .and_then(|trace| trace.file.meta().options.get("counts").cloned()),
        anomalies: observed.anomalies.clone(),
        lost: population.lost.total(),
        lost_details: population.lost,
        warnings: population.warnings.clone(),
        ..Summary::default()
    }
}

/// A place that says nothing of the type.
const NOWHERE: MadeIn = MadeIn::Nowhere(Means::Native);

/// Adds what was allocated, where, and on whose behalf.
fn add_objects(
    summary: &mut Summary,
    sums: &mut Sums<'_>,
    by_type: &FxHashMap<TypeId, (Amount, KindCounts)>,
    texts: &lines::Texts<'_>,
    top: usize,
) {
    let type_text = |ty: TypeId| (texts.ty)(NOWHERE, ty);
    let sites = sums.by(|row| row.key.made_in.site());
    let classes = largest(
        by_type.iter().map(|(&ty, &(amount, _))| (ty, amount)),
        top,
        |amount| (amount.bytes, amount.objects),
        |&ty| type_text(ty),
    );
    let class = |(ty, amount)| ClassLine { ty: type_text(ty), amount, kinds: by_letter(&by_type[&ty].1) };
    let kinds = AllocKind::ALL.iter().zip(sums.kinds);
    summary.allocated = sums.allocated();
    summary.kinds = kinds.map(|(kind, amount)| (kind.letter().to_string(), amount)).collect();
    summary.class_count = by_type.len();
    summary.classes = classes.into_iter().map(class).collect();
    (summary.packages, summary.package_count) = lines::packages(sums, top);
    summary.site_count = sites.keys().flatten().count();
    summary.sites = lines::sites(sums, texts, top);
    summary.without_site = sites.get(&None).map(|&(amount, _)| amount).unwrap_or_default();
}

/// Adds what is based on deaths, if they are known: `deaths` is the number of all, if all objects are looked at.
fn add_lives(summary: &mut Summary, sums: &mut Sums<'_>, deaths: Option<u64>, texts: &lines::Texts<'_>, top: usize) {
    if deaths.is_some() {
        summary.grew = lines::grew(sums, texts, top);
    }
    summary.peak = sums.peak.map(|peak| Peak {
        live: peak.live,
        tick: peak.tick,
        made_bytes: peak.made_bytes,
        method: (peak.caller != NONE).then(|| (texts.method)(peak.caller)),
        at_the_end: sums.alive,
    });
    let type_text = |ty| (texts.ty)(NOWHERE, ty);
    let has_uses = summary.has_calls();
    summary.lifetimes = Some(lifetimes::part(&sums.rows, deaths.unwrap_or(0), has_uses, top, type_text, texts.place));
}

/// Adds what only a trace file contains.
fn add_trace(
    summary: &mut Summary,
    trace: &Trace,
    observed: &Observed,
    by_type: &FxHashMap<TypeId, (Amount, KindCounts)>,
    top: usize,
) {
    let file = &trace.file;
    let meta = file.meta();
    (summary.shortfalls, summary.shortfall_count) = shortfalls(trace, observed, top);
    summary.trace_bytes = file.size();
    summary.event_bytes = file.end().map_or(0, |end| end.event_bytes);
    summary.packed_event_bytes = file.packed_event_bytes();
    summary.writer_cpu_seconds = file.end().and_then(|end| end.writer_cpu_seconds);
    summary.program = Program {
        command: meta.options.get("program").unwrap_or(&meta.command).clone(),
        pid: meta.pid,
        jvm: format!("{} {}", meta.jvm.name, meta.jvm.version).trim().to_owned(),
        java_home: meta.java_home.clone(),
        id_scheme: meta.id_scheme.clone(),
        locked_ids: meta.locked_ids.clone(),
        tool: meta.tool.clone(),
        start_unix_millis: meta.start_unix_millis,
        options: meta.options.clone(),
    };
    let (end, last) = (file.end(), file.last_known());
    // The duration of a run that was killed at once is unknown.
    let last_seen = last.map(|last| last.seconds).filter(|&seconds| seconds >= 1e-6);
    summary.seconds = end.map(|end| end.seconds).or(last_seen);
    summary.stopped = last.and_then(|last| last.stopped.clone());
    summary.complete = file.cut_off().is_none();
    summary.recovered = file.is_recovered();
    summary.cut_off = file.cut_off().map(ToString::to_string);
    summary.gcs = trace
        .gcs
        .iter()
        .map(|gc| GcLine {
            start_seconds: gc.start_nanos as f64 / 1e9,
            pause_seconds: gc.finish_nanos.saturating_sub(gc.start_nanos) as f64 / 1e9,
            heap_used_bytes: gc.heap_used,
            heap_committed_bytes: gc.heap_committed,
        })
        .collect();
    summary.contention = contention(trace, top);
    summary.dynamic = end.and_then(|end| end.dynamic).or(last.and_then(|last| last.dynamic));
    summary.not_instrumented = not_instrumented(trace, by_type, top);
    summary.problems.clone_from(&trace.problems);
    summary.overlaps =
        trace.names.overlaps().iter().map(|overlap| format!("{} and {}", overlap.kept, overlap.shadowed)).collect();
}

/// The largest amounts, largest first; equal ones in the order of their texts.
fn largest<T>(
    amounts: impl Iterator<Item = (T, Amount)>,
    top: usize,
    key: impl Fn(&Amount) -> (u64, u64),
    text: impl Fn(&T) -> String,
) -> Vec<(T, Amount)> {
    let mut order: Vec<_> = amounts.filter(|(_, amount)| amount.objects > 0).collect();
    order.sort_by_cached_key(|(what, amount)| (std::cmp::Reverse(key(amount)), text(what)));
    order.truncate(top);
    order
}

fn thread_lines(threads: &[Thread], sums: &Sums<'_>, observed: &Observed) -> Vec<ThreadLine> {
    let frames_left: FxHashMap<u32, usize> =
        observed.cut_off.iter().map(|stack| (stack.thread.0, stack.frames)).collect();
    let mut counts: FxHashMap<u32, (u64, Amount)> =
        observed.threads.iter().map(|line| (line.thread.0, (line.records, Amount::default()))).collect();
    sums.threads.iter().for_each(|(thread, &amount)| counts.entry(thread.0).or_default().1 = amount);
    let line = |id: u32, name: String, daemon: bool, ended: bool| {
        let (records, allocated) = counts.get(&id).copied().unwrap_or_default();
        let frames_left = frames_left.get(&id).copied().unwrap_or_default();
        ThreadLine { id, name, daemon, ended, records, allocated, frames_left }
    };
    let mut lines: Vec<_> = threads
        .iter()
        .map(|thread| line(thread.index, thread.name.clone(), thread.is_daemon, thread.end.is_some()))
        .collect();
    let known: FxHashSet<u32> = lines.iter().map(|line| line.id).collect();
    let mut others: Vec<u32> = counts.keys().copied().filter(|&id| id != 0 && !known.contains(&id)).collect();
    others.sort_unstable();
    let name = |id: u32| if id >= FIRST_CONTINUATION { "virtual thread".into() } else { String::new() };
    lines.extend(others.into_iter().map(|id| line(id, name(id), id >= FIRST_CONTINUATION, true)));
    lines
}

fn not_instrumented(trace: &Trace, by_type: &FxHashMap<TypeId, (Amount, KindCounts)>, top: usize) -> NotInstrumented {
    let mut found = NotInstrumented::default();
    let mut lines = Vec::new();
    for class in trace.not_instrumented() {
        found.classes += 1;
        found.hidden += usize::from(class.record.flags & class_flags::HIDDEN != 0);
        let (amount, kinds) = by_type.get(&class.ty).copied().unwrap_or_default();
        lines.push(ClassLine { ty: for_people(&class.record.signature), amount, kinds: by_letter(&kinds) });
    }
    lines.sort_by(|a, b| b.amount.objects.cmp(&a.amount.objects).then_with(|| a.ty.cmp(&b.ty)));
    lines.dedup_by(|a, b| a.ty == b.ty);
    lines.truncate(top);
    found.top = lines;
    found
}

fn shortfalls(trace: &Trace, observed: &Observed, top: usize) -> (Vec<ShortfallLine>, usize) {
    let mut lines = Vec::new();
    let mut count = 0;
    for table in trace.names.tables() {
        for short in &table.shortfalls {
            let method = table.method_id(short.method);
            if observed.entered.binary_search(&method).is_err() {
                continue;
            }
            count += 1;
            if lines.len() < top {
                lines.push(ShortfallLine {
                    method: trace.names.method_text(method),
                    hooks: table.str(short.hooks).to_owned(),
                    why: table.str(short.why).to_owned(),
                });
            }
        }
    }
    (lines, count)
}
