//! What survives collections, in traces that do not tell when objects die: how many collections objects survived, by class and
//! by site, and how much was there at each walk through the heap.

use std::cmp::Reverse;
use std::fmt::Write;
use std::ops::AddAssign;

use et_names::units::{bytes, counted, number, percent};
use et_reader::population::{Columns, Population, Rows};
use et_reader::record::AllocKind;
use et_reader::survival::{Fate, Survival};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::fold::add_all;
use crate::labels::Labels;
use crate::place::{Spot, by_place};
use crate::table::table;
use et_reader::amount::Amount;

/// Objects that survived that many collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SurvivedLine {
    /// Number of collections: from this,
    pub from: u32,
    /// to this.
    pub to: u32,
    #[serde(flatten)]
    pub amount: Amount,
}

/// What became of the objects of one class or site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SurvivorLine {
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub made: Amount,
    /// Those that survived at least one collection.
    pub survived: Amount,
    /// Those that were there in the middle of the walks, and at the last.
    pub in_the_middle: Amount,
    pub at_the_end: Amount,
}

/// What a walk found of the objects of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WalkLine {
    pub seconds: f64,
    pub walk_seconds: f64,
    /// Number of collections that were over.
    pub collections: u32,
    /// Bytes allocated so far.
    pub made_bytes: u64,
    /// What was there, including what had been there before tracing began.
    #[serde(flatten)]
    pub alive: Amount,
}

/// What survived, of the objects made while tracing was on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SurvivalPart {
    pub walks: Vec<WalkLine>,
    pub collections: u64,
    /// Collections behind which no walk came before the next, or at all.
    pub not_looked_at: u64,
    /// The share of the run's time that walks took, that at the end left out.
    pub walked_share: Option<f64>,
    /// Whether the last walk was at the end, and whether it found only what could be reached then.
    pub reaches_the_end: bool,
    pub is_exact_at_the_end: bool,
    /// By the number of collections that objects certainly survived: 0, 1, 2 to 3, 4 to 7 and so on.
    pub survived: Vec<SurvivedLine>,
    /// Those that survived at least one collection.
    pub at_least_one: Amount,
    /// What was there at the last walk.
    pub at_the_end: Amount,
    /// Objects that may have survived more, since not all collections were looked at.
    pub maybe_more: Amount,
    /// Objects of which walks say what does not fit, or may say it of another with the same id.
    pub uncertain: Amount,
    /// Objects after which no walk came.
    pub unknown: Amount,
    /// Those of which most bytes survived first.
    pub classes: Vec<SurvivorLine>,
    pub sites: Vec<SurvivorLine>,
}

/// Sums over objects of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    made: Amount,
    survived: Amount,
    middle: Amount,
    end: Amount,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.made += other.made;
        self.survived += other.survived;
        self.middle += other.middle;
        self.end += other.end;
    }
}

/// Sums over some rows, which have these [`columns`].
#[derive(Debug, Default)]
pub(crate) struct Sums {
    spots: FxHashMap<Spot, Sum>,
    /// By the logarithm of the number of collections, rounded down, plus 1; the first for none.
    survived: Vec<Amount>,
    /// By walk: what was first there then, and what was last there before it.
    came: Vec<Amount>,
    went: Vec<Amount>,
    maybe_more: Amount,
    uncertain: Amount,
    unknown: Amount,
}

/// What [`Sums`] need of each row.
pub(crate) fn columns() -> Columns {
    Spot::columns() | Columns::SIZE | Columns::FATE
}

fn bucket(survived: u32) -> usize {
    survived.checked_ilog2().map_or(0, |log| log as usize + 1)
}

fn add_at(amounts: &mut Vec<Amount>, at: usize, amount: Amount) {
    if amounts.len() <= at {
        amounts.resize(at + 1, Amount::default());
    }
    amounts[at] += amount;
}

impl Sums {
    /// Adds a row; `middle` is the walk in the middle.
    pub(crate) fn row(&mut self, rows: &Rows, at: usize, middle: u32) {
        let amount = Amount::of(rows, at);
        let fate = rows.fate[at];
        if let Some(Fate { first, seen: Some(seen), .. }) = fate {
            add_at(&mut self.came, first as usize, amount);
            add_at(&mut self.went, seen as usize + 1, amount);
        }
        if rows.kind[at] == AllocKind::Initial {
            return;
        }
        let sum = self.spots.entry(Spot::of(rows, at)).or_default();
        sum.made += amount;
        let Some(fate) = fate else {
            self.unknown += amount;
            return;
        };
        add_at(&mut self.survived, bucket(fate.survived), amount);
        if fate.survived > 0 {
            sum.survived += amount;
        }
        if fate.is_there_at(middle) {
            sum.middle += amount;
        }
        if fate.missed.is_none() {
            sum.end += amount;
        }
        if fate.survived_at_most > fate.survived {
            self.maybe_more += amount;
        }
        if fate.is_uncertain {
            self.uncertain += amount;
        }
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        add_all(&mut self.spots, other.spots);
        for (mine, others) in
            [(&mut self.survived, other.survived), (&mut self.came, other.came), (&mut self.went, other.went)]
        {
            others.into_iter().enumerate().for_each(|(at, amount)| add_at(mine, at, amount));
        }
        self.maybe_more += other.maybe_more;
        self.uncertain += other.uncertain;
        self.unknown += other.unknown;
        self
    }
}

