//! Programs state in comments where their objects die:
//!
//! ```java
//! slot = new Leaf(); // dies Leaf: U Program.slot Leaf -> null
//! ```
//!
//! The object is the only instance of the program's class `Leaf` that is allocated during the run; `Program.slot` is
//! the first object stored to this field, and `@label` the one from the line that ends with the comment `@label`. It
//! dies directly after the last record of the form that follows, with objects displayed by their types; or after the
//! last one during a call, if ` in Program.work` follows; `in Program.work`, anywhere during the call of that method;
//! or `never`.
//!
//! Words before the colon are conditions: `21+` for this JDK and later ones, `<21` for earlier ones; `refs` with any
//! witnesses, `all` with all witnesses. Of those that apply, the one with the most conditions counts, and of several
//! the last.

use std::collections::HashMap;
use std::fmt;

use anyhow::{Context, Result, bail, ensure};

use crate::record::{ObjectId, Record, What};
use crate::window::Trace;

/// Identifies an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Selector {
    /// The one that was made in the line with this label.
    Label(String),
    /// The first that the field referred to; or else the one of this class.
    Name(String),
}

/// Where it dies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Never,
    /// During the call of this method.
    In(String),
    /// After the last record that matches this, in the whole trace or in the call of a method.
    Behind(String, Option<String>),
}

/// What a program states about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    line: usize,
    selector: Selector,
    conditions: Vec<Condition>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    From(u32),
    Before(u32),
    Witness(Witness),
}

/// Value of `--witness`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    None,
    Refs,
    All,
}

impl Witness {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Refs => "refs",
            Self::All => "all",
        }
    }
}

impl Condition {
    fn parse(word: &str) -> Result<Self> {
        let version = |text: &str| text.parse().with_context(|| format!("unknown condition {word:?}"));
        match (word.strip_suffix('+'), word.strip_prefix('<')) {
            (Some(first), _) => version(first).map(Self::From),
            (_, Some(end)) => version(end).map(Self::Before),
            _ if word == "refs" => Ok(Self::Witness(Witness::Refs)),
            _ if word == "all" => Ok(Self::Witness(Witness::All)),
            _ => bail!("unknown condition {word:?}"),
        }
    }

    fn holds(self, feature: u32, witness: Witness) -> bool {
        match self {
            Self::Witness(least) => witness >= least,
            Self::From(first) => feature >= first,
            Self::Before(end) => feature < end,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(label) => write!(f, "@{label}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Reads the comments of a program.
pub fn parse(text: &str) -> Result<Vec<Fate>> {
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let (_, fate) = line.split_once("// dies ")?;
            Some(Fate::parse(index + 1, fate.trim()).with_context(|| format!("line {}", index + 1)))
        })
        .collect()
}

impl Fate {
    fn parse(line: usize, text: &str) -> Result<Self> {
        let (head, place) = text.split_once(": ").context("no colon and place")?;
        let mut words = head.split_whitespace();
        let name = words.next().context("no object named")?;
        let selector = match name.strip_prefix('@') {
            Some(label) => Selector::Label(label.to_owned()),
            None => Selector::Name(name.to_owned()),
        };
        let place = match (place.strip_prefix("in "), place.split_once(" in ")) {
            (Some(method), _) => Place::In(method.to_owned()),
            (None, Some((form, method))) => Place::Behind(form.to_owned(), Some(method.to_owned())),
            (None, None) if place == "never" => Place::Never,
            (None, None) => Place::Behind(place.to_owned(), None),
        };
        Ok(Self { line, selector, conditions: words.map(Condition::parse).collect::<Result<_>>()?, place })
    }
}

impl Fate {
    /// Whether it is the heap that says so, without any call: the object dies because a slot no longer holds it, or never.
    pub fn is_of_heap(&self) -> bool {
        match &self.place {
            Place::Never => true,
            Place::Behind(form, None) => form.starts_with("U "),
            Place::In(_) | Place::Behind(_, Some(_)) => false,
        }
    }
}

/// Those that hold on a JDK with such witnesses, one for each object.
pub fn that_hold(fates: &[Fate], feature: u32, witness: Witness) -> Vec<&Fate> {
    let mut chosen: Vec<&Fate> = Vec::new();
    for fate in fates.iter().filter(|fate| fate.conditions.iter().all(|condition| condition.holds(feature, witness))) {
        match chosen.iter_mut().find(|other| other.selector == fate.selector) {
            Some(other) if other.conditions.len() <= fate.conditions.len() => *other = fate,
            Some(_) => {}
            None => chosen.push(fate),
        }
    }
    chosen
}

/// Compares the deaths of a trace with what its program says; lists what differs.
pub fn differences(trace: &Trace, fates: &[&Fate]) -> Vec<String> {
    let deaths = Deaths::of(trace);
    let wrong = fates.iter().filter_map(|fate| {
        let error = deaths.check(fate).err()?;
        Some(format!("line {}: {}: {error:#}", fate.line, fate.selector))
    });
    wrong.collect()
}

struct Deaths<'a> {
    trace: &'a Trace,
    /// Position of each object's D record.
    places: HashMap<ObjectId, usize>,
}

impl<'a> Deaths<'a> {
    fn of(trace: &'a Trace) -> Self {
        let deaths = trace.records.all.iter().enumerate();
        let places = deaths.filter_map(|(at, record)| match record.what {
            What::Death { object } => Some((object, at)),
            _ => None,
        });
        Self { trace, places: places.collect() }
    }

