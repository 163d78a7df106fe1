//! What a user wants to know of a trace at first.

mod info;
mod render;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use et_names::SiteId;
use rustc_hash::FxHashMap;
use serde::Serialize;

pub use info::info;
pub(crate) use render::counted;
pub use render::render;

use crate::file::ReadError;
use crate::file::format::{Problem, class_flags};
use crate::record::{AllocKind, Record};
use crate::resolve::{Anomalies, Lost};
use crate::trace::Trace;
use crate::types::{TypeId, for_people};

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
#[derive(Clone, Debug, Serialize)]
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
    /// Of the traced run; `None` if the trace is cut off.
    pub seconds: Option<f64>,
    pub complete: bool,
    /// Where it is cut off.
    pub cut_off: Option<String>,
    /// By letter, and `total`.
    pub records: BTreeMap<String, u64>,
    pub ticks: u64,
    pub bytes_per_record: f64,
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
    pub threads: Vec<ThreadLine>,
    pub gcs: Vec<GcLine>,
    pub not_instrumented: NotInstrumented,
    pub shortfalls: Vec<ShortfallLine>,
    pub shortfall_count: usize,
    pub anomalies: Anomalies,
    pub problems: Vec<Problem>,
    pub overlaps: Vec<String>,
    pub lost: u64,
    pub lost_details: Lost,
}