/// The walk in the middle.
pub(crate) fn middle(survival: &Survival) -> u32 {
    (survival.walks().len() / 2) as u32
}

/// What survived, given the sums of all rows. `seconds` is the length of the run. Lists are cut to `top` entries.
pub(crate) fn survival(
    population: &Population,
    survival: &Survival,
    part: Sums,
    labels: Labels<'_>,
    seconds: Option<f64>,
    top: usize,
) -> SurvivalPart {
    let (mut classes, mut all): (FxHashMap<TypeId, Sum>, Sum) = Default::default();
    let places = by_place(part.spots, population, labels.naming(), |sum: &mut Sum, more| *sum += more);
    for (&(_, class), &sum) in &places {
        *classes.entry(class).or_default() += sum;
        all += sum;
    }
    let line = |ty: String, site: Option<String>, sum: Sum| {
        let Sum { made, survived, middle, end } = sum;
        SurvivorLine { ty, site, made, survived, in_the_middle: middle, at_the_end: end }
    };
    let classes = classes.into_iter().map(|(class, sum)| line(labels.class(class), None, sum)).collect();
    let sites = places.into_iter().map(|((place, class), sum)| {
        let site = labels.made_in(place);
        line(labels.class(class), Some(site), sum)
    });
    let walked: u64 = survival.walks().iter().filter(|w| !w.heap.at_the_end).map(|w| w.heap.duration.0).sum();
    let last = survival.walks().last().filter(|walk| walk.heap.at_the_end);
    SurvivalPart {
        walks: walks(survival, &part.came, &part.went),
        collections: survival.collections(),
        not_looked_at: survival.not_looked_at(),
        walked_share: seconds.filter(|seconds| *seconds > 0.0).map(|seconds| walked as f64 / 1e9 / seconds),
        reaches_the_end: last.is_some(),
        is_exact_at_the_end: last.is_some_and(|walk| walk.heap.is_exact),
        survived: (0..)
            .zip(part.survived)
            .filter(|(_, amount)| amount.objects > 0)
            .map(|(bucket, amount)| {
                let from = if bucket == 0 { 0 } else { 1 << (bucket - 1) };
                SurvivedLine { from, to: (from * 2).saturating_sub(1), amount }
            })
            .collect(),
        at_least_one: all.survived,
        at_the_end: all.end,
        maybe_more: part.maybe_more,
        uncertain: part.uncertain,
        unknown: part.unknown,
        classes: largest(classes, top),
        sites: largest(sites.collect(), top),
    }
}

fn largest(mut lines: Vec<SurvivorLine>, top: usize) -> Vec<SurvivorLine> {
    lines.retain(|line| line.survived.objects > 0 || line.at_the_end.objects > 0);
    lines.sort_by(|a, b| {
        let key = |line: &SurvivorLine| Reverse((line.survived.bytes, line.at_the_end.bytes, line.made.bytes));
        key(a).cmp(&key(b)).then_with(|| (&a.ty, &a.site).cmp(&(&b.ty, &b.site)))
    });
    lines.truncate(top);
    lines
}

fn walks(survival: &Survival, came: &[Amount], went: &[Amount]) -> Vec<WalkLine> {
    let mut alive = Amount::default();
    let mut line = |(at, walk): (usize, &et_reader::survival::Walk)| {
        alive += came.get(at).copied().unwrap_or_default();
        let gone = went.get(at).copied().unwrap_or_default();
        alive = Amount { objects: alive.objects - gone.objects, bytes: alive.bytes - gone.bytes };
        WalkLine {
            seconds: walk.heap.nanos.0 as f64 / 1e9,
            walk_seconds: walk.heap.duration.0 as f64 / 1e9,
            collections: walk.collections,
            made_bytes: walk.begin.bytes,
            alive,
        }
    };
    survival.walks().iter().enumerate().map(&mut line).collect()
}

impl SurvivedLine {
    /// `3`, `4 to 7`.
    pub fn text(&self) -> String {
        match self.to <= self.from {
            true => number(self.from.into()),
            false => format!("{} to {}", number(self.from.into()), number(self.to.into())),
        }
    }
}

