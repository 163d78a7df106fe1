//! What a user wants to know of a trace at first.

mod info;
mod lifetimes;
pub(crate) mod render;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use et_names::SiteId;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

pub use info::{Sizes, info, sizes, text_info};
pub use lifetimes::{LifetimeLine, LifetimesPart};
pub(crate) use render::counted;
pub use render::render;

use crate::file::dynamic::DynamicCounts;
use crate::file::format::{Problem, class_flags};
use crate::file::progress::Stopped;
use crate::record::{AllocKind, Record};
use crate::recover::RECOVERED;
use crate::resolve::{Anomalies, Lost, Outcome};
use crate::source::{Deaths, Reading, Source, SourceError};
use crate::text::TextNames;
use crate::trace::{Thread, Trace};
use crate::types::{TypeId, for_people};

/// Threads from here up are stacks of virtual threads.
const FIRST_CONTINUATION: u32 = 1 << 31;

/// Objects and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Amount {
    pub objects: u64,
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

/// Objects of one class.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct ClassLine {
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(flatten)]
    pub amount: Amount,
    /// The same objects by the letters of their records.
    pub kinds: BTreeMap<char, u64>,
}

/// Objects of one site.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct SiteLine {
    pub site: String,
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(flatten)]
    pub amount: Amount,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
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

/// A collection.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct GcLine {
    pub start_seconds: f64,
    pub pause_seconds: f64,
    pub heap_used_bytes: u64,
    pub heap_committed_bytes: u64,
}

/// Classes without hooks.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct NotInstrumented {
    pub classes: usize,
    /// Of these, classes made at run time (lambdas, proxies …).
    pub hidden: usize,
    /// Those with the most objects first.
    pub top: Vec<ClassLine>,
}

/// A method that ran without some of its hooks.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct ShortfallLine {
    pub method: String,
    pub hooks: String,
    pub why: String,
}

/// The program.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Program {
    pub command: String,
    pub pid: u32,
    pub jvm: String,
    pub java_home: String,
    pub id_scheme: String,
    pub tool: String,
    pub start_unix_millis: u64,
    pub options: BTreeMap<String, String>,
}

/// All of it; `--json` prints this.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Summary {
    pub trace: String,
    pub trace_bytes: u64,
    pub program: Program,
    /// Of the traced run; if the trace is cut off, up to the last sign of life, as far as there was one.
    pub seconds: Option<f64>,
    pub complete: bool,
    /// It was cut off, and `et-trace recover` gave it an end.
    pub recovered: bool,
    /// Where it is cut off.
    pub cut_off: Option<String>,
    /// Why tracing stopped before the program did.
    pub stopped: Option<Stopped>,
    /// By letter, and `total`.
    pub records: BTreeMap<String, u64>,
    pub ticks: u64,
    pub bytes_per_record: f64,
    /// Bytes of events before they were packed; 0 if that is not known.
    pub event_bytes: u64,
    /// When they were packed, but not compressed yet.
    pub packed_event_bytes: u64,
    /// What the thread that wrote the trace took of a processor, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_cpu_seconds: Option<f64>,
    /// What the classes have hooks for.
    pub events: Vec<&'static str>,
    /// Objects made while tracing was on.
    pub allocated: Amount,
    /// By letter.
    pub kinds: BTreeMap<String, Amount>,
    pub class_count: usize,
    pub classes: Vec<ClassLine>,
    pub site_count: usize,
    pub sites_by_bytes: Vec<SiteLine>,
    pub sites_by_objects: Vec<SiteLine>,
    /// Objects made while tracing was on that no site is known of.
    pub without_site: Amount,
    /// Without `--deaths=none`, if they can be known.
    pub lifetimes: Option<LifetimesPart>,
    pub threads: Vec<ThreadLine>,
    pub gcs: Vec<GcLine>,
    /// What became of classes defined at run time; `None` if they were not looked at. Last known if the trace is
    /// cut off.
    pub dynamic: Option<DynamicCounts>,
    pub not_instrumented: NotInstrumented,
    pub shortfalls: Vec<ShortfallLine>,
    pub shortfall_count: usize,
    pub anomalies: Anomalies,
    pub problems: Vec<Problem>,
    pub overlaps: Vec<String>,
    pub lost: u64,
    pub lost_details: Lost,
    /// What is not as it should be in a text.
    pub warnings: Vec<String>,
}

/// Objects by the kind of their records, in the order of [`AllocKind::ALL`].
type KindCounts = [u64; AllocKind::ALL.len()];

fn by_letter(counts: &KindCounts) -> BTreeMap<char, u64> {
    let letters = AllocKind::ALL.iter().map(|kind| kind.letter());
    letters.zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}

