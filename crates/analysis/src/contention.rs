//! Which monitors threads had to wait for, where, and which threads owned them (`-Det.monitors=on`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use et_names::units::{counted, number, seconds};
use et_reader::Trace;
use et_reader::blocked::{self, Blocked, Cause, site};
use et_reader::types::for_people;

use crate::table::table;

/// How often threads did not go on, and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stops {
    pub count: u64,
    pub seconds: f64,
    pub longest: f64,
}

impl Stops {
    fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
        self.longest = self.longest.max(seconds);
    }
}

/// At monitors that another thread had, and in `wait`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub contended: Stops,
    pub waits: Stops,
}

impl Times {
    fn add(&mut self, cause: Cause, seconds: f64) {
        match cause {
            Cause::Contention { .. } => self.contended.add(seconds),
            Cause::Wait { .. } => self.waits.add(seconds),
        }
    }
}

/// Monitors of objects of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassLine {
    pub class: String,
    #[serde(flatten)]
    pub times: Times,
}

/// Blocked time by place in the code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteLine {
    /// Display name: `com.acme.Shop.sell:12`.
    pub site: String,
    pub class: String,
    #[serde(flatten)]
    pub times: Times,
}

/// Blocked time by thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLine {
    pub id: u32,
    pub name: String,
    #[serde(flatten)]
    pub times: Times,
    /// How long others waited for monitors that it owned.
    pub held_up: Stops,
}

/// A thread that had monitors of a class which another wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnerLine {
    pub class: String,
    pub owner: String,
    pub waiter: String,
    pub contended: Stops,
}

/// One of the longest intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LongLine {
    /// Seconds since the trace began.
    pub begin: f64,
    pub seconds: f64,
    /// In `wait`, not at a monitor that another thread had.
    pub is_wait: bool,
    pub class: String,
    /// The id that the object has in events.
    pub object: u32,
    pub site: String,
    pub thread: String,
    /// The owner of the monitor, if known.
    pub owner: Option<String>,
    /// The wait ended because of its timeout.
    pub is_timed_out: bool,
    /// It did not go on before the trace ended.
    pub is_open: bool,
}

/// All results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contention {
    pub times: Times,
    pub timed_out: u64,
    /// Did not go on before the trace ended.
    pub open: u64,
    pub class_count: usize,
    pub site_count: usize,
    /// Those with the longest contention first, then those with the longest waits.
    pub classes: Vec<ClassLine>,
    pub sites: Vec<SiteLine>,
    pub threads: Vec<ThreadLine>,
    pub owners: Vec<OwnerLine>,
    pub longest: Vec<LongLine>,
}

/// Analyses a trace; `None` if monitors were not recorded.
pub fn contention(trace: &Trace, top: usize) -> Option<Contention> {
    let is_asked_for = trace.file.meta().options.get("monitors").is_some_and(|value| value == "on");
    (is_asked_for || !trace.monitors.is_empty()).then(|| of(trace, top))
}

/// Display name of a thread.
pub fn thread(trace: &Trace, index: u32) -> String {
    match trace.thread_name(index) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => format!("thread {index:x}"),
    }
}

/// When the trace ended, as far as is known, in nanoseconds since it began.
pub fn end_nanos(trace: &Trace) -> u64 {
    let seconds = trace.file.end().map(|end| end.seconds).or(trace.file.last_known().map(|last| last.seconds));
    let last = trace.monitors.iter().map(|record| record.nanos).max().unwrap_or_default();
    last.max(seconds.map_or(0, |seconds| (seconds * 1e9) as u64))
}

