//! The life of one object: who made it, what its slots held and when, where it was stored itself, and how it died.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use et_names::FieldId;
use et_names::units::{bytes, counted, number, seconds};
use et_reader::made_in::Places;
use et_reader::model::ContextId;
use et_reader::population::{Columns, Groups, Key, Moment as When, Population, Rows};
use et_reader::record::{AllocKind, ObjectId, Slot, ThreadId};
use et_reader::references::{Mark, References, Stay, Wanted};
use et_reader::source::Source;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fold::{fold_groups, groups_where};
use crate::heap::Watched;
use crate::labels::Labels;
use crate::named::{self, Named};
use crate::objects::{ObjectLine, line};
use crate::span::{Bound, QueryError, Span};
use crate::table::table;
use et_reader::amount::Amount;

/// Stays of one object that are listed at most: an array that every object passes through has as many as there are objects.
const MOST: usize = 1 << 18;
/// Stays of a slot that are displayed, at the beginning and at the end.
const SHOWN: usize = 3;
/// Methods of a stack that are displayed.
const CONTEXT: usize = 8;
/// Classes of what died with it.
const CLASSES: usize = 8;

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub id: ObjectId,
    /// Only references that were there in this range.
    pub span: Span,
    /// Maximum number of slots, and of holders, to list.
    pub top: usize,
    /// List everything.
    pub full: bool,
    /// What is known of it, by which it is found sooner than by its id.
    pub known: Option<Known>,
    /// References that are looked at, at most; `None`: as many as a page of text can hold.
    pub most: Option<usize>,
}

/// What is known of an object.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// In the order of births.
    pub number: u64,
    /// `None`: it is alive at the end.
    pub death_tick: Option<u64>,
}

/// Why nothing can be said of an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("there is no object {0:x}: ids are hexadecimal, as in texts and in `et-trace objects`")]
    None(u64),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Rows(#[from] io::Error),
}

/// A point in the life of a reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    pub tick: u64,
    pub bytes: u64,
    pub nanos: Option<u64>,
    /// Number of the thread; `None` if it was no thread's doing.
    pub thread: Option<u32>,
    /// Name of the thread, or its number.
    pub thread_name: Option<String>,
    /// Methods on the stack, innermost first.
    pub context: Vec<String>,
}

/// A reference, from being stored to being gone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StayLine {
    /// The field, or the element: `[7]`.
    pub slot: String,
    /// The object at the other end: what the slot held, or the object that has the slot. `None`: the slot is a static field.
    pub other: Option<Named>,
    /// `None`: it was there when tracing began.
    pub from: Option<Point>,
    /// `None`: it is there at the end.
    pub to: Option<Point>,
    /// `overwritten`, `cleared` or `origin died`.
    pub ended: Option<&'static str>,
}

/// What a slot held.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotLine {
    pub slot: String,
    /// Everything that it held, in order.
    pub held: Vec<StayLine>,
}

/// How many there were at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Peak {
    pub count: u64,
    /// The clock when there were first as many.
    pub tick: u64,
}

/// A thread that had it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Handed {
    pub thread: u32,
    pub thread_name: String,
    /// The first time that this thread stored it.
    pub first: Point,
    pub times: u64,
}

/// How it died.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Death {
    pub tick: u64,
    pub thread_name: Option<String>,
    /// The stack of what made it unreachable, innermost first.
    pub context: Vec<String>,
    /// What else the same record made unreachable; `None`: it was not a record.
    pub others: Option<Amount>,
    /// The most frequent classes of these.
    pub classes: Vec<(String, Amount)>,
}

/// Result: a life.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Life {
    pub object: ObjectLine,
    /// Whether it was there when tracing began.
    pub was_there: bool,
    pub thread_name: Option<String>,
    /// What its slots held, in the order of fields or elements.
    pub slots: Vec<SlotLine>,
    /// Where it was stored, in order.
    pub holders: Vec<StayLine>,
    /// The most slots that held something at once.
    pub most_held: Peak,
    /// The most slots that held this object at once.
    pub most_holders: Peak,
    /// Threads that stored it somewhere, other than the one that made it.
    pub handed: Vec<Handed>,
    pub death: Option<Death>,
    /// References that are not listed, because there are too many.
    pub left_out: u64,
}

