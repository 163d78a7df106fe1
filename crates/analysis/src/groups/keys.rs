//! What tells groups apart.

use et_names::units::bytes;
use et_reader::made_in::Places;
use et_reader::model::{ContextId, Node};
use et_reader::owners::{Origin, Owners};
use et_reader::population::{Columns, Rows};
use et_reader::record::ThreadId;
use et_reader::types::{TypeId, for_people};
use serde::Serialize;

use super::{At, Query, Subject, What};
use crate::heap::dominators::NONE;
use crate::named;
use crate::place::Spot;

/// A level of the tree of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// The package of the class.
    Package,
    Class,
    /// Where it was made.
    Site,
    /// The innermost methods that were running when it was made.
    Context,
    /// The thread that made it.
    Thread,
    /// What was allocated during its life: up to the moment that is asked about, or to its death.
    Age,
    /// Whether it is used again, and whether it dies.
    Fate,
    /// The class of the program that owns it: that of the nearest object that dominates it and is of such a class.
    Owner,
}

impl Level {
    /// All of them with their names in commands and links.
    pub const ALL: [(&'static str, Self); 8] = [
        ("package", Self::Package),
        ("class", Self::Class),
        ("site", Self::Site),
        ("context", Self::Context),
        ("thread", Self::Thread),
        ("age", Self::Age),
        ("fate", Self::Fate),
        ("owner", Self::Owner),
    ];

    /// The level of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, level)| level)
    }

    /// Whether it is known when an object is made.
    pub fn is_of_birth(self) -> bool {
        !matches!(self, Self::Age | Self::Fate | Self::Owner)
    }

    /// Whether it is only known of what is alive at a moment.
    pub fn is_of_moments(self) -> bool {
        self == Self::Owner
    }

    pub(super) fn columns(self) -> Columns {
        match self {
            Self::Package | Self::Class => Columns::CLASS,
            Self::Site => Spot::columns(),
            Self::Context => Columns::CONTEXT,
            Self::Thread => Columns::THREAD,
            Self::Age => Columns::BIRTH_BYTES | Columns::DEATH_BYTES,
            Self::Fate => Columns::DEATH_TICK | Columns::LAST_USE_TICK,
            Self::Owner => Columns::CLASS,
        }
    }
}

/// What a row has in a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Number(u64),
    Spot(Spot),
}

/// Innermost methods that tell contexts apart.
const CONTEXT: usize = 4;
/// The age of the youngest group, in bytes. Each other begins at four times the age of the one before.
const YOUNGEST: u64 = 64 << 10;
/// Groups of ages.
const AGES: u64 = 12;
/// What no object of the program owns.
const NOBODY: u64 = 0;

/// Keys of rows, and their names.
pub(super) struct Keys<'a> {
    subject: Subject<'a>,
    /// The package of each class.
    packages: Vec<u32>,
    package_names: Vec<String>,
    /// Bytes allocated by the moment, and the moment.
    at: Option<(u64, u64)>,
    /// Of each node the class of its owner, from 1.
    owners: Vec<u64>,
    owner_names: Vec<String>,
}

impl<'a> Keys<'a> {
    pub fn new(subject: Subject<'a>, what: What<'_, '_>, query: &Query) -> Self {
        let types = &subject.population.types;
        let mut package_names: Vec<String> = Vec::new();
        let mut numbers = rustc_hash::FxHashMap::default();
        let packages = (0..types.len() as u32).map(|class| {
            let name = package(types.descriptor(TypeId(class)));
            *numbers.entry(name).or_insert_with_key(|name: &String| {
                package_names.push(name.clone());
                package_names.len() as u32 - 1
            })
        });
        let packages = packages.collect();
        let (at, owners, owner_names) = match what {
            What::Alive(at) => {
                // They take a look at everything that is alive.
                let is_asked = query.by.contains(&Level::Owner);
                let (owners, names) = if is_asked { owners(subject, at) } else { Default::default() };
                (Some((at.resident.snapshot.taken().allocated_bytes, at.tick)), owners, names)
            }
            _ => (None, Vec::new(), Vec::new()),
        };
        Self { subject, packages, package_names, at, owners, owner_names }
    }

    /// What a row has in a level.
    pub fn of(&self, level: Level, rows: &Rows, row: usize) -> Key {
        Key::Number(match level {
            Level::Site => return Key::Spot(Spot::of(rows, row)),
            Level::Package => self.packages[rows.class[row].0 as usize].into(),
            Level::Class => rows.class[row].0.into(),
            Level::Context => rows.context[row].0.into(),
            Level::Thread => rows.thread[row].0.into(),
            Level::Age => {
                let until = match self.at {
                    Some((bytes, _)) => bytes,
                    None => rows.death_bytes[row].unwrap_or(self.subject.population.end.bytes),
                };
                group_of_age(until.saturating_sub(rows.birth_bytes[row]))
            }
            Level::Fate => {
                let has_uses = self.subject.population.has_uses;
                let is_used_again = has_uses && self.at.is_some_and(|(_, tick)| rows.last_use_tick[row] >= tick);
                u64::from(is_used_again) << 1 | u64::from(rows.death_tick[row].is_some())
            }
            Level::Owner => self.owners.get(row).copied().unwrap_or(NOBODY),
        })
    }