    fn check(&self, fate: &Fate) -> Result<()> {
        let object = self.object(&fate.selector)?;
        let died = self.places.get(&object).copied();
        match (&fate.place, died) {
            (Place::Never, None) => Ok(()),
            (place, None) => bail!("should die {place}, but does not"),
            (Place::Never, Some(at)) => bail!("should not die, but does behind {}", self.shown(self.cause(at)?)),
            (Place::In(method), Some(at)) => self.check_call(method, at),
            (Place::Behind(form, within), Some(at)) => self.check_record(form, within.as_deref(), at),
        }
    }

    fn check_record(&self, form: &str, within: Option<&str>, at: usize) -> Result<()> {
        let records = &self.trace.records.all;
        let cause = self.cause(at)?;
        let shown = self.shown(cause);
        ensure!(
            shown == form,
            "should die behind\n    {form}\n  but does behind\n    {shown}\n  {}",
            self.around(cause)
        );
        ensure!(
            records[at].thread == records[cause].thread,
            "dies in thread {:?} behind a record of thread {:?}",
            records[at].thread,
            records[cause].thread
        );
        let mut names_it = HashMap::new();
        let mut looks_like_it = |record: &&Record| {
            form.starts_with(record.what.letter())
                && self.names(record, form, &mut names_it)
                && self.trace.show_by_type(record) == form
        };
        let later = match within {
            None => records[at..].iter().filter(&mut looks_like_it).count(),
            Some(method) => {
                let call = self.call(method)?;
                let place = call.iter().position(|&record| std::ptr::eq(record, &records[cause]));
                let place = place.with_context(|| format!("dies behind {form}, but not in {method}"))?;
                call[place + 1..].iter().copied().filter(&mut looks_like_it).count()
            }
        };
        ensure!(later == 0, "dies behind {form}, of which {later} more follow");
        Ok(())
    }

    fn check_call(&self, method: &str, at: usize) -> Result<()> {
        let cause = self.cause(at)?;
        let records = &self.trace.records.all;
        let is_inside = self.call(method)?.iter().any(|&record| std::ptr::eq(record, &records[cause]));
        ensure!(
            is_inside,
            "should die in {method}, but does behind\n    {}\n  {}",
            self.shown(cause),
            self.around(cause)
        );
        Ok(())
    }

    /// The records of a method's only call.
    fn call(&self, method: &str) -> Result<Vec<&'a Record>> {
        let name = method.rsplit_once('.').map_or(method, |(_, name)| name);
        let mut calls = self.trace.calls(name);
        let (Some(call), true) = (calls.pop(), calls.is_empty()) else { bail!("{method} is not called once") };
        Ok(call.records)
    }