/// Finds the row of an object: its group and its number in it.
pub(crate) fn find(population: &Population, id: ObjectId, known: Option<Known>) -> io::Result<Option<(usize, usize)>> {
    let has = |group: usize, key, value: Option<u64>| -> io::Result<bool> {
        Ok(match value {
            Some(value) => population.groups.range(group, key)?.contains(&value),
            None => true,
        })
    };
    let groups = groups_where(&*population.groups, |group| {
        Ok(has(group, Key::Number, known.map(|known| known.number))?
            && has(group, Key::DeathTick, known.and_then(|known| known.death_tick))?)
    })?;
    fold_groups(
        &*population.groups,
        &groups,
        Columns::OBJECT,
        || None,
        |found, group, rows| {
            if let Some(row) = rows.object.iter().position(|&object| object == id) {
                *found = Some((group, row));
            }
        },
        Option::or,
    )
}

/// What became of an object that is not alive at a tick.
///
/// # Errors
/// The life table cannot be read.
pub fn fate(population: &Population, id: ObjectId, tick: u64) -> io::Result<Watched> {
    let Some((group, row)) = find(population, id, None)? else { return Ok(Watched::Unknown) };
    let rows = population.groups.read(group, Columns::BIRTH_TICK | Columns::DEATH_TICK)?;
    Ok(match rows.death_tick[row] {
        Some(died) if rows.birth_tick[row] < tick => Watched::Dead { tick: died },
        _ => Watched::Unknown,
    })
}

/// Names for what stays tell.
pub(crate) struct Teller<'a> {
    source: &'a Source,
    labels: Labels<'a>,
    references: &'a dyn References,
    objects: FxHashMap<u64, Named>,
}

impl<'a> Teller<'a> {
    /// Knows the names of objects with these numbers, in any order.
    pub fn new(
        source: &'a Source,
        population: &'a Population,
        objects: &dyn Groups,
        references: &'a dyn References,
        mut wanted: Vec<u64>,
    ) -> io::Result<Self> {
        wanted.sort_unstable();
        wanted.dedup();
        let labels = Labels::of(source, population);
        let objects = named::named(objects, labels, &wanted)?;
        Ok(Self { source, labels, references, objects })
    }

    pub fn thread(&self, thread: ThreadId) -> Option<String> {
        (thread.0 != 0).then(|| named::thread(self.source, thread))
    }

    fn context(&self, context: ContextId) -> Vec<String> {
        let methods = self.references.contexts().methods(context).take(CONTEXT);
        methods.map(|method| self.labels.method(method)).collect()
    }

    pub fn point(&self, mark: &Mark) -> Point {
        Point {
            tick: mark.tick,
            bytes: mark.bytes,
            nanos: mark.nanos,
            thread: (mark.thread.0 != 0).then_some(mark.thread.0),
            thread_name: self.thread(mark.thread),
            context: self.context(mark.context),
        }
    }

    pub fn slot(&self, slot: Slot) -> String {
        named::slot(self.labels.naming(), self.references, slot)
    }

    /// A stay; `other` is the number of the object at the end that is not asked about.
    pub fn stay(&self, stay: &Stay, other: Option<u64>) -> StayLine {
        StayLine {
            slot: self.slot(stay.slot),
            other: other.map(|other| self.objects.get(&other).cloned().unwrap_or_default()),
            from: (stay.from.record > 0).then(|| self.point(&stay.from)),
            to: stay.to.as_ref().map(|(to, _)| self.point(to)),
            ended: stay.to.map(|(_, how)| how.text()),
        }
    }
}

/// A range in terms of marks.
pub(crate) struct Within([Option<Bound>; 2]);

impl Within {
    pub fn new(span: &Span, population: &Population) -> Result<Self, QueryError> {
        let bound = |moment: &Option<_>| moment.as_ref().map(|moment| Bound::of(moment, population)).transpose();
        Ok(Self([bound(&span.from)?, bound(&span.to)?]))
    }

    /// Whether the reference was there at some moment of the range.
    pub fn has(&self, stay: &Stay) -> bool {
        let when = |mark: &Mark| When { tick: mark.tick, bytes: mark.bytes, nanos: mark.nanos };
        let [from, to] = self.0;
        let has_ended_before = stay.to.is_some_and(|(end, _)| from.is_some_and(|from| from.is_at_or_after(when(&end))));
        !has_ended_before && to.is_none_or(|to| to.is_at_or_after(when(&stay.from)))
    }
}