    /// How a group is identified, and its name for people.
    pub fn name(&self, level: Level, key: Key, places: &mut Places<'_>) -> (String, String) {
        let labels = self.subject.labels();
        let number = match key {
            Key::Spot(spot) => {
                let (place, _) = spot.place(places, self.subject.population);
                let name = labels.made_in(place);
                return (name.clone(), name);
            }
            Key::Number(number) => number,
        };
        let name = match level {
            Level::Package => self.package_names.get(number as usize).cloned().unwrap_or_default(),
            Level::Class | Level::Site => labels.class(TypeId(number as u32)),
            Level::Context => context(self.subject, ContextId(number as u32)),
            Level::Thread => return (number.to_string(), thread(self.subject, ThreadId(number as u32))),
            Level::Age => return (number.to_string(), age(number)),
            Level::Fate => fate(number, self.at.is_some() && self.subject.population.has_uses).to_owned(),
            Level::Owner => match number {
                NOBODY => "nothing of the program".to_owned(),
                number => self.owner_names.get(number as usize - 1).cloned().unwrap_or_default(),
            },
        };
        (name.clone(), name)
    }
}

/// `java.util`
fn package(descriptor: &str) -> String {
    let name = descriptor.trim_start_matches('[');
    if !name.starts_with('L') {
        let is_array = descriptor.starts_with('[');
        return if is_array { "arrays of primitive types" } else { "classes that are not known" }.to_owned();
    }
    let name = for_people(name);
    // What is made at run time has a slash behind the name of its host.
    let name = name.split('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or_else(|| "the unnamed package".to_owned(), |(package, _)| package.to_owned())
}

fn context(subject: Subject<'_>, id: ContextId) -> String {
    if id == ContextId::EMPTY {
        return "no method".to_owned();
    }
    let naming = subject.labels().naming();
    let frames = subject.population.contexts.frames(id).take(CONTEXT);
    frames.map(|frame| named::frame(naming, frame.method, frame.at)).collect::<Vec<_>>().join(" < ")
}

fn thread(subject: Subject<'_>, thread: ThreadId) -> String {
    if thread.0 == 0 { "not known".to_owned() } else { named::thread(subject.source, thread) }
}

fn group_of_age(bytes: u64) -> u64 {
    let times = bytes / YOUNGEST;
    if times == 0 { 0 } else { (u64::from(times.ilog2()) / 2 + 1).min(AGES - 1) }
}

fn age(group: u64) -> String {
    let from = |group: u64| YOUNGEST << (2 * (group - 1));
    match group {
        0 => format!("below {}", bytes(YOUNGEST)),
        group if group == AGES - 1 => format!("{} and more", bytes(from(group))),
        group => format!("{} to {}", bytes(from(group)), bytes(from(group + 1))),
    }
}

fn fate(number: u64, tells_uses: bool) -> &'static str {
    match (number, tells_uses) {
        (0, true) => "not used again, alive at the end",
        (1, true) => "not used again, dies",
        (2, _) => "used again, alive at the end",
        (3, _) => "used again, dies",
        (1, false) => "dies",
        _ => "alive at the end",
    }
}

/// Of each node the class of the nearest object of the program that dominates it, and the names of these classes.
fn owners(subject: Subject<'_>, at: At<'_, '_>) -> (Vec<u64>, Vec<String>) {
    let snapshot = &at.resident.snapshot;
    let owning = Owners::of(subject.source);
    let of_program: Vec<bool> =
        snapshot.classes().map(|(_, class)| owning.origin_of_descriptor(&class.descriptor) != Origin::Jdk).collect();
    let names = snapshot.classes().map(|(_, class)| for_people(&class.descriptor)).collect();
    let mut owners = vec![NOBODY; snapshot.len()];
    let tree = &at.dominance.tree;
    // Each comes after what dominates it.
    for &node in tree.order().iter().skip(1) {
        let above = tree.above(node);
        if above == NONE || above as usize >= snapshot.len() {
            continue;
        }
        let class = snapshot.object(Node(above)).class.0;
        owners[node as usize] = if of_program[class as usize] { u64::from(class) + 1 } else { owners[above as usize] };
    }
    (owners, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_groups_that_meet() {
        for group in 1..AGES - 1 {
            let from = YOUNGEST << (2 * (group - 1));
            assert_eq!((group_of_age(from - 1), group_of_age(from)), (group - 1, group));
        }
        assert_eq!(group_of_age(u64::MAX), AGES - 1);
        assert_eq!((age(0).as_str(), age(1).as_str()), ("below 64.0 KiB", "64.0 KiB to 256.0 KiB"));
    }

    #[test]
    fn packages_are_those_of_elements() {
        let names = ["Ljava/lang/String;", "[[Lshop/Order;", "[I", "LMain;"].map(package);
        assert_eq!(names, ["java.lang", "shop", "arrays of primitive types", "the unnamed package"]);
    }
}
