//! The data of a report.

use et_reader::observed::usage::Fill;
use serde::{Deserialize, Serialize};

use crate::flame::Flame;
use crate::heap::ClassLine;
use crate::summary::{Amount, Origin, Summary};

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Piece {
    Text(String),
    /// A name from the program.
    Code(String),
    /// Emphasized text.
    Strong(String),
}

/// One or two sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words(pub Vec<Piece>);

impl Words {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Text(text.into()));
        self
    }

    /// Appends a name from the program.
    #[must_use]
    pub fn code(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Code(text.into()));
        self
    }

    /// The names in it.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Code(text) => Some(text.as_str()),
            Piece::Text(_) | Piece::Strong(_) => None,
        })
    }

    /// Appends emphasized text.
    #[must_use]
    pub fn strong(mut self, text: impl Into<String>) -> Self {
        self.0.push(Piece::Strong(text.into()));
        self
    }

    /// As plain text.
    pub fn plain(&self) -> String {
        self.0.iter().map(|(Piece::Text(text) | Piece::Code(text) | Piece::Strong(text))| text.as_str()).collect()
    }
}

/// A page of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Page {
    /// The program, and the most important findings.
    Overview,
    /// Where objects were allocated.
    Allocation,
    /// What was alive at a moment.
    Alive,
    /// How long objects live.
    Lifetimes,
    /// What holds the heap.
    Holders,
    /// Suspected problems.
    Suspects,
    /// Threads and garbage collections.
    Threads,
}

/// Defines the order, the ids and the titles of pages. A variant of [`Page`] without a row does not compile.
macro_rules! pages {
    ($($page:ident $id:literal $title:literal,)*) => {
        impl Page {
            /// All pages, in order.
            pub const ALL: [Self; [$($id),*].len()] = [$(Self::$page),*];

            /// Identifier in commands and links.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$page => $id,)*
                }
            }

            /// Display title.
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$page => $title,)*
                }
            }
        }
    };
}

pages! {
    Overview "overview" "Overview",
    Allocation "allocation" "Allocation",
    Alive "alive" "Alive at a moment",
    Lifetimes "lifetimes" "Lifetimes",
    Holders "holders" "What holds the heap",
    Suspects "suspects" "Suspects",
    Threads "threads" "Threads and collections",
}

/// What a report can lack, in the order in which it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LackKind {
    /// Events in the middle of the trace.
    Events,
    /// The end of the trace.
    End,
    /// When objects die, and with it what was alive, lifetimes and leaks.
    Deaths,
    /// Calling contexts.
    Contexts,
    /// Exceptions.
    Exceptions,
    /// Calls, and with them what locals hold, and when objects are used.
    Calls,
    /// Reads of fields and array elements.
    Reads,
    /// What classes without hooks do.
    Hooks,
    /// What a problem of the runtime cost.
    Problem,
    /// Objects that were not asked for, and what they hold.
    Others,
    /// Frames of stacks.
    Frames,
    /// Contents of strings and of arrays of numbers.
    Values,
}

impl LackKind {
    /// What is missing.
    pub fn what(self) -> &'static str {
        match self {
            Self::Events => "The trace is damaged",
            Self::End => "The trace, and with it this report, ends before the program did",
            Self::Deaths => "Deaths are unknown: this report has nothing on lifetimes, leaks and live objects",
            Self::Contexts => "Calling contexts are unknown: flame graphs show classes and sites without callers",
            Self::Exceptions => "Exceptions are not in the trace",
            Self::Calls => {
                "Deaths are those of the heap: what only local variables hold is dead, and nothing is known of uses, drag and escape"
            }
            Self::Reads => "Reads of fields and array elements are not in the trace",
            Self::Hooks => {
                "Some classes are not instrumented: their objects are in the trace, what their methods do is not"
            }
            Self::Problem => "The runtime reported a problem",
            Self::Others => {
                "This report is of some allocations only, and has nothing on the peak, on what retains the heap, and on what grows"
            }
            Self::Frames => "Stacks are shown shortened",
            Self::Values => "Contents of strings and primitive arrays are not in the trace",
        }
    }

    /// How to get it; empty if there is no way.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Events => "trace the program again, or read this report with that in mind",
            Self::End => {
                "keep the .buf file beside the trace, which has the last events of each thread; \
                 et-trace recover combines both"
            }
            Self::Deaths => "instrument with all events, which is the default of et-instrument",
            Self::Contexts => "instrument with --events that include method, or without --events",
            Self::Exceptions => "instrument without --events",
            Self::Calls => "record with --mode everything",
            Self::Reads => "instrument with --witness refs to record reads as well",
            Self::Hooks => "et-trace summary --long lists them",
            Self::Problem => "",
            Self::Others => "for the whole run, make a report without --threads, --from and --to",
            Self::Frames => "for whole stacks, make a report without --fold and --hide",
            Self::Values => "to find equal strings, use a heap dump",
        }
    }

    /// Whether the trace itself is incomplete, so that every figure of the report is in doubt.
    pub fn is_damage(self) -> bool {
        matches!(self, Self::Events | Self::End)
    }
}