/// Tells the life of an object. `objects` are those of the population, in whatever order: in that of time, few of their groups are read.
///
/// # Errors
/// There is no such object, the range cannot be told, or a table cannot be read.
pub fn life(
    source: &Source,
    population: &Population,
    objects: &dyn Groups,
    references: &dyn References,
    query: &Query,
) -> Result<Life, ObjectError> {
    let labels = Labels::of(source, population);
    let within = Within::new(&query.span, population)?;
    let (group, row) = find(population, query.id, query.known)?.ok_or(ObjectError::None(query.id.0))?;
    let rows = population.groups.read(group, Columns::ALL)?;
    let object = line(population, labels, &mut Places::new(labels.naming()), &rows, row);
    let asked = rows.number[row];
    let ticks = rows.birth_tick[row]..=rows.death_tick[row].unwrap_or(u64::MAX);
    let (mut slots, mut holders): (BTreeMap<Slot, Vec<Stay>>, Vec<Stay>) = Default::default();
    let (mut held, mut holding) = (Crowd::default(), Crowd::default());
    let (mut kept, mut left_out) = (0, 0);
    let wanted = Wanted { of: Some(vec![asked]), within: Some(ticks), ..Wanted::default() };
    references.for_each(&wanted, &mut |stay| {
        if !within.has(stay) {
            return;
        }
        if kept >= query.most.unwrap_or(MOST) {
            left_out += 1;
            return;
        }
        kept += 1;
        if stay.origin == Some(asked) {
            held.add(stay);
            slots.entry(stay.slot).or_default().push(*stay);
        }
        if stay.target == asked {
            holding.add(stay);
            holders.push(*stay);
        }
    })?;
    holders.sort_by_key(|stay| (stay.from.record, stay.origin, stay.slot));
    let others = slots.values().flatten().map(|stay| stay.target).chain(holders.iter().filter_map(|stay| stay.origin));
    let teller = Teller::new(source, population, objects, references, others.collect())?;
    let slots = slots.into_iter().map(|(slot, mut stays)| {
        stays.sort_by_key(|stay| stay.from.record);
        SlotLine {
            slot: teller.slot(slot),
            held: stays.iter().map(|stay| teller.stay(stay, Some(stay.target))).collect(),
        }
    });
    Ok(Life {
        thread_name: teller.thread(rows.thread[row]),
        slots: slots.collect(),
        handed: handed(&teller, &holders, rows.thread[row]),
        holders: holders.iter().map(|stay| teller.stay(stay, stay.origin)).collect(),
        most_held: held.peak(),
        most_holders: holding.peak(),
        death: death(population, &teller, &rows, row)?,
        was_there: rows.kind[row] == AllocKind::Initial,
        object,
        left_out,
    })
}

/// What the slots of an object held at a moment, and where it was stored itself.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Around {
    /// In the order of fields or elements.
    pub slots: Vec<StayLine>,
    /// In the order in which it was stored there.
    pub holders: Vec<StayLine>,
    pub more_slots: u64,
    pub more_holders: u64,
}