/// What the records add up to.
#[derive(Debug, Default)]
struct Tally {
    by_type: FxHashMap<TypeId, (Amount, KindCounts)>,
    by_site: FxHashMap<SiteId, (TypeId, Amount)>,
    without_site: Amount,
    kinds: [Amount; 5],
    threads: FxHashMap<u32, (u64, Amount)>,
    /// Records of one thread come in runs: it is looked up once a run.
    run: (u32, u64, Amount),
}

impl Tally {
    fn record(&mut self, record: &Record) {
        // Whose the death of an object is does not make it work of that thread.
        if matches!(record, Record::Death { .. }) {
            return;
        }
        let thread = record.thread().0;
        if thread != self.run.0 {
            close_run(&mut self.threads, self.run);
            self.run = (thread, 0, Amount::default());
        }
        self.run.1 += 1;
        let Record::Alloc(alloc) = record else { return };
        self.kinds[record.letter_index()].add(alloc.size);
        if alloc.kind == AllocKind::Initial {
            return;
        }
        let (amount, kinds) = self.by_type.entry(alloc.ty).or_default();
        amount.add(alloc.size);
        kinds[record.letter_index()] += 1;
        self.run.2.add(alloc.size);
        if alloc.site.0 == 0 {
            self.without_site.add(alloc.size);
        } else {
            self.by_site.entry(alloc.site).or_insert((alloc.ty, Amount::default())).1.add(alloc.size);
        }
    }

    fn allocated(&self) -> Amount {
        let mut all = Amount::default();
        for (kind, amount) in AllocKind::ALL.iter().zip(&self.kinds) {
            if *kind != AllocKind::Initial {
                all.objects += amount.objects;
                all.bytes += amount.bytes;
            }
        }
        all
    }
}

fn site_text(source: &Source, site: SiteId) -> String {
    match source {
        Source::Trace(trace) => trace.names.site_text(site),
        Source::Text(text) => text
            .names()
            .and_then(|names| names.site_text(site.0.into()))
            .unwrap_or_else(|| format!("site {:x}", site.0)),
    }
}

/// Reads a whole trace; lists are cut to `top` entries.
pub fn summarize(source: &Source, reading: Reading, top: usize) -> Result<Summary, SourceError> {
    let mut tally = Tally::default();
    let mut lifetimes = (source.deaths(reading.deaths) != Deaths::None).then(lifetimes::LifetimesTally::default);
    let names = match source {
        Source::Trace(trace) => Some(&trace.names),
        Source::Text(_) => None,
    };
    let mut ran = vec![false; names.map_or(0, |names| names.counts().0)];
    let ending = source.for_each(reading, |record, at| {
        tally.record(record);
        if let Some(lifetimes) = &mut lifetimes {
            lifetimes.record(record, at.tick);
        }
        if let (Record::Entry { method, .. }, Some(names)) = (record, names)
            && let Some(index) = names.method_index(*method)
        {
            ran[index] = true;
        }
        ControlFlow::Continue(())
    })?;
    close_run(&mut tally.threads, tally.run);

    let types = match source {
        Source::Trace(trace) => &trace.types,
        Source::Text(_) => &ending.text_types,
    };
    let type_text = |ty: TypeId| for_people(types.descriptor(ty));
    // What a site makes; the types that it was seen to make say the same of all but inner arrays.
    let made_at = |site: SiteId, seen: TypeId| match source {
        Source::Trace(trace) => type_text(trace.names.site_type(site, 0).unwrap_or(TypeId::UNKNOWN)),
        Source::Text(text) => {
            let known = text.names().and_then(|names: &TextNames| names.site_type(site.0.into()));
            known.map_or_else(|| type_text(seen), for_people)
        }
    };
    let site_lines = |key: fn(&Amount) -> (u64, u64)| -> Vec<SiteLine> {
        let amounts = tally.by_site.iter().map(|(&site, &(ty, amount))| ((site, ty), amount));
        let line = |((site, ty), amount)| SiteLine { site: site_text(source, site), ty: made_at(site, ty), amount };
        largest(amounts, top, key, |&(site, _)| site.0.to_string()).into_iter().map(line).collect()
    };
    let classes = largest(
        tally.by_type.iter().map(|(&ty, &(amount, _))| (ty, amount)),
        top,
        |amount| (amount.bytes, amount.objects),
        |&ty| type_text(ty),
    );
    let outcome = &ending.outcome;
    let totals = &outcome.totals;
    let mut records: BTreeMap<String, u64> = totals.iter().map(|(letter, n)| (letter.to_string(), n)).collect();
    records.insert("total".into(), totals.sum());
    let mut summary = Summary {
        trace: source.path().display().to_string(),
        trace_bytes: 0,
        program: Program::default(),
        seconds: None,
        complete: true,
        recovered: false,
        cut_off: None,
        stopped: None,
        records,
        ticks: totals.of('M') + totals.of('E') + totals.of('X'),
        bytes_per_record: 0.0,
        event_bytes: 0,
        packed_event_bytes: 0,
        writer_cpu_seconds: None,
        events: source.events().names().collect(),
        allocated: tally.allocated(),
        kinds: AllocKind::ALL
            .iter()
            .zip(tally.kinds)
            .map(|(kind, amount)| (kind.letter().to_string(), amount))
            .collect(),
        class_count: tally.by_type.len(),
        classes: classes
            .into_iter()
            .map(|(ty, amount)| ClassLine { ty: type_text(ty), amount, kinds: by_letter(&tally.by_type[&ty].1) })
            .collect(),
        site_count: tally.by_site.len(),
        sites_by_bytes: site_lines(|amount| (amount.bytes, amount.objects)),
        sites_by_objects: site_lines(|amount| (amount.objects, amount.bytes)),
        without_site: tally.without_site,
        lifetimes: lifetimes.map(|tally| tally.finish(top, type_text, |site| site_text(source, site))),
        threads: Vec::new(),
        gcs: Vec::new(),
        dynamic: None,
        not_instrumented: NotInstrumented::default(),
        shortfalls: Vec::new(),
        shortfall_count: 0,
        anomalies: outcome.anomalies.clone(),
        problems: Vec::new(),
        overlaps: Vec::new(),
        lost: outcome.lost.total(),
        lost_details: outcome.lost,
        warnings: ending.warnings.clone(),
    };
    match source {
        Source::Trace(trace) => add_trace(&mut summary, trace, &tally, &ran, outcome, top),
        Source::Text(text) => {
            summary.trace_bytes = text.size();
            summary.threads = thread_lines(&[], &tally.threads, &outcome.cut_off);
        }
    }
    summary.bytes_per_record = summary.trace_bytes as f64 / totals.sum().max(1) as f64;
    Ok(summary)
}