    /// The record that a death follows; in between there may be other deaths at the same moment, and clearings of weak
    /// references.
    fn cause(&self, death: usize) -> Result<usize> {
        let records = &self.trace.records.all;
        let is_of_death = |at: usize| match &records[at].what {
            What::Death { .. } => true,
            What::Update { old, new: ObjectId::NULL, .. } => {
                let next = self.places.get(old).copied();
                next.is_some_and(|next| next > at && records[at..next].iter().all(|r| is_quiet(&r.what)))
                    && self.is_referent(&records[at])
            }
            _ => false,
        };
        (0..death).rev().find(|&at| !is_of_death(at)).context("no record comes before the death")
    }

    /// Whether a form names the method or the field of a record. To show a record takes long, and there are millions; of methods and fields there are
    /// few.
    fn names(&self, record: &Record, form: &str, known: &mut HashMap<u64, bool>) -> bool {
        let trace = self.trace;
        match record.what {
            What::Entry { method, .. } | What::Exit { method, .. } | What::Exception { method, .. } => *known
                .entry(method)
                .or_insert_with(|| form.get(2..).is_some_and(|form| form.starts_with(&trace.method_name(method)))),
            What::Update { origin, field, .. } if !trace.is_array(origin) => *known.entry(field).or_insert_with(|| {
                trace.names.fields.get(&field).is_none_or(|named| form.contains(&format!(".{} ", named.name)))
            }),
            _ => true,
        }
    }

    /// A referent that is cleared because it dies.
    fn is_referent(&self, record: &Record) -> bool {
        let What::Update { field, origin, .. } = record.what else { return false };
        let is_final = |d: &std::rc::Rc<str>| &**d == "Ljava/lang/ref/Finalizer;";
        let named = self.trace.names.fields.get(&field);
        named.is_some_and(|named| named.name == "referent")
            && !self.trace.records.descriptors.get(&origin).is_some_and(is_final)
    }

    fn shown(&self, at: usize) -> String {
        self.trace.show_by_type(&self.trace.records.all[at])
    }

    /// Records of the thread around a position, for error messages.
    fn around(&self, at: usize) -> String {
        let records = &self.trace.records.all;
        let own = |other: &usize| records[*other].thread == records[at].thread;
        let before = (0..at).rev().filter(own).take(4).collect::<Vec<_>>().into_iter().rev();
        let after = (at..records.len()).filter(own).take(6);
        let lines: Vec<String> = before.chain(after).map(|at| format!("  {}", self.shown(at))).collect();
        format!("near\n{}", lines.join("\n"))
    }

    fn object(&self, selector: &Selector) -> Result<ObjectId> {
        let trace = self.trace;
        let mut found = Vec::new();
        for record in &trace.records.all {
            match (&record.what, selector) {
                (What::Born { object, site, .. }, Selector::Label(label)) => {
                    let line = trace.names.sites.get(site).map(|site| (site.line, &trace.names.methods[&site.method]));
                    let here = line.filter(|(_, method)| trace.is_own(&method.class));
                    let own = here.and_then(|(line, _)| trace.source.labels.get(&line));
                    found.extend((own == Some(label) && trace.is_array(*object)).then_some(*object));
                }
                (What::Born { kind, object, descriptor, .. }, Selector::Name(name))
                    if *kind != 'I' && trace.type_name(descriptor, None) == *name =>
                {
                    found.push(*object);
                }
                (What::Update { new, field, .. }, Selector::Name(name)) if *new != ObjectId::NULL => {
                    let field = trace.names.fields.get(field);
                    let is_it = field.is_some_and(|field| {
                        name.strip_suffix(field.name.as_str()).and_then(|rest| rest.strip_suffix('.'))
                            == Some(trace.short_class(&field.class))
                    });
                    if is_it {
                        return Ok(*new);
                    }
                }
                _ => {}
            }
        }
        ensure!(found.len() == 1, "{} objects answer to it, not one", found.len());
        Ok(found[0])
    }
}