/// Tells what an object held at a tick and what held it, `most` of each. `number`: in the order of births. `statics`: the static fields of
/// the class whose mirror it is, which count as slots of it.
///
/// # Errors
/// A table cannot be read.
pub fn around(
    source: &Source,
    population: &Population,
    objects: &dyn Groups,
    references: &dyn References,
    (number, tick): (u64, u64),
    statics: Vec<FieldId>,
    most: usize,
) -> io::Result<Around> {
    let (mut slots, mut holders): (Vec<Stay>, Vec<Stay>) = Default::default();
    let wanted = Wanted { at: Some(tick), of: Some(vec![number]), ..Wanted::default() };
    references.for_each(&wanted, &mut |stay| {
        if stay.origin == Some(number) {
            slots.push(*stay);
        }
        if stay.target == number {
            holders.push(*stay);
        }
    })?;
    if !statics.is_empty() {
        let mut fields: Vec<u32> = statics.into_iter().map(|field| field.0).collect();
        fields.sort_unstable();
        let wanted = Wanted { at: Some(tick), fields: Some(fields), ..Wanted::default() };
        references.for_each(&wanted, &mut |stay| slots.extend(stay.origin.is_none().then_some(*stay)))?;
    }
    slots.sort_by_key(|stay| (stay.slot, stay.origin));
    holders.sort_by_key(|stay| (stay.from.record, stay.origin, stay.slot));
    let (more_slots, more_holders) = (slots.len().saturating_sub(most), holders.len().saturating_sub(most));
    slots.truncate(most);
    holders.truncate(most);
    let others = slots.iter().map(|stay| stay.target).chain(holders.iter().filter_map(|stay| stay.origin));
    let teller = Teller::new(source, population, objects, references, others.collect())?;
    Ok(Around {
        slots: slots.iter().map(|stay| teller.stay(stay, Some(stay.target))).collect(),
        holders: holders.iter().map(|stay| teller.stay(stay, stay.origin)).collect(),
        more_slots: more_slots as u64,
        more_holders: more_holders as u64,
    })
}

/// Which other threads stored an object, in the order of their first stores.
fn handed(teller: &Teller<'_>, holders: &[Stay], maker: ThreadId) -> Vec<Handed> {
    let mut all: Vec<Handed> = Vec::new();
    for stay in holders.iter().filter(|stay| stay.from.thread.0 != 0 && stay.from.thread != maker) {
        let thread = stay.from.thread;
        match all.iter_mut().find(|handed| handed.thread == thread.0) {
            Some(handed) => handed.times += 1,
            None => all.push(Handed {
                thread: thread.0,
                thread_name: teller.thread(thread).unwrap_or_default(),
                first: teller.point(&stay.from),
                times: 1,
            }),
        }
    }
    all
}

/// How many stays there are at once.
#[derive(Default)]
struct Crowd(Vec<(u64, Step, u64)>);

/// What a store replaces is gone before what it stores is there; and what it made unreachable at once goes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Goes,
    Comes,
    GoesAtOnce,
}

impl Crowd {
    fn add(&mut self, stay: &Stay) {
        self.0.push((stay.from.record, Step::Comes, stay.from.tick));
        if let Some((to, _)) = stay.to {
            let step = if to.record == stay.from.record { Step::GoesAtOnce } else { Step::Goes };
            self.0.push((to.record, step, to.tick));
        }
    }

    fn peak(mut self) -> Peak {
        self.0.sort_unstable();
        let (mut count, mut peak) = (0, Peak::default());
        for (_, step, tick) in self.0 {
            count = if step == Step::Comes { count + 1 } else { count - 1 };
            if count > peak.count {
                peak = Peak { count, tick };
            }
        }
        peak
    }
}

fn death(population: &Population, teller: &Teller<'_>, rows: &Rows, row: usize) -> io::Result<Option<Death>> {
    let Some(tick) = rows.death_tick[row] else { return Ok(None) };
    let (mut others, mut classes) = (None, Vec::new());
    if let Some(record) = rows.death_record[row] {
        let number = rows.number[row];
        let columns = Columns::NUMBER | Columns::DEATH_RECORD | Columns::CLASS | Columns::SIZE;
        let groups = groups_where(&*population.groups, |group| {
            Ok(population.groups.range(group, Key::DeathRecord)?.contains(&record))
        })?;
        let found = fold_groups(
            &*population.groups,
            &groups,
            columns,
            FxHashMap::<_, Amount>::default,
            |found, _, rows| {
                let is_other = |row: &usize| rows.death_record[*row] == Some(record) && rows.number[*row] != number;
                for row in (0..rows.len).filter(is_other) {
                    found.entry(rows.class[row]).or_default().add(rows.size[row]);
                }
            },
            |mut one, other| {
                other.into_iter().for_each(|(class, amount)| *one.entry(class).or_default() += amount);
                one
            },
        )?;
        let mut all = Amount::default();
        found.values().for_each(|&amount| all += amount);
        others = Some(all);
        classes = found.into_iter().map(|(class, amount)| (teller.labels.class(class), amount)).collect();
        classes.sort_by(|(a, one), (b, other)| (other.objects, a).cmp(&(one.objects, b)));
        classes.truncate(CLASSES);
    }
    let context = rows.death_context[row].unwrap_or(ContextId::EMPTY);
    let methods = population.contexts.methods(context).take(CONTEXT);
    Ok(Some(Death {
        tick,
        thread_name: rows.death_thread[row].and_then(|thread| teller.thread(thread)),
        context: methods.map(|method| teller.labels.method(method)).collect(),
        others,
        classes,
    }))
}