/// What only the runtime's file tells.
fn add_trace(summary: &mut Summary, trace: &Trace, tally: &Tally, ran: &[bool], outcome: &Outcome, top: usize) {
    let file = &trace.file;
    let meta = file.meta();
    (summary.shortfalls, summary.shortfall_count) = shortfalls(trace, ran, top);
    summary.trace_bytes = file.size();
    summary.event_bytes = file.end().map_or(0, |end| end.event_bytes);
    summary.packed_event_bytes = file.packed_event_bytes();
    summary.writer_cpu_seconds = file.end().and_then(|end| end.writer_cpu_seconds);
    summary.program = Program {
        command: meta.command.clone(),
        pid: meta.pid,
        jvm: format!("{} {}", meta.jvm.name, meta.jvm.version).trim().to_owned(),
        java_home: meta.java_home.clone(),
        id_scheme: meta.id_scheme.clone(),
        tool: meta.tool.clone(),
        start_unix_millis: meta.start_unix_millis,
        options: meta.options.clone(),
    };
    let (end, last) = (file.end(), file.last_known());
    summary.seconds = end.map(|end| end.seconds).or(last.map(|last| last.seconds));
    summary.stopped = last.and_then(|last| last.stopped.clone());
    summary.complete = file.cut_off().is_none();
    summary.recovered = end.is_some_and(|end| end.reason == RECOVERED);
    summary.cut_off = file.cut_off().map(ToString::to_string);
    summary.threads = thread_lines(&trace.threads, &tally.threads, &outcome.cut_off);
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
    summary.dynamic = end.and_then(|end| end.dynamic).or(last.and_then(|last| last.dynamic));
    summary.not_instrumented = not_instrumented(trace, &tally.by_type, top);
    summary.problems.clone_from(&trace.problems);
    summary.overlaps =
        trace.names.overlaps().iter().map(|overlap| format!("{} and {}", overlap.kept, overlap.shadowed)).collect();
}

fn close_run(threads: &mut FxHashMap<u32, (u64, Amount)>, run: (u32, u64, Amount)) {
    let (thread, records, allocated) = run;
    if records > 0 {
        let entry = threads.entry(thread).or_default();
        entry.0 += records;
        entry.1.objects += allocated.objects;
        entry.1.bytes += allocated.bytes;
    }
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

fn thread_lines(
    threads: &[Thread],
    counts: &FxHashMap<u32, (u64, Amount)>,
    cut_off: &[crate::resolve::CutOffThread],
) -> Vec<ThreadLine> {
    let frames_left: FxHashMap<u32, usize> = cut_off.iter().map(|stack| (stack.thread.0, stack.frames)).collect();
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

fn shortfalls(trace: &Trace, ran: &[bool], top: usize) -> (Vec<ShortfallLine>, usize) {
    let mut lines = Vec::new();
    let mut count = 0;
    for table in trace.names.tables() {
        for short in &table.shortfalls {
            let method = table.method_id(short.method);
            if !trace.names.method_index(method).is_some_and(|index| ran[index]) {
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