fn is_quiet(what: &What) -> bool {
    matches!(what, What::Death { .. } | What::Update { new: ObjectId::NULL, .. })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::In(method) => write!(f, "in {method}"),
            Self::Behind(form, _) => write!(f, "behind {form}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Source;
    use crate::names::Names;
    use crate::record::Records;

    fn trace(text: &str) -> Trace {
        let names = "C 0x1 P 0x0\nC 0x2 P$Leaf 0x0\nN 0x1 0x1 P one ()V S\nN 0x2 0x2 P$Leaf use ()V I\n\
                     F S 0x8 s 0x1 P LP$Leaf;\nS 0x1 0x1 0xa [I 0x1 2\nE 0x1 P\n";
        Trace {
            main_class: "P".into(),
            source: Source::parse("\nx // @numbers\n").unwrap(),
            names: Names::parse(names).unwrap(),
            records: Records::read(text.as_bytes()).unwrap(),
        }
    }

    fn check(text: &str, fates: &str) -> Vec<String> {
        differences(&trace(text), &that_hold(&parse(fates).unwrap(), 17, Witness::None))
    }

    const TEXT: &str = "M 1 0 1\nN a 10 LP$Leaf; 0 0 1\nA b 18 [I a 2 1\nD b 1\nU 0 0 a 8 1\nM 2 a 1\nE 2 a 1\nU a 0 0 8 1\nD a 1\nE 1 0 1\n";

    #[test]
    fn deaths_where_they_should_be() {
        let fates = "// dies Leaf: U P.s Leaf -> null\n// dies @numbers: A int[2]\n// dies P.s: in P.one\n";
        assert_eq!(check(TEXT, fates), [""; 0]);
    }

    #[test]
    fn deaths_elsewhere_are_reported() {
        for (fate, why) in [
            ("// dies Leaf: E Leaf.use Leaf", "behind\n    U P.s Leaf -> null"),
            ("// dies Leaf: never", "should not die"),
            ("// dies @numbers: U P.s null -> Leaf", "behind\n    A int[2]"),
            ("// dies Twig: never", "0 objects"),
            ("// dies P.s: in P.two", "not called once"),
        ] {
            let wrong = check(TEXT, fate);
            assert!(wrong.len() == 1 && wrong[0].contains(why), "{fate}: {wrong:?}");
        }
        let early = TEXT.replace("D a 1\n", "").replace("D b 1\n", "D b 1\nD a 1\n");
        assert_eq!(check(&early, "// dies Leaf: A int[2]"), [""; 0]);
        let again = TEXT.replace("E 1 0 1", "A c 18 [I a 2 1\nE 1 0 1");
        let wrong = check(
            &again.replace("D b 1\n", "D b 1\nD a 1\n").replace("8 1\nD a 1\n", "8 1\n"),
            "// dies Leaf: A int[2]",
        );
        assert!(wrong[0].contains("1 more follow"), "{wrong:?}");
        let fate = "// dies Leaf: U P.s Leaf -> null in P.one";
        assert_eq!(check(&format!("{TEXT}U 0 0 b 8 1\n"), fate), [""; 0]);
    }

    #[test]
    fn conditions_choose() {
        let fates = parse("// dies A: never\n// dies A 21+: in P.one\n// dies B <21: in P.two\n").unwrap();
        let places = |feature| {
            that_hold(&fates, feature, Witness::None).iter().map(|fate| fate.place.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(places(17), ["never", "in P.two"]);
        assert_eq!(places(25), ["in P.one"]);
        let fates = parse("// dies A: never\n// dies A refs: in P.one\n// dies A all: in P.two\n").unwrap();
        let place = |witness| that_hold(&fates, 17, witness)[0].place.to_string();
        assert_eq!([Witness::None, Witness::Refs, Witness::All].map(place), ["never", "in P.one", "in P.two"]);
        assert!(parse("// dies A").is_err() && parse("// dies A often: never").is_err());
    }
}