/// `tick 1,234 (0.512 s)`
fn when(tick: u64, nanos: Option<u64>) -> String {
    match nanos {
        Some(nanos) => format!("tick {} ({})", number(tick), seconds(nanos as f64 / 1e9)),
        None => format!("tick {}", number(tick)),
    }
}

/// Who did something: `shop.Cart.add, main`.
fn who(point: &Point) -> String {
    let method = point.context.first().map_or("no method", String::as_str);
    match &point.thread_name {
        Some(thread) => format!("{method}, {thread}"),
        None => method.to_owned(),
    }
}

/// From when to when something was there, who put it there, and who ended that.
pub(crate) fn cells(stay: &StayLine) -> [String; 4] {
    let from = stay.from.as_ref().map_or_else(|| "the start".to_owned(), |from| when(from.tick, from.nanos));
    let to = stay.to.as_ref().map_or_else(|| "the end".to_owned(), |to| when(to.tick, to.nanos));
    let stored = stay.from.as_ref().map(who).unwrap_or_default();
    let ended = match (stay.ended, &stay.to) {
        (Some("overwritten"), Some(by)) => format!("overwritten by {}", who(by)),
        (Some("origin died"), _) => "its object died".to_owned(),
        (ended, _) => ended.unwrap_or_default().to_owned(),
    };
    [from, to, stored, ended]
}

/// The first and the last of many, and how many there are between them.
pub(crate) fn folded<T>(all: &[T], most: usize, full: bool) -> (&[T], usize, &[T]) {
    if full || all.len() <= 2 * most {
        return (all, 0, &[]);
    }
    (&all[..most], all.len() - 2 * most, &all[all.len() - most..])
}

/// An object for people, with its class first.
pub(crate) fn object(named: &Named) -> String {
    format!("{} {}", named.class, named.id)
}

