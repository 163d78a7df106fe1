//! The result of a comparison.

use et_names::FieldId;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::early::{self, Early};
use super::kept::{self, Kept};
use et_reader::record::ObjectId;
use et_reader::types::{TypeId, Types, for_people};

/// Counters during the comparison.
#[derive(Debug, Default)]
pub struct Tally {
    pub objects: u64,
    pub alive: u64,
    /// Held by the last collection, and dead after its start.
    pub died_after: u64,
    /// Allocated after the start of the last collection, and not among what was held.
    pub made_after: u64,
    pub unclear: u64,
    pub unknown: u64,
    /// Freed by the first collection that began after their death, by the second, and so on.
    pub freed_by: Vec<u64>,
}

impl Tally {
    /// Counts an object that was freed after `passed` collections that could have freed it.
    pub fn freed(&mut self, passed: usize) {
        if self.freed_by.len() <= passed {
            self.freed_by.resize(passed + 1, 0);
        }
        self.freed_by[passed] += 1;
    }
}

/// Objects of a class with the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Description of the cause.
    pub cause: String,
    /// Class of the objects.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Their total size.
    pub bytes: u64,
    /// Of these, such as only another of them holds.
    pub through: u64,
}

/// An object that should not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Example {
    /// Object id in hexadecimal.
    pub object: String,
    pub class: String,
    pub history: String,
}

/// The result of a comparison of the trace with the collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Number of collections.
    pub collections: u64,
    /// Sampling interval: the collector was asked about one in this many objects.
    pub share: u32,
    /// Whether it was asked at the end what it held.
    pub asked_at_end: bool,
    /// Objects that it was asked about.
    pub objects: u64,
    /// Objects alive at the end in both views.
    pub alive: u64,
    /// Held by the last collection, and dead in the trace after its start.
    pub died_after: u64,
    /// Allocated after the start of the last collection, perhaps after the collector was asked what it held.
    pub made_after: u64,
    /// Both say: dead. Freed by the first collection that could.
    pub freed_at_once: u64,
    /// Freed by a later collection than possible.
    pub freed_later: u64,
    /// Maximum number of collections by which an object was late.
    pub most_late: u64,
    /// Dead, and not freed as far as is known.
    pub not_freed: u64,
    /// The collector said nothing of them at all.
    pub not_told: u64,
    /// It said something of ids that no object of the trace has.
    pub unknown: u64,
    /// It said something of ids that several objects had.
    pub unclear: u64,
    /// Freed although the trace holds them: errors of the trace.
    pub errors: Vec<Group>,
    /// Freed although the trace holds them, as it does by definition.
    pub by_definition: Vec<Group>,
    /// Held by the collector at the end although the trace says that they are dead.
    pub kept: Vec<Group>,
    /// Examples of errors.
    pub examples: Vec<Example>,
    /// Some that were kept and that nothing explains.
    pub kept_examples: Vec<Example>,
}

impl Report {
    /// Whether the collector freed nothing that the trace holds without an excuse.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Copies the counters.
    pub fn count(&mut self, tally: &Tally) {
        self.objects = tally.objects;
        self.alive = tally.alive;
        self.died_after = tally.died_after;
        self.made_after = tally.made_after;
        self.unclear = tally.unclear;
        self.unknown = tally.unknown;
        self.freed_at_once = tally.freed_by.first().copied().unwrap_or(0);
        self.freed_later = tally.freed_by.iter().skip(1).sum();
        self.most_late = tally.freed_by.len().saturating_sub(1) as u64;
    }