fn of(trace: &Trace, top: usize) -> Contention {
    let all = blocked::all(&trace.monitors).all;
    let end = end_nanos(trace);
    let mut found = Contention::default();
    let mut classes: BTreeMap<&str, Times> = BTreeMap::new();
    let mut sites: BTreeMap<(String, &str), Times> = BTreeMap::new();
    let mut threads: BTreeMap<u32, (Times, Stops)> = BTreeMap::new();
    let mut owners: BTreeMap<(&str, u32, u32), Stops> = BTreeMap::new();
    for blocked in &all {
        let seconds = blocked.nanos(end) as f64 / 1e9;
        let class = blocked.place.monitor_class.as_str();
        found.times.add(blocked.cause, seconds);
        found.open += u64::from(blocked.end_nanos.is_none());
        classes.entry(class).or_default().add(blocked.cause, seconds);
        sites.entry((site(&blocked.place), class)).or_default().add(blocked.cause, seconds);
        threads.entry(blocked.thread).or_default().0.add(blocked.cause, seconds);
        match blocked.cause {
            Cause::Wait { is_timed_out, .. } => found.timed_out += u64::from(is_timed_out),
            Cause::Contention { owner: 0 } => {}
            Cause::Contention { owner } => {
                threads.entry(owner).or_default().1.add(seconds);
                owners.entry((class, owner, blocked.thread)).or_default().add(seconds);
            }
        }
    }
    (found.class_count, found.site_count) = (classes.len(), sites.len());
    let class = |(class, times): (&str, Times)| ClassLine { class: for_people(class), times };
    found.classes = largest(classes.into_iter().map(class), |line| key(line.times), top);
    let site_line =
        |((site, class), times): ((String, &str), Times)| SiteLine { site, class: for_people(class), times };
    found.sites = largest(sites.into_iter().map(site_line), |line| key(line.times), top);
    let thread_line = |(id, (times, held_up))| ThreadLine { id, name: thread(trace, id), times, held_up };
    let threads = threads.into_iter().map(thread_line);
    found.threads =
        largest(threads, |line| (line.times.contended.seconds + line.held_up.seconds, key(line.times).1), top);
    let owner = |((class, owner, waiter), contended): ((&str, u32, u32), Stops)| OwnerLine {
        class: for_people(class),
        owner: thread(trace, owner),
        waiter: thread(trace, waiter),
        contended,
    };
    found.owners = largest(owners.into_iter().map(owner), |line| (line.contended.seconds, 0.0), top);
    found.longest = longest(trace, &all, end, top);
    found
}

fn key(times: Times) -> (f64, f64) {
    (times.contended.seconds, times.waits.seconds)
}

/// The first of them, largest first; equal ones stay in their order.
fn largest<T>(lines: impl Iterator<Item = T>, key: impl Fn(&T) -> (f64, f64), top: usize) -> Vec<T> {
    let mut lines: Vec<T> = lines.collect();
    lines.sort_by(|a, b| {
        let ((a, a_less), (b, b_less)) = (key(a), key(b));
        b.total_cmp(&a).then(b_less.total_cmp(&a_less))
    });
    lines.truncate(top);
    lines
}

fn longest(trace: &Trace, all: &[Blocked], end: u64, top: usize) -> Vec<LongLine> {
    let mut order: Vec<&Blocked> = all.iter().collect();
    // Idle threads wait for a long time, so contention comes first.
    order.sort_by_key(|it| (matches!(it.cause, Cause::Wait { .. }), Reverse(it.nanos(end)), it.begin));
    let contended = order.iter().take_while(|it| matches!(it.cause, Cause::Contention { .. })).count();
    let waits = order[contended..].iter().take(top);
    let shown = order[..contended].iter().take(top).chain(waits);
    shown
        .map(|it| LongLine {
            begin: it.begin_nanos as f64 / 1e9,
            seconds: it.nanos(end) as f64 / 1e9,
            is_wait: matches!(it.cause, Cause::Wait { .. }),
            class: for_people(&it.place.monitor_class),
            object: it.object.0,
            site: site(&it.place),
            thread: thread(trace, it.thread),
            owner: match it.cause {
                Cause::Contention { owner } if owner != 0 => Some(thread(trace, owner)),
                _ => None,
            },
            is_timed_out: matches!(it.cause, Cause::Wait { is_timed_out: true, .. }),
            is_open: it.end_nanos.is_none(),
        })
        .collect()
}

impl Contention {
    /// Truncates all lists to `top` entries.
    pub fn cut(&mut self, top: usize) {
        self.classes.truncate(top);
        self.sites.truncate(top);
        self.threads.truncate(top);
        self.owners.truncate(top);
        let (waits, mut contended): (Vec<_>, Vec<_>) = self.longest.drain(..).partition(|line| line.is_wait);
        contended.truncate(top);
        contended.extend(waits.into_iter().take(top));
        self.longest = contended;
    }

    /// Summary in one line.
    pub fn line(&self) -> String {
        let Times { contended, waits } = self.times;
        let mut line = format!(
            "Monitors: entered late {}, {} in all, the longest {}; {}, {} in all",
            times(contended.count),
            seconds(contended.seconds),
            seconds(contended.longest),
            counted(waits.count, "wait"),
            seconds(waits.seconds)
        );
        if self.timed_out > 0 {
            let _ = write!(line, ", {} to the end of their time", number(self.timed_out));
        }
        if self.open > 0 {
            let _ = write!(line, "; {} not over when the trace ended", number(self.open));
        }
        line
    }