/// The life as sentences and tables.
pub fn render(life: &Life, query: &Query) -> String {
    let mut out = String::new();
    let line = &life.object;
    let length = match line.length {
        0 => String::new(),
        length => format!(", {}", counted(length.into(), "element")),
    };
    let end = match line.died {
        Some(_) => String::new(),
        None => ", alive at the end".to_owned(),
    };
    let _ = writeln!(out, "{} {}, {}{length}{end}", line.class, line.id, bytes(line.size));
    let by = life.thread_name.as_ref().map(|thread| format!(" by {thread}")).unwrap_or_default();
    if life.was_there {
        let _ = writeln!(out, "\nwas there when tracing began");
    } else {
        let _ = writeln!(out, "\nmade at {}{by} in {}", when(line.born.tick, line.born.nanos), line.site);
    }
    calls(&mut out, line.context.get(1..).unwrap_or_default());
    if let Some(last_use) = line.last_use_tick.filter(|last_use| *last_use > line.born.tick) {
        let _ = writeln!(out, "used last at tick {}", number(last_use));
    }
    for handed in &life.handed {
        let Handed { thread_name, first, times, .. } = handed;
        let at = when(first.tick, first.nanos);
        let times = counted(*times, "time");
        let _ = writeln!(out, "handed to {thread_name}, which stored it {times}, first at {at} in {}", who(first));
    }
    if life.holders.is_empty() {
        let _ = writeln!(out, "\nnever stored in a field or an element");
    } else {
        let peak = life.most_holders;
        let _ = writeln!(
            out,
            "\nheld by {}, at most {} at once (tick {})",
            counted(life.holders.len() as u64, "reference"),
            number(peak.count),
            number(peak.tick)
        );
        let (first, between, last) = folded(&life.holders, query.top.div_ceil(2), query.full);
        let row = |stay: &StayLine| {
            let holder = match &stay.other {
                Some(other) => object(other),
                None => "static".to_owned(),
            };
            let [from, to, stored, ended] = cells(stay);
            vec![stay.slot.clone(), holder, from, to, stored, ended]
        };
        let head = ["slot", "of", "from", "to", "stored by", "ended"];
        rows(&mut out, &head, first.iter().map(row).collect(), between, last.iter().map(row).collect());
    }
    if !life.slots.is_empty() {
        let peak = life.most_held;
        let _ = writeln!(
            out,
            "\n{} held something, at most {} at once (tick {})",
            counted(life.slots.len() as u64, "slot"),
            number(peak.count),
            number(peak.tick)
        );
        let shown = if query.full { life.slots.len() } else { query.top.min(life.slots.len()) };
        let mut all = Vec::new();
        for SlotLine { slot, held } in &life.slots[..shown] {
            let (first, between, last) = folded(held, SHOWN, query.full);
            let row = |stay: &StayLine| {
                let [from, to, stored, ended] = cells(stay);
                vec![slot.clone(), stay.other.as_ref().map(object).unwrap_or_default(), from, to, stored, ended]
            };
            all.extend(first.iter().map(row));
            if between > 0 {
                all.push(vec![slot.clone(), format!("({} more: --full)", number(between as u64))]);
            }
            all.extend(last.iter().map(row));
        }
        table(&mut out, 0, &["slot", "held", "from", "to", "stored by", "ended"], &all);
        if shown < life.slots.len() {
            let more = counted((life.slots.len() - shown) as u64, "more slot");
            let _ = writeln!(out, "  and {more} (--top, --full)");
        }
    }
    if life.left_out > 0 {
        let left_out = counted(life.left_out, "more reference");
        let _ = writeln!(out, "\n{left_out} not counted here: --from and --to choose a range with fewer");
    }
    if let Some(death) = &life.death {
        let nanos = line.died.as_ref().and_then(|died| died.nanos);
        let by = death.thread_name.as_ref().map(|thread| format!(" by {thread}")).unwrap_or_default();
        let place = match death.context.first() {
            Some(method) => format!(" in {method}"),
            None if death.others.is_none() => ", when the VM let it go".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(out, "\ndied at {}{by}{place}", when(death.tick, nanos));
        calls(&mut out, death.context.get(1..).unwrap_or_default());
        if let Some(others) = death.others.filter(|others| others.objects > 0) {
            let mut classes: Vec<String> =
                death.classes.iter().map(|(class, amount)| format!("{} {class}", number(amount.objects))).collect();
            let rest = others.objects - death.classes.iter().map(|(_, amount)| amount.objects).sum::<u64>();
            if rest > 0 {
                classes.push(format!("{} of other classes", number(rest)));
            }
            let all = counted(others.objects, "other object");
            let _ = writeln!(out, "with it {all}, {}: {}", bytes(others.bytes), classes.join(", "));
        }
    }
    out
}

/// The rows of a table of which the middle may be left out.
fn rows(out: &mut String, head: &[&str], mut all: Vec<Vec<String>>, between: usize, last: Vec<Vec<String>>) {
    if between > 0 {
        all.push(vec![format!("({} more: --full)", number(between as u64))]);
    }
    all.extend(last);
    table(out, 0, head, &all);
}

fn calls(out: &mut String, callers: &[String]) {
    if !callers.is_empty() {
        let _ = writeln!(out, "  called from {}", callers.join(" < "));
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::testing::{REAL, with_references};

    /// All objects of a list that is cut behind its first node and then let go.
    #[test]
    fn lives_of_a_list() {
        let (source, population, references) = with_references(crate::heap::tests::list().finish());
        let mut out = String::new();
        for id in [0xa, 0xb, 0xc, 0xf, 0x20, 0xd] {
            let query = Query { id: ObjectId(id), top: 20, ..Query::default() };
            let life = life(&source, &population, &*population.groups, &*references, &query).unwrap();
            let _ = writeln!(out, "{}", render(&life, &query));
        }
        insta::assert_snapshot!(out);
        let query = Query { id: ObjectId(0x77), top: 20, ..Query::default() };
        let error = life(&source, &population, &*population.groups, &*references, &query).unwrap_err();
        assert!(error.to_string().starts_with("there is no object 77: "), "{error}");
    }

    /// Static fields are slots of the object of their class, which say since when and by whom.
    #[test]
    fn a_class_has_its_static_fields_as_slots() {
        let (source, population, references) = with_references(crate::heap::tests::list().finish());
        let groups = &*population.groups;
        // Behind all stores, and before the first of them is undone.
        let tick = 13;
        let resident = crate::heap::resident(&source, &population, groups, &*references, tick).unwrap();
        let snapshot = &resident.snapshot;
        let (_, mirror, _) = snapshot.statics()[0];
        let mirror = mirror.unwrap();
        assert_eq!(snapshot.class_text(mirror), "class shop.Node");
        let statics: Vec<FieldId> = snapshot.statics().iter().map(|&(field, ..)| field).collect();
        let number = resident.rows.number[mirror.0 as usize];
        let around = around(&source, &population, groups, &*references, (number, tick), statics, 9).unwrap();
        let held: Vec<(&str, &str)> =
            around.slots.iter().map(|stay| (stay.slot.as_str(), stay.other.as_ref().unwrap().id.as_str())).collect();
        assert_eq!(held, [("shop.Node.head", "a"), ("shop.Node.weak", "20")]);
        let since = around.slots[0].from.as_ref().unwrap();
        assert_eq!((since.context.as_slice(), since.thread), (&["shop.Node.main".to_owned()][..], Some(1)));
        // Of the object that the field holds, the field is a holder.
        let first = resident.rows.number[snapshot.find(ObjectId(0xa)).unwrap().0 as usize];
        let of = super::around(&source, &population, groups, &*references, (first, tick), Vec::new(), 9).unwrap();
        assert!(of.holders.iter().any(|stay| stay.slot == "shop.Node.head" && stay.other.is_none()));
    }

    /// What is told of an object is what the table of references has of it.
    #[test]
    fn lives_are_complete() {
        let (source, population, references) = with_references(std::fs::read(REAL).unwrap());
        let mut of: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
        references
            .for_each(&Wanted::default(), &mut |stay| {
                of.entry(stay.target).or_default().0 += 1;
                if let Some(origin) = stay.origin {
                    of.entry(origin).or_default().1 += 1;
                }
            })
            .unwrap();
        let rows = population.groups.read(0, Columns::ALL).unwrap();
        let (mut seen, mut together) = (0, 0);
        for row in (0..rows.len).step_by(rows.len / 60) {
            let query = Query { id: rows.object[row], full: true, ..Query::default() };
            let life = life(&source, &population, &*population.groups, &*references, &query).unwrap();
            let held: usize = life.slots.iter().map(|slot| slot.held.len()).sum();
            let expected = of.get(&rows.number[row]).copied().unwrap_or_default();
            assert_eq!((life.holders.len() as u64, held as u64), expected, "{:x}", rows.object[row].0);
            assert!(life.most_holders.count <= expected.0 && life.most_held.count <= expected.1);
            assert!((life.most_holders.count > 0) == (expected.0 > 0));
            seen += expected.0 + expected.1;
            if let Some(others) = life.death.and_then(|death| death.others) {
                let same = (0..rows.len).filter(|&other| rows.death_record[other] == rows.death_record[row]);
                assert!(others.objects + 1 >= same.count() as u64);
                together += others.objects;
            }
        }
        assert!(seen > 20 && together > 20, "{seen} {together}");
    }

    #[test]
    fn a_range_leaves_out_what_was_not_there() {
        let (source, population, references) = with_references(crate::heap::tests::list().finish());
        let holders = |span: &str| {
            let query = Query { id: ObjectId(0xb), span: span.parse().unwrap(), top: 20, ..Query::default() };
            life(&source, &population, &*population.groups, &*references, &query).unwrap().holders.len()
        };
        assert_eq!([holders("tick:0.."), holders("..end"), holders("..tick:2"), holders("end..")], [1, 1, 0, 0]);
    }

    #[test]
    fn the_middle_of_many_is_left_out() {
        let all = [1, 2, 3, 4, 5, 6, 7];
        assert_eq!(folded(&all, 3, false), (&all[..3], 1, &all[4..]));
        assert_eq!(folded(&all[1..], 3, false), (&all[1..], 0, &[][..]));
        assert_eq!(folded(&all, 1, true), (&all[..], 0, &[][..]));
    }
}
