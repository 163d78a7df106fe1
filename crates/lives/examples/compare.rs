//! Reads traces by blocks and record by record, and compares all rows. With `TIME` set, only reads by blocks.

use std::time::Instant;

use et_lives::{attach_passing, observe, observe_rows};
use et_reader::model::{ContextId, Contexts};
use et_reader::population::{Columns, Population};
use et_reader::record::Clock;
use et_reader::source::{Reading, Source, TraceSource};

fn path(contexts: &Contexts, context: ContextId) -> u64 {
    contexts
        .methods(context)
        .fold(17, |hash: u64, method| hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(method.0))
}

type Line = (String, u64, u64);

type Times = Vec<(u64, Option<u64>, Option<u64>)>;

fn lines(population: &Population) -> (Vec<(u64, Line)>, Times) {
    let (mut all, mut times) = (Vec::new(), Vec::new());
    for group in 0..population.groups.len() {
        let rows = population.groups.read(group, Columns::ALL).unwrap();
        for at in 0..rows.len {
            let line = format!(
                "{:x} ty {} {:?} size {} len {} site {} thread {} birth {} {} use {} death {:?} {:?} {:?} rec {:?} esc {:?} {:?} {:?}",
                rows.object[at].0,
                rows.class[at].0,
                rows.kind[at],
                rows.size[at],
                rows.length[at],
                rows.site[at].0,
                rows.thread[at].0,
                rows.birth_tick[at],
                rows.birth_bytes[at],
                rows.last_use_tick[at],
                rows.death_tick[at],
                rows.death_bytes[at],
                rows.death_thread[at],
                rows.death_record[at],
                rows.escaped_thread[at],
                rows.escaped_frame[at],
                rows.fate[at],
            );
            let (born, died) = (
                path(&population.contexts, rows.context[at]),
                rows.death_context[at].map_or(0, |c| path(&population.contexts, c)),
            );
            times.push((rows.number[at], rows.birth_nanos[at], rows.death_nanos[at]));
            all.push((rows.number[at], (line, born, died)));
        }
    }
    all.sort_unstable_by_key(|(number, _)| *number);
    times.sort_unstable_by_key(|(number, ..)| *number);
    (all, times)
}

#[derive(Default)]
struct Clearings {
    found: Vec<(u64, u64, u64)>,
    stores: u64,
}

impl et_reader::blocks::Rows for Clearings {
    fn row(&mut self, _row: &et_reader::blocks::LifeRow) {}
    fn clearing(&mut self, clearing: &et_reader::lifetimes::Known) {
        match clearing {
            et_reader::lifetimes::Known::Found {
                record: et_reader::record::Record::Update { old, origin, .. },
                after,
            } => {
                self.found.push((old.0, origin.0, *after));
            }
            _ => self.stores += 1,
        }
    }
}