    /// Renders the results as tables.
    pub fn render(&self, out: &mut String) {
        let _ = writeln!(out, "\n{}", self.line());
        let row = |times: Times, rest: Vec<String>| {
            let Times { contended, waits } = times;
            let mut row = vec![number(contended.count), seconds(contended.seconds), seconds(contended.longest)];
            row.extend([number(waits.count), seconds(waits.seconds)]);
            row.extend(rest);
            row
        };
        let mut show = |title: &str, last: &[&str], rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                let head = [&["late", "in all", "longest", "waits", "in all"], last].concat();
                let _ = writeln!(out, "\n{title}");
                table(out, 5, &head, &rows);
            }
        };
        let classes = self.classes.iter().map(|line| row(line.times, vec![line.class.clone()]));
        show("Monitors by class", &["class"], classes.collect());
        let sites = self.sites.iter().map(|line| row(line.times, vec![line.class.clone(), line.site.clone()]));
        show("Monitors by site", &["class", "site"], sites.collect());
        let threads =
            self.threads.iter().map(|line| row(line.times, vec![seconds(line.held_up.seconds), line.name.clone()]));
        show("Monitors by thread", &["held up others", "thread"], threads.collect());
        let owners: Vec<Vec<String>> = self
            .owners
            .iter()
            .map(|line| {
                let Stops { count, seconds: sum, longest } = line.contended;
                let numbers = [number(count), seconds(sum), seconds(longest)];
                numbers.into_iter().chain([line.class.clone(), line.owner.clone(), line.waiter.clone()]).collect()
            })
            .collect();
        if !owners.is_empty() {
            let _ = writeln!(out, "\nMonitor owners");
            table(out, 3, &["times", "in all", "longest", "class", "held by", "wanted by"], &owners);
        }
        let longest: Vec<Vec<String>> = self
            .longest
            .iter()
            .map(|line| {
                let what = match (&line.owner, line.is_wait) {
                    (_, true) => "wait".to_owned(),
                    (Some(owner), false) => format!("held by {owner}"),
                    (None, false) => "held by an unknown thread".to_owned(),
                };
                let open = if line.is_open { " (not over)" } else { "" };
                let object = format!("{}@{:x}", line.class, line.object);
                let (long, begin) = (format!("{}{open}", seconds(line.seconds)), format!("{:.3}", line.begin));
                vec![long, begin, line.thread.clone(), object, what, line.site.clone()]
            })
            .collect();
        if !longest.is_empty() {
            let _ = writeln!(out, "\nLongest at monitors");
            table(out, 2, &["", "began at (s)", "thread", "monitor", "", "site"], &longest);
        }
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", number(count)) }
}

#[cfg(test)]
mod tests {
    use et_format::event::{ObjectHash, Ticket};
    use et_format::{MonitorEvent, MonitorPlace, MonitorRecord};
    use et_reader::TraceFile;
    use et_reader::testing::TraceBuilder;

    use super::*;

    fn trace(records: &[MonitorRecord]) -> Trace {
        let mut builder = TraceBuilder::new();
        builder.first_thread(1, "main", Vec::new()).first_thread(2, "worker", Vec::new());
        builder.monitors(records);
        Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap()
    }

    fn record(millis: u64, thread: u32, what: MonitorEvent) -> MonitorRecord {
        MonitorRecord { ticket: Ticket(millis), nanos: millis * 1_000_000, thread, object: ObjectHash(0xca), what }
    }

    fn place(method: &str, line: u32) -> MonitorPlace {
        let (monitor_class, class) = ("Lshop/Till;".into(), "Lshop/Main;".into());
        MonitorPlace { monitor_class, class, method: method.into(), line }
    }

    #[test]
    fn waiters_and_owners() {
        let enter = |owner, line| MonitorEvent::Enter { owner, place: place("pay", line) };
        let wait = MonitorEvent::Wait { timeout_millis: 50, place: place("idle", 9) };
        let trace = trace(&[
            record(100, 2, enter(1, 5)),
            record(140, 2, MonitorEvent::Entered),
            record(150, 2, wait),
            record(201, 2, MonitorEvent::Waited { is_timed_out: true }),
            record(300, 1, enter(2, 7)),
            record(310, 1, MonitorEvent::Entered),
            // It never gets it: the trace ends after 1.5 s.
            record(400, 1, enter(0, 7)),
        ]);
        let found = contention(&trace, 10).unwrap();
        let mut text = String::new();
        found.render(&mut text);
        insta::assert_snapshot!(text);
        let mut cut = found.clone();
        cut.cut(1);
        assert_eq!((cut.longest.len(), cut.sites.len()), (2, 1));
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Contention>(&json).unwrap(), found);
    }

    #[test]
    fn traces_without_events_differ_from_those_with_none() {
        assert_eq!(contention(&trace(&[]), 5), None);
    }
}
