//! Objects that are known by their numbers, and fields by their ids, for people.

use std::io;

use et_names::{FieldId, MethodId, SiteId};
use et_reader::naming::Naming;
use et_reader::population::{Columns, Groups, Key};
use et_reader::record::{ObjectId, Slot, ThreadId};
use et_reader::references::References;
use et_reader::source::Source;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fold::{fold_groups, groups_where};
use crate::labels::Labels;

/// An object that another one is told of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Hexadecimal, as in texts.
    pub id: String,
    pub class: String,
}

/// Finds ids and classes of objects by their numbers, which are sorted. `objects` are in whatever order: in that of time, few groups
/// have one of them.
pub(crate) fn named(objects: &dyn Groups, labels: Labels<'_>, wanted: &[u64]) -> io::Result<FxHashMap<u64, Named>> {
    let columns = Columns::NUMBER | Columns::OBJECT | Columns::CLASS;
    let groups = groups_where(objects, |group| {
        let numbers = objects.range(group, Key::Number)?;
        let next = wanted.partition_point(|number| number < numbers.start());
        Ok(wanted.get(next).is_some_and(|number| numbers.contains(number)))
    })?;
    let found = fold_groups(
        objects,
        &groups,
        columns,
        Vec::new,
        |found, _, rows| {
            let at = (0..rows.len).filter(|&row| wanted.binary_search(&rows.number[row]).is_ok());
            found.extend(at.map(|row| (rows.number[row], rows.object[row], rows.class[row])));
        },
        |mut one: Vec<_>, mut other| {
            one.append(&mut other);
            one
        },
    )?;
    let name = |(number, ObjectId(id), class)| (number, Named { id: format!("{id:x}"), class: labels.class(class) });
    Ok(found.into_iter().map(name).collect())
}

/// A thread for people: its name, or its number.
pub(crate) fn thread(source: &Source, thread: ThreadId) -> String {
    let name = source.trace().and_then(|trace| trace.thread_name(thread.0)).filter(|name| !name.is_empty());
    name.map_or_else(|| format!("thread {}", thread.0), str::to_owned)
}

/// A method on a stack for people, with the line of the call at which it is, if that is known.
pub(crate) fn frame(naming: Naming<'_>, method: MethodId, at: SiteId) -> String {
    if at.0 == 0 { naming.method(method) } else { naming.site(at) }
}

/// A field for people: `java.util.HashMap.table`.
pub(crate) fn field(naming: Naming<'_>, references: &dyn References, id: FieldId) -> String {
    let extra = id.0.checked_sub(et_names::ID_LIMIT).and_then(|at| references.extra_fields().get(at as usize));
    match extra {
        Some(extra) => format!("{}.{}", extra.class.replace('/', "."), extra.name),
        None => naming.field(id),
    }
}

/// A slot for people: its field, or `[7]`.
pub(crate) fn slot(naming: Naming<'_>, references: &dyn References, slot: Slot) -> String {
    match slot {
        Slot::Field(id) => field(naming, references, id),
        Slot::Element(index) => format!("[{index}]"),
    }
}