/// What a report lacks, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "LackLine")]
pub struct Lack {
    /// What it lacks.
    pub kind: LackKind,
    /// Why, in this trace.
    pub why: String,
}

/// As JSON has it. What is read back has its words from the kind again.
#[derive(Serialize)]
struct LackLine {
    kind: LackKind,
    what: &'static str,
    why: String,
    remedy: &'static str,
}

impl From<Lack> for LackLine {
    fn from(Lack { kind, why }: Lack) -> Self {
        Self { kind, what: kind.what(), why, remedy: kind.remedy() }
    }
}

/// Importance of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Weight {
    High,
    Medium,
    Low,
}

/// What can be seen of an entry at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Glance {
    /// The name from the program that it is about.
    pub name: String,
    /// What it amounts to.
    pub figure: String,
    /// The length of its bar, from 0 to 1.
    pub part: f64,
    /// Values over time, instead of a bar.
    pub course: Vec<u64>,
}

/// A notable fact about the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub weight: Weight,
    pub title: String,
    pub glance: Glance,
    pub says: Words,
    /// The page with details.
    pub page: Page,
}

/// The first few of a list, each a bar and a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Top {
    /// Heading of the list.
    pub title: String,
    /// What the order of the list means.
    pub means: String,
    /// The page with details.
    pub page: Page,
    /// One for each sentence.
    pub glances: Vec<Glance>,
    pub says: Vec<Words>,
}

/// Unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AxisUnit {
    /// Wall time since the start of the run, in nanoseconds.
    Nanos,
    /// Method entries and exits.
    Ticks,
    /// Bytes allocated.
    Bytes,
}

/// Events along an axis. Each list has one number per bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Axis {
    pub unit: AxisUnit,
    /// Width of a bin, in units.
    pub width: u64,
    /// Objects allocated in each bin.
    pub born_objects: Vec<u64>,
    /// Their bytes.
    pub born_bytes: Vec<u64>,
    /// Objects that died in it; empty if deaths are not known.
    pub died_objects: Vec<u64>,
    /// Their bytes.
    pub died_bytes: Vec<u64>,
    /// The last tick that was seen in a bin.
    pub ticks: Vec<u64>,
    /// The latest wall-clock time.
    pub nanos: Vec<u64>,
    /// The bytes allocated by then.
    pub bytes: Vec<u64>,
}

/// Flame graphs of what was allocated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flames {
    /// From the outermost method to the class.
    pub by_context: Flame,
    /// From the site to its callers.
    pub by_site: Flame,
    /// Limits of *dead within*, in bytes allocated between birth and death.
    pub limits: Vec<u64>,
    /// In a thousand: nodes with less in every measure are folded.
    pub folded_below: f64,
}

/// A moment of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub tick: u64,
    pub bytes: u64,
    pub nanos: u64,
}

/// How much of something was alive at each moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    pub name: String,
    /// Additional information: the class for a site, the callers for a context.
    pub detail: String,
    /// Objects alive at each moment.
    pub objects: Vec<u64>,
    /// Bytes alive at each moment.
    pub bytes: Vec<u64>,
}

/// What was alive at moments of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    pub moments: Vec<Moment>,
    pub objects: Vec<u64>,
    pub bytes: Vec<u64>,
    pub classes: Vec<Series>,
    pub sites: Vec<Series>,
    pub contexts: Vec<Series>,
}

impl Alive {
    /// The number of the last moment that is not after the requested one; `None` for the entry of a method, which is
    /// not in a report.
    pub fn number_of(&self, asked: &crate::heap::Moment) -> Option<usize> {
        use crate::heap::Moment as Asked;
        let last = self.moments.last()?;
        let until = |is_not_after: &dyn Fn(&Moment) -> bool| {
            Some(self.moments.partition_point(|moment| is_not_after(moment)).saturating_sub(1))
        };
        match asked {
            Asked::Percent(percent) => until(&|moment| moment.tick as f64 <= last.tick as f64 * percent / 100.0),
            Asked::Seconds(seconds) => until(&|moment| moment.nanos as f64 <= seconds * 1e9),
            Asked::Tick(tick) => until(&|moment| moment.tick <= *tick),
            Asked::Bytes(bytes) => until(&|moment| moment.bytes <= *bytes),
            Asked::Entry { .. } => None,
            Asked::End => Some(self.moments.len() - 1),
        }
    }
}