    /// Adds objects freed although the trace holds them.
    pub fn add_early(&mut self, all: &[Early], types: &Types, field: impl Fn(FieldId) -> String, examples: usize) {
        let mut groups = Groups::default();
        let mut by_definition = Groups::default();
        for early in all {
            let groups = if early.cause.is_by_definition() { &mut by_definition } else { &mut groups };
            groups.add(early.cause, early.ty, early.size, early.through);
        }
        let text = |cause| match cause {
            early::Cause::Running => "receiver of a method that had not returned".to_owned(),
            early::Cause::InFlight => "exception that was not caught yet".to_owned(),
            early::Cause::Constant => "constant string of a class, taken to live to the end".to_owned(),
            early::Cause::Class => "class or class loader, taken to live to the end".to_owned(),
            early::Cause::Thread => "Thread of a thread that had not ended".to_owned(),
            early::Cause::Unasked => "held by an object that the collector was not asked about".to_owned(),
            early::Cause::Start => "there at the start, taken to be held by the VM".to_owned(),
            early::Cause::Mentioned => "mentioned again".to_owned(),
            early::Cause::Field(id) => format!("held by {}", field(id)),
            early::Cause::Element => "held by an element of an array".to_owned(),
            early::Cause::Static(id) => format!("held by static {}", field(id)),
            early::Cause::Unknown => "unknown".to_owned(),
        };
        self.errors = groups.finish(types, text);
        self.by_definition = by_definition.finish(types, text);
        // Those with a cause of their own show best what is wrong.
        let mut errors: Vec<&Early> = all.iter().filter(|early| !early.cause.is_by_definition()).collect();
        errors.sort_by_key(|early| (early.through, early.at, early.id));
        self.examples =
            errors.into_iter().take(examples).map(|early| example(early, types, text(early.cause))).collect();
    }

    /// Adds objects held although they are dead in the trace.
    pub fn add_kept(&mut self, all: &[Kept], types: &Types, examples: usize) {
        let mut groups = Groups::default();
        all.iter().for_each(|kept| groups.add(kept.cause, kept.ty, kept.size, kept.through));
        self.kept = groups.finish(types, |cause| {
            match cause {
                kept::Cause::Vm => "made by the VM, which holds it in a place of its own",
                kept::Cause::Linkage => "linked by the VM: method handles and call sites in constant pools",
                kept::Cause::Soft => "softly reachable",
                kept::Cause::Local => "last used by a thread that still ran: a local variable may hold it",
                kept::Cause::Finalizer => "its finalizer had just run",
                kept::Cause::Unknown => "unknown (native code, the VM)",
            }
            .to_owned()
        });
        let unknown = all.iter().filter(|kept| kept.cause == kept::Cause::Unknown && !kept.through);
        self.kept_examples = unknown
            .take(examples)
            .map(|kept| Example {
                object: format!("{:x}", kept.id.0),
                class: for_people(types.descriptor(kept.ty)),
                history: format!("record {}, last mentioned by {} at {}", kept.born, kept.last.1, kept.last.0),
            })
            .collect();
    }
}

fn example(early: &Early, types: &Types, cause: String) -> Example {
    let name = |ty| for_people(types.descriptor(ty));
    let shown = |id: ObjectId| format!("{:x}", id.0);
    let (last, letter) = early.last;
    let mut history = format!("record {}, last mentioned by {letter} at {last}", early.born);
    history += &format!("; freed by collection {} behind {}; {cause}", early.collection, early.at);
    if let Some((id, ty)) = early.holder {
        history += &format!(" of {} {}", name(ty), shown(id));
    }
    if let Some((position, letter)) = early.later {
        history += &format!(": {letter} at {position}");
    }
    Example { object: shown(early.id), class: name(early.ty), history }
}

/// Objects, bytes, and objects held through others, by cause and class.
struct Groups<C>(FxHashMap<(C, TypeId), (u64, u64, u64)>);

impl<C> Default for Groups<C> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<C: Copy + Eq + std::hash::Hash> Groups<C> {
    fn add(&mut self, cause: C, ty: TypeId, bytes: u64, through: bool) {
        let sum = self.0.entry((cause, ty)).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes, sum.2 + u64::from(through));
    }

    /// Groups by size, largest first.
    fn finish(self, types: &Types, text: impl Fn(C) -> String) -> Vec<Group> {
        let group = |((cause, ty), (objects, bytes, through))| Group {
            cause: text(cause),
            class: for_people(types.descriptor(ty)),
            objects,
            bytes,
            through,
        };
        let mut groups: Vec<Group> = self.0.into_iter().map(group).collect();
        groups.sort_by(|a, b| b.objects.cmp(&a.objects).then_with(|| (&a.cause, &a.class).cmp(&(&b.cause, &b.class))));
        groups
    }
}