/// Reads a whole trace; lists are cut to `top` entries.
pub fn summarize(trace: &Trace, top: usize) -> Result<Summary, ReadError> {
    let (method_count, site_count, ..) = trace.names.counts();
    let mut by_type = vec![Amount::default(); trace.types.len()];
    let mut kinds_by_type = vec![[0u64; AllocKind::ALL.len()]; trace.types.len()];
    let mut by_site = vec![Amount::default(); site_count];
    let mut site_ids: Vec<SiteId> = vec![SiteId(0); site_count];
    let mut without_site = Amount::default();
    let mut kinds = [Amount::default(); 5];
    let mut ran = vec![false; method_count];
    let mut threads: FxHashMap<u32, (u64, Amount)> = FxHashMap::default();
    // Records of one thread come in runs: look the thread up once a run.
    let mut run = (u32::MAX, 0u64, Amount::default());
    let outcome = trace.for_each(|record, _| {
        let thread = record.thread().0;
        if thread != run.0 {
            close_run(&mut threads, run);
            run = (thread, 0, Amount::default());
        }
        run.1 += 1;
        match record {
            Record::Alloc(alloc) => {
                kinds[record.letter_index()].add(alloc.size);
                if alloc.kind != AllocKind::Initial {
                    by_type[alloc.ty.0 as usize].add(alloc.size);
                    kinds_by_type[alloc.ty.0 as usize][record.letter_index()] += 1;
                    run.2.add(alloc.size);
                    match trace.names.site_index(alloc.site).filter(|_| alloc.site.0 != 0) {
                        Some(index) => {
                            by_site[index].add(alloc.size);
                            site_ids[index] = alloc.site;
                        }
                        None => without_site.add(alloc.size),
                    }
                }
            }
            Record::Entry { method, .. } => {
                if let Some(index) = trace.names.method_index(*method) {
                    ran[index] = true;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    close_run(&mut threads, run);

    let mut allocated = Amount::default();
    for (kind, amount) in AllocKind::ALL.iter().zip(&kinds) {
        if *kind != AllocKind::Initial {
            allocated.objects += amount.objects;
            allocated.bytes += amount.bytes;
        }
    }
    let type_text = |ty: usize| for_people(trace.types.descriptor(TypeId(ty as u32)));
    let class_lines = |order: Vec<usize>| -> Vec<ClassLine> {
        let line =
            |ty: usize| ClassLine { ty: type_text(ty), amount: by_type[ty], kinds: by_letter(&kinds_by_type[ty]) };
        order.into_iter().map(line).collect()
    };
    let site_lines = |order: Vec<usize>| -> Vec<SiteLine> {
        let line = |index: usize| {
            let id = site_ids[index];
            let ty = trace.names.site_type(id, 0).unwrap_or(TypeId::UNKNOWN);
            SiteLine { site: trace.names.site_text(id), ty: type_text(ty.0 as usize), amount: by_site[index] }
        };
        order.into_iter().map(line).collect()
    };
    let (shortfalls, shortfall_count) = shortfalls(trace, &ran, top);
    let file = &trace.file;
    let meta = file.meta();
    let totals = &outcome.totals;
    let mut records: BTreeMap<String, u64> = totals.iter().map(|(letter, n)| (letter.to_string(), n)).collect();
    records.insert("total".into(), totals.sum());
    Ok(Summary {
        trace: file.path().display().to_string(),
        trace_bytes: file.size(),
        program: Program {
            command: meta.command.clone(),
            pid: meta.pid,
            jvm: format!("{} {}", meta.jvm.name, meta.jvm.version).trim().to_owned(),
            java_home: meta.java_home.clone(),
            id_scheme: meta.id_scheme.clone(),
            tool: meta.tool.clone(),
            start_unix_millis: meta.start_unix_millis,
            options: meta.options.clone(),
        },
        seconds: file.end().map(|end| end.seconds),
        complete: file.cut_off().is_none(),
        cut_off: file.cut_off().map(ToString::to_string),
        records,
        ticks: totals.of('M') + totals.of('E') + totals.of('X'),
        bytes_per_record: file.size() as f64 / totals.sum().max(1) as f64,
        allocated,
        kinds: AllocKind::ALL.iter().zip(kinds).map(|(kind, amount)| (kind.letter().to_string(), amount)).collect(),
        class_count: by_type.iter().filter(|amount| amount.objects > 0).count(),
        classes: class_lines(largest(&by_type, top, |amount| (amount.bytes, amount.objects))),
        site_count: by_site.iter().filter(|amount| amount.objects > 0).count(),
        sites_by_bytes: site_lines(largest(&by_site, top, |amount| (amount.bytes, amount.objects))),
        sites_by_objects: site_lines(largest(&by_site, top, |amount| (amount.objects, amount.bytes))),
        without_site,
        threads: thread_lines(trace, &threads, &outcome.cut_off),
        gcs: trace
            .gcs
            .iter()
            .map(|gc| GcLine {
                start_seconds: gc.start_nanos as f64 / 1e9,
                pause_seconds: gc.finish_nanos.saturating_sub(gc.start_nanos) as f64 / 1e9,
                heap_used_bytes: gc.heap_used,
                heap_committed_bytes: gc.heap_committed,
            })
            .collect(),
        not_instrumented: not_instrumented(trace, &by_type, &kinds_by_type, top),
        shortfalls,
        shortfall_count,
        anomalies: outcome.anomalies,
        problems: trace.problems.clone(),
        overlaps: trace
            .names
            .overlaps()
            .iter()
            .map(|overlap| format!("{} and {}", overlap.kept, overlap.shadowed))
            .collect(),
        lost: outcome.lost.total(),
        lost_details: outcome.lost,
    })
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

/// Indexes of the largest amounts, largest first; those without objects are left out.
fn largest(amounts: &[Amount], top: usize, key: impl Fn(&Amount) -> (u64, u64)) -> Vec<usize> {
    let mut order: Vec<usize> = (0..amounts.len()).filter(|&index| amounts[index].objects > 0).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(key(&amounts[index])), index));
    order.truncate(top);
    order
}

fn thread_lines(
    trace: &Trace,
    counts: &FxHashMap<u32, (u64, Amount)>,
    cut_off: &[crate::resolve::CutOffThread],
) -> Vec<ThreadLine> {
    let line = |id: u32, name: String, daemon: bool, ended: bool| {
        let (records, allocated) = counts.get(&id).copied().unwrap_or_default();
        let frames_left = cut_off.iter().find(|stack| stack.thread.0 == id).map_or(0, |stack| stack.frames);
        ThreadLine { id, name, daemon, ended, records, allocated, frames_left }
    };
    let mut lines: Vec<_> = trace
        .threads
        .iter()
        .map(|thread| line(thread.index, thread.name.clone(), thread.is_daemon, thread.end.is_some()))
        .collect();
    let mut others: Vec<u32> =
        counts.keys().copied().filter(|&id| id != 0 && lines.iter().all(|line| line.id != id)).collect();
    others.sort_unstable();
    lines.extend(others.into_iter().map(|id| line(id, "virtual thread".into(), true, true)));
    lines
}

/// The letters that occur.
fn by_letter(counts: &[u64; AllocKind::ALL.len()]) -> BTreeMap<char, u64> {
    let letters = AllocKind::ALL.iter().map(|kind| kind.letter());
    letters.zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}

fn not_instrumented(
    trace: &Trace,
    by_type: &[Amount],
    kinds_by_type: &[[u64; AllocKind::ALL.len()]],
    top: usize,
) -> NotInstrumented {
    let mut found = NotInstrumented::default();
    let mut lines = Vec::new();
    for class in trace.not_instrumented() {
        found.classes += 1;
        found.hidden += usize::from(class.record.flags & class_flags::HIDDEN != 0);
        let amount = by_type.get(class.ty.0 as usize).copied().unwrap_or_default();
        let kinds = kinds_by_type.get(class.ty.0 as usize).map(by_letter).unwrap_or_default();
        lines.push(ClassLine { ty: for_people(&class.record.signature), amount, kinds });
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