impl SurvivalPart {
    /// Cuts lists to `top` entries.
    pub fn cut(&mut self, top: usize) {
        self.classes.truncate(top);
        self.sites.truncate(top);
    }

    /// When the last walk was.
    pub fn when_last(&self) -> &'static str {
        if self.reaches_the_end { "at the end" } else { "at the last walk through the heap" }
    }

    /// What the last walk found.
    pub fn last_walk(&self) -> &'static str {
        if self.reaches_the_end {
            "what is there at the end"
        } else {
            "what was there at the last walk through the heap"
        }
    }

    /// How often was looked, and what is not known for certain, in whole sentences.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let walks = counted(self.walks.len() as u64, "walk");
        let mut line = format!("{walks} through the heap, {}", counted(self.collections, "collection"));
        if self.not_looked_at > 0 {
            line += &format!(", {} of them not looked at", number(self.not_looked_at));
        }
        if let Some(share) = self.walked_share {
            line += &format!("; {:.1} % of the time", 100.0 * share);
        }
        notes.push(line);
        if !self.reaches_the_end {
            notes.push("no walk at the end: what was there then is not known".to_owned());
        } else if !self.is_exact_at_the_end {
            notes.push(
                "the collector freed nothing at the end: what was there then includes what could not be reached"
                    .to_owned(),
            );
        }
        for (amount, what) in [
            (self.maybe_more, "may have survived more collections than is known"),
            (self.uncertain, "are uncertain: walks contradict each other, or an id was given again"),
            (self.unknown, "are not judged: no walk came after them"),
        ] {
            if amount.objects > 0 {
                notes.push(format!("{} ({}) {what}", counted(amount.objects, "object"), bytes(amount.bytes)));
            }
        }
        notes
    }

    /// Bytes and objects of which it is known how many collections they survived.
    pub fn judged(&self) -> (u64, u64) {
        let amounts = self.survived.iter().map(|line| line.amount);
        amounts.fold((0, 0), |(bytes, objects), amount| (bytes + amount.bytes, objects + amount.objects))
    }

    /// By how many collections, as rows of a table.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let (all_bytes, all) = self.judged();
        let row = |line: &SurvivedLine| {
            let Amount { objects, bytes: size } = line.amount;
            vec![line.text(), bytes(size), percent(size, all_bytes), number(objects), percent(objects, all)]
        };
        self.survived.iter().map(row).collect()
    }

    /// The tables for `--long`.
    pub fn render(&self, out: &mut String) {
        let _ = writeln!(out, "\nCollections survived");
        table(out, 5, &["collections", "bytes", "", "objects", ""], &self.rows());
        for (title, lines) in [("Survived by class", &self.classes), ("Survived by site", &self.sites)] {
            let row = |line: &SurvivorLine| {
                let site = line.site.as_ref().map(|site| format!("  {site}")).unwrap_or_default();
                vec![
                    bytes(line.survived.bytes),
                    percent(line.survived.bytes, line.made.bytes),
                    number(line.survived.objects),
                    bytes(line.at_the_end.bytes),
                    bytes(line.in_the_middle.bytes),
                    format!("{}{site}", line.ty),
                ]
            };
            let rows: Vec<_> = lines.iter().map(row).collect();
            if !rows.is_empty() {
                let _ = writeln!(out, "\n{title}: at least one collection, share of what was made");
                table(out, 5, &["bytes", "", "objects", "at the end", "in the middle", ""], &rows);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use et_format::event::{Event, ObjectHash, Ticket};
    use et_format::{GcRecord, HeapWalk, Nanos};
    use et_names::SiteId;
    use et_reader::source::{Deaths, Reading, Source};
    use et_reader::testing::{ClassNamesExt, TraceBuilder, class, table};
    use et_reader::{Trace, TraceFile};

    use super::*;
    use crate::objects::{Query, Sort, objects, render};
    use crate::summary;
    use crate::testing::{report_of, summarize};

    fn reading() -> Reading {
        Reading { deaths: Deaths::None, ..Reading::default() }
    }
    const OBJECT: u32 = 0x10;
    const SHORT: u32 = 0x12;
    const LONG: u32 = 0x13;

    fn new(object: u32, class: u32) -> Event<'static> {
        Event::New { site: SiteId(0), object: ObjectHash(object), class: ObjectHash(class), known: false }
    }

    /// Ten objects of each class in each of three rounds; the long ones are kept, and after each round is a collection, and a
    /// walk after the first and the last.
    fn rounds() -> Source {
        let mut builder = TraceBuilder::new();
        builder.names(&table("jdk", 1, &[class("java/lang/Object", "", &["<init> ()V"])]));
        let app = [class("shop/Short", "java/lang/Object", &[]), class("shop/Long", "java/lang/Object", &[])];
        builder.names(&table("shop.jar", 5_000_000, &app.map(|class| class.with_fields(&[]))));
        builder.loaded_classes(&[
            (OBJECT, 16, "Ljava/lang/Object;"),
            (0x11, 0, "Ljava/lang/Class;"),
            (SHORT, 16, "Lshop/Short;"),
            (LONG, 32, "Lshop/Long;"),
        ]);
        builder.first_thread(1, "main", Vec::new());
        let mut kept = Vec::new();
        for round in 0..3_u32 {
            let (short, long) = (0x1000 + 10 * round, 0x2000 + 10 * round);
            let events: Vec<_> = (0..10).flat_map(|at| [new(short + at, SHORT), new(long + at, LONG)]).collect();
            let ticket = u64::from(10 * round + 1);
            builder.events(1, ticket, &events);
            kept.extend(long..long + 10);
            builder.gc(&GcRecord { start: Ticket(ticket + 2), finish: Ticket(ticket + 3), ..GcRecord::default() });
            if round != 1 {
                let walk = HeapWalk {
                    begin: Ticket(ticket + 4),
                    end: Ticket(ticket + 5),
                    nanos: Nanos(1_000_000_000),
                    duration: Nanos(1_000_000),
                    at_the_end: round == 2,
                    is_exact: round == 2,
                };
                builder.survivors(walk, &kept);
            }
        }
        Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap().into()
    }

    #[test]
    fn what_survived_is_summed_up() {
        let summary = summarize(&rounds(), reading(), 10).unwrap();
        let survival = summary.survival.as_ref().unwrap();
        let amount = |objects, bytes| Amount { objects, bytes };
        let lines: Vec<_> = survival.survived.iter().map(|line| (line.text(), line.amount)).collect();
        // The mirrors are made when their classes are loaded, before all else, and no walk has found them.
        let mirrors = summary.allocated.objects - 60;
        assert_eq!(lines[0].1.objects, 30 + mirrors);
        assert_eq!(lines[1], ("1".to_owned(), amount(10, 320)));
        assert_eq!(lines[2], ("2 to 3".to_owned(), amount(20, 640)));
        assert_eq!((survival.at_least_one, survival.at_the_end), (amount(30, 960), amount(30, 960)));
        assert_eq!((survival.collections, survival.not_looked_at), (3, 1));
        // Of the second round the short ones may have survived one.
        assert_eq!(survival.maybe_more.objects, 10);
        assert_eq!((survival.uncertain.objects, survival.unknown.objects), (0, 0));
        let alive: Vec<u64> = survival.walks.iter().map(|walk| walk.alive.bytes).collect();
        assert_eq!(alive, [320, 960]);
        let long = &survival.classes[0];
        assert_eq!((long.ty.as_str(), long.made, long.in_the_middle), ("shop.Long", amount(30, 960), amount(30, 960)));
        assert_eq!(survival.classes.len(), 1, "{:?}", survival.classes);
        let text = summary::render_long(&summary);
        for part in ["Collections survived", "960 B at the end", "2 walks through the heap, 3 collections, 1 of them"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn objects_are_listed_by_what_they_survived() {
        let source = rounds();
        let population = et_lives::births(&source, reading()).unwrap().0;
        let query = Query { survived: Some(2), sort: Sort::Survived, top: 25, ..Query::default() };
        let found = objects(&population, Labels::of(&source, &population), &query, None).unwrap();
        assert_eq!((found.found.objects, found.objects.len()), (20, 20));
        let survived = found.objects[0].survival.unwrap();
        assert_eq!((survived.collections, survived.at_most, survived.gone_by), (3, 3, None));
        assert!(render(&found).contains("collections"));
        let query = Query { class: Some("shop.Short".to_owned()), top: 25, ..query };
        let none = objects(&population, Labels::of(&source, &population), &query, None).unwrap();
        assert_eq!(none.found.objects, 0);
        let query = Query { survived: None, sort: Sort::Birth, ..query };
        let short = objects(&population, Labels::of(&source, &population), &query, None).unwrap();
        let second = short.objects[10].survival.unwrap();
        assert_eq!((second.collections, second.at_most), (0, 1));
        assert!(second.gone_after == short.objects[10].born && second.gone_by.is_some());
    }

    /// By allocated, there, and survived.
    #[test]
    fn the_report_weighs_stacks_by_what_survived() {
        let report = report_of(&rounds(), reading(), 10);
        let root = &report.flames.by_context.frames[0];
        assert_eq!((root.bytes[1], root.bytes[2]), (960, 960));
        assert!(root.bytes[0] > 960 + 480 - 1);
        assert!(report.summary.survival.is_some() && !report.has_deaths);
    }
}