/// Objects by how long they lived: in bin *n* those that saw at least 2^(n-1) bytes allocated and less than 2^n.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    pub objects: Vec<u64>,
    pub bytes: Vec<u64>,
}

/// Lives of the objects of a class or a site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LifeLine {
    pub name: String,
    /// The class of a site; the method that asked for it.
    pub detail: String,
    /// Whose code the site is in.
    pub origin: Option<Origin>,
    /// Everything that was allocated.
    pub made: Amount,
    /// Of it what is alive at the end.
    pub alive: Amount,
    /// Lifetimes of those that died.
    pub died: Histogram,
    /// Bytes allocated between birth and death, on average.
    pub mean_age_bytes: f64,
    /// Of the time that the bytes of the dead were there, how much was after the last use: 0 to 1.
    pub drag_share: f64,
    /// Bytes times ticks between the last use and the death.
    pub drag_byte_ticks: f64,
    /// Objects that did not outlive the method that allocated them and that no other thread saw: they could be on the stack.
    pub on_stack: Amount,
    /// Objects that only the allocating thread saw.
    pub in_thread: Amount,
    /// Objects of which it is known whether other threads saw them.
    pub with_thread: Amount,
    /// Objects that no method was called on once they were made, as far as that can be known.
    pub unused: Amount,
    /// Objects of which it can be known.
    pub usable: Amount,
    /// Alive at the end, and not used in the second half of the run.
    pub stale: Amount,
    /// Objects that died within each limit.
    pub young: Vec<Amount>,
}

/// How long objects live.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifetimes {
    pub all: LifeLine,
    pub classes: Vec<LifeLine>,
    pub sites: Vec<LifeLine>,
    /// Limits for *dead within*.
    pub limits: Vec<u64>,
}

/// Objects of a site whose number only grew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Growth {
    pub site: String,
    /// The class of its objects.
    pub class: String,
    /// The innermost method outside the JDK that asked for most of them.
    pub caller: Option<String>,
    /// The calling context of most of what is alive, innermost first.
    pub context: Vec<String>,
    /// Everything that was allocated.
    pub made: Amount,
    /// Alive in the middle of the run.
    pub middle: Amount,
    /// What is alive at the end.
    pub end: Amount,
    /// Live bytes at each moment.
    pub bytes: Vec<u64>,
    /// Whether live bytes grew to the end of the run: in each part of its second half.
    pub still_grows: bool,
    /// Alive at the end, and not used in the second half of the run.
    pub stale: Amount,
    /// The fields that what is alive was stored into last, those with the most bytes first.
    pub stored_in: Vec<Holder>,
    /// The shortest ways that hold them at the end, for the first in the list.
    pub ways: Vec<Way>,
}

/// An object that retains more and more up to the end of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holding {
    /// The way to it, in the program's terms: `static shop.Main.CACHE → byWord`. Where no single object holds what grew, the ways to it.
    pub ways: Vec<String>,
    /// Whether a single object holds it.
    pub is_holder: bool,
    /// The class of the object; where none holds it, that of what grew.
    pub class: String,
    /// Whether the way, or what is held, is of code outside the JDK.
    pub is_programs: bool,
    /// Bytes that would be freed with it at the end.
    pub retained: u64,
    /// The same at half, three quarters and seven eighths of the run, and at the end, without what others in the list hold.
    pub course: Vec<u64>,
    /// The same when most was alive.
    pub at_peak: u64,
    /// Of what most of it is that came in the second half of the run.
    pub held: Option<Held>,
}

impl Holding {
    /// Bytes by which it grew in the second half of the run.
    pub fn grown(&self) -> u64 {
        self.course.last().zip(self.course.first()).map_or(0, |(last, first)| last.saturating_sub(*first))
    }
}

/// Objects of one class that are held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub class: String,
    /// Whether it is of code outside the JDK.
    pub is_programs: bool,
    /// Number of objects.
    pub objects: u64,
    /// Of them those that came in the second half of the run.
    pub new: u64,
    /// Where most of these were made.
    pub site: String,
    /// The innermost method outside the JDK that asked for most of them.
    pub caller: Option<String>,
}

/// What holds the heap at a moment: the top of its dominator tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retained {
    /// The clock then.
    pub tick: u64,
    /// Total size of all objects in bytes.
    pub bytes: u64,
    /// How many objects there are.
    pub count: u64,
    /// Objects that no other dominates but the mirror of a class, those that retain the most first, each followed by the largest that it dominates.
    pub objects: Vec<RetainedLine>,
    /// Classes with what their objects retain.
    pub classes: Vec<ClassLine>,
}