fn compare_records(source: &Source, trace: &et_reader::Trace, knows: bool) {
    let (rows, new) = et_reader::blocks::read(trace, knows, || Ok(Clearings::default())).unwrap();
    let mut old = Vec::new();
    let mut threads = std::collections::BTreeMap::<u32, u64>::new();
    let mut ran = std::collections::BTreeSet::new();
    let ending = source
        .for_each(Reading::default(), |record, at| {
            if at.is_clearing {
                let [target, origin, _] = record.objects();
                old.push((target.0, origin.0));
            } else if !matches!(record, et_reader::record::Record::Death { .. }) {
                *threads.entry(record.thread().0).or_default() += 1;
                if let et_reader::record::Record::Entry { method, .. } = record {
                    ran.insert(method.0);
                }
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    let mut found: Vec<(u64, u64)> = rows.found.iter().map(|(old, origin, _)| (*old, *origin)).collect();
    found.sort_unstable();
    old.sort_unstable();
    let new_threads: std::collections::BTreeMap<u32, u64> = new.records.iter().map(|(a, b)| (*a, *b)).collect();
    let new_ran: std::collections::BTreeSet<u32> = new.ran.iter().map(|m| m.0).collect();
    let held = ending.cost.map(|cost| cost.held_by_stacks).unwrap_or_default();
    let mut outcome = ending.outcome.clone();
    outcome.kept = new.outcome.kept;
    println!(
        "  totals {} clearings {} ({} {}) threads {} ran {} held {} anomalies {} lost {} cut off {} extra {} late {:?}",
        outcome.totals == new.outcome.totals,
        found == old,
        found.len(),
        old.len(),
        threads == new_threads,
        ran == new_ran,
        held == new.held_by_stacks,
        outcome.anomalies == new.outcome.anomalies,
        outcome.lost == new.outcome.lost,
        outcome.cut_off == new.outcome.cut_off,
        outcome.extra_fields == new.outcome.extra_fields,
        new.late,
    );
    println!("  {:?}", new.cost);
    if outcome.totals != new.outcome.totals {
        println!("    {:?}\n    {:?}", new.outcome.totals, outcome.totals);
    }
    if outcome.anomalies != new.outcome.anomalies {
        println!(
            "    {:?}\n    {:?}",
            new.outcome.anomalies.iter().collect::<Vec<_>>(),
            outcome.anomalies.iter().collect::<Vec<_>>()
        );
    }
    if threads != new_threads {
        println!("    {new_threads:?}\n    {threads:?}");
    }
}

fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn main() {
    let time = std::env::var("TIME").is_ok();
    for path in std::env::args().skip(1) {
        let source = Source::open(path.as_ref(), None).unwrap();
        let Source::Trace(trace) = &source else { panic!("a text") };
        let knows = et_reader::deaths_unknown(trace.events).is_none();
        let mut by_blocks = TraceSource::open(path.as_ref()).unwrap();
        let table = attach_passing(&mut by_blocks, Clock::default());
        let by_blocks = Source::from(by_blocks);
        let (start, cpu_before) = (Instant::now(), cpu());
        let (new, new_observed) = observe_rows(&by_blocks, Some(&table), Reading::default()).unwrap();
        let records = new_observed.totals.sum();
        let (wall, used) = (start.elapsed().as_secs_f64(), cpu() - cpu_before);
        println!(
            "{path}: {records} records, {} objects, {wall:.2} s, {:.1} ns/record wall, {:.1} CPU",
            new.objects,
            wall / records as f64 * 1e9,
            used / records as f64 * 1e9
        );
        if time {
            continue;
        }
        compare_records(&source, trace, knows);
        let (start, cpu_before) = (Instant::now(), cpu());
        let (old, old_observed) = observe(&source, None, Reading::default(), |_, _| {}).unwrap();
        if old_observed != new_observed {
            println!("  observed {:?}\n  {:?}", new_observed.held_by_locals, old_observed.held_by_locals);
            let (new, old) = (&new_observed.usage, &old_observed.usage);
            println!("  usage is the same: {}", new == old);
        }
        println!(
            "  old: {:.2} s, {:.1} ns CPU",
            start.elapsed().as_secs_f64(),
            (cpu() - cpu_before) / records as f64 * 1e9
        );
        if old.survival != new.survival {
            println!("  walks {:?}\n  {:?}", new.survival, old.survival);
        }
        let ((new_lines, new_times), (old_lines, old_times)) = (lines(&new), lines(&old));
        let times = new_times.iter().zip(&old_times).filter(|(new, old)| new != old).count();
        let different: Vec<_> = new_lines.iter().zip(&old_lines).filter(|(new, old)| new != old).collect();
        println!(
            "  {} rows, {} by the other, {} differ, {times} in their times",
            new_lines.len(),
            old_lines.len(),
            different.len()
        );
        for ((number, new), (other, old)) in different.iter().take(6) {
            println!(
                "  {number} {other}\n    new {} {:x} {:x}\n    old {} {:x} {:x}",
                new.0, new.1, new.2, old.0, old.1, old.2
            );
        }
    }
}