/// An object with what it retains, or several that are too small to be told apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetainedLine {
    /// Number of listed objects above it that dominate it.
    pub level: u32,
    /// Its id as in texts of the trace; `None` of several.
    pub object: Option<String>,
    /// Number of objects: 1 unless it is several.
    pub objects: u64,
    /// What holds it: the root, and the program's fields on the way; empty of several.
    pub holder: String,
    /// Empty of several of different classes.
    pub class: String,
    /// Where it was made, if it has a site.
    pub site: Option<String>,
    /// Its own size in bytes; 0 of several.
    pub bytes: u64,
    /// What would be freed with it, in bytes.
    pub retained: u64,
    /// Objects that it dominates immediately.
    pub dominates: u64,
}

/// What a root holds: a static field, a thread, a running method, the VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RootLine {
    pub root: String,
    /// Bytes that would be freed without it at the end. Where others hold the same objects as well, `root` says so.
    pub retained: u64,
    /// The same when most was alive.
    pub at_peak: u64,
    /// Objects that it holds at the end, without what these dominate.
    pub objects: u64,
}

/// What holds most of what was not used for long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// The class of which there is most.
    pub class: String,
    /// The way on which most of its objects are held, in the program's terms.
    pub way: String,
    /// The root on this way, with all that it holds.
    pub root: RootLine,
}

/// The shortest way to objects from outside the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// The root that holds the first object.
    pub root: String,
    /// Classes, with the field through which each is held.
    pub steps: Vec<String>,
    /// Objects held through this path.
    pub objects: u64,
}

impl Way {
    /// The path in one line.
    pub fn text(&self) -> String {
        std::iter::once(&self.root).chain(&self.steps).cloned().collect::<Vec<_>>().join(" → ")
    }
}

/// The slots that objects were last stored to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub field: String,
    pub bytes: u64,
}

/// Arrays of references that a field holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArrayLine {
    /// The field that held them; the site, where none did.
    pub owner: String,
    pub class: String,
    #[serde(flatten)]
    pub fill: Fill,
}

/// Objects of classes that keep things in arrays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionLine {
    pub class: String,
    pub made: Amount,
    /// Those that never got an array to keep anything in.
    pub without: Amount,
}

/// Exceptions of one class, from where they are thrown to where they are caught.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionLine {
    /// Class of the exceptions.
    pub class: String,
    /// The method that throws them.
    pub thrown_in: String,
    /// The method that catches them; `None` if none does.
    pub caught_in: Option<String>,
    /// Number of exceptions.
    pub count: u64,
    /// Methods that it left in between, on average.
    pub frames: f64,
    /// Thrown so often, and caught so near, that they are probably used for control flow and not for errors.
    pub is_control_flow: bool,
}

/// Suspected problems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspects {
    /// Objects that retain more and more, largest growth first.
    pub holdings: Vec<Holding>,
    /// What holds most of what was not used in the second half of the run.
    pub idle: Option<Idle>,
    /// Sites whose objects grew.
    pub growing: Vec<Growth>,
    /// Arrays of references, those that waste the most first.
    pub arrays: Vec<ArrayLine>,
    pub collections: Vec<CollectionLine>,
    pub exceptions: Vec<ExceptionLine>,
    /// How many exceptions were thrown.
    pub thrown: u64,
}

/// The whole report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Summary of the trace.
    pub summary: Summary,
    /// Missing information.
    pub lacks: Vec<Lack>,
    pub findings: Vec<Finding>,
    /// The first entries of each list in sentences.
    pub tops: Vec<Top>,
    /// Objects and bytes that were there when tracing began.
    pub initial: Amount,
    /// Events over time, by different axes.
    pub axes: Vec<Axis>,
    /// Flame graphs of allocations.
    pub flames: Flames,
    /// Whether calling contexts are known.
    pub has_contexts: bool,
    /// What was alive at each moment; `None` if deaths are unknown.
    pub alive: Option<Alive>,
    /// What retains the heap at the end; `None` if deaths are unknown.
    pub retained: Option<Retained>,
    /// The same when most was alive; `None` if that was at the end.
    pub retained_at_peak: Option<Retained>,
    /// What each root holds, at the end and when most was alive.
    pub roots: Vec<RootLine>,
    /// How long objects live; without deaths what was allocated.
    pub lifetimes: Lifetimes,
    /// Whether deaths are known.
    pub has_deaths: bool,
    /// Whether uses of objects are known, which most calls are, and how far objects escape.
    pub has_uses: bool,
    /// Whether reads of fields and elements are in the trace.
    pub has_witnesses: bool,
    pub suspects: Suspects,
}

impl Report {
    /// What it lacks of this kind, if anything.
    pub fn lack(&self, kind: LackKind) -> Option<&Lack> {
        self.lacks.iter().find(|lack| lack.kind == kind)
    }
}
