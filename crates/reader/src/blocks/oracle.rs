//! What a walk through a part is told of what was before it.

use std::collections::VecDeque;

use et_format::event::{ObjectHash, Ticket};
use et_names::{FieldId, FieldRefId, ID_LIMIT};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::classes::ClassIndex;
use crate::lifetimes::Change;
use crate::resolve::fields::Fields;
use crate::resolve::{Anomalies, ObjectIds};
use crate::trace::Trace;

/// What is known of the trace before a part.
pub trait Oracle {
    /// Whether everything is known, and nothing is assumed.
    const IS_EXACT: bool;
    /// Whether an object with this hash has been seen.
    fn knows(&mut self, hash: ObjectHash) -> bool;
    /// Whether an object whose allocation may have been seen, or not, is new.
    fn is_new(&mut self, hash: ObjectHash) -> bool;
    /// Events from this ticket on follow. Returns the ticket of those before.
    fn segment(&mut self, ticket: Ticket) -> Ticket;
    /// The next class that was prepared before `ticket`.
    fn next_mirror(&mut self, ticket: Ticket) -> Option<ClassIndex>;
    /// The mirror of a class is known now.
    fn saw_mirror(&mut self, hash: ObjectHash);
    /// Whether the VM held something before `ticket` that has not been told.
    fn is_due(&self, ticket: Ticket) -> bool;
    /// That object, whether it was held until then (or from then on, to the end), and for which thread.
    fn next_hold(&mut self, ticket: Ticket) -> Option<(ObjectHash, bool, u32)>;
    fn field(&mut self, field: FieldRefId, anomalies: &mut Anomalies) -> FieldId;
}

/// Assumes what is nearly always so: objects that are named are known, those that are found are not, and mirrors become
/// known when their class is prepared.
#[derive(Debug)]
pub struct Likely<'w, 'a> {
    trace: &'a Trace,
    /// The classes that are prepared in the group.
    mirrors: std::slice::Iter<'w, (Ticket, ClassIndex)>,
    /// Their mirrors, as long as they are not known.
    unknown: FxHashSet<ObjectHash>,
    fields: &'w mut FxHashMap<FieldRefId, FieldId>,
    /// A field is in no table: fields get numbers in the order in which they occur.
    pub lacks_field: bool,
}

impl<'w, 'a> Likely<'w, 'a> {
    pub fn new(
        trace: &'a Trace,
        mirrors: &'w [(Ticket, ClassIndex)],
        fields: &'w mut FxHashMap<FieldRefId, FieldId>,
    ) -> Self {
        let unknown = mirrors.iter().map(|(_, class)| trace.classes.get(*class).record.class).collect();
        Self { trace, mirrors: mirrors.iter(), unknown, fields, lacks_field: false }
    }
}

impl Oracle for Likely<'_, '_> {
    const IS_EXACT: bool = false;
    fn knows(&mut self, hash: ObjectHash) -> bool {
        !self.unknown.contains(&hash)
    }
    fn is_new(&mut self, _hash: ObjectHash) -> bool {
        true
    }
    fn segment(&mut self, ticket: Ticket) -> Ticket {
        ticket
    }
    fn next_mirror(&mut self, ticket: Ticket) -> Option<ClassIndex> {
        let &(before, class) = self.mirrors.as_slice().first()?;
        (before < ticket).then(|| {
            self.mirrors.next();
            class
        })
    }
    fn saw_mirror(&mut self, hash: ObjectHash) {
        self.unknown.remove(&hash);
    }
    fn is_due(&self, _ticket: Ticket) -> bool {
        false
    }
    fn next_hold(&mut self, _ticket: Ticket) -> Option<(ObjectHash, bool, u32)> {
        None
    }
    fn field(&mut self, field: FieldRefId, _anomalies: &mut Anomalies) -> FieldId {
        if let Some(&known) = self.fields.get(&field) {
            return known;
        }
        match self.trace.names.resolve_field_ref(field, &self.trace.types) {
            Some(found) => {
                self.fields.insert(field, found);
                found
            }
            None => {
                self.lacks_field = true;
                FieldId(ID_LIMIT)
            }
        }
    }
}

/// What is known in order.
#[derive(Debug)]
pub struct Before<'a> {
    trace: &'a Trace,
    pub ids: ObjectIds,
    pub fields: Fields,
    /// Index of the next class whose mirror has no record yet.
    next_mirror: u32,
    /// When the VM held what, in order, and how many of these are to come, by object.
    pub holds: VecDeque<(Ticket, ObjectHash, Change)>,
    pub held_later: FxHashMap<ObjectHash, u32>,
    /// The ticket of the last events.
    pub now: Ticket,
}

impl<'a> Before<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            ids: ObjectIds::default(),
            fields: Fields::new(&trace.names),
            next_mirror: 0,
            holds: VecDeque::new(),
            held_later: FxHashMap::default(),
            now: Ticket(0),
        }
    }

    /// Whether the VM holds the object later.
    pub fn holds_later(&self, hash: ObjectHash) -> bool {
        self.held_later.get(&hash).is_some_and(|&count| count > 0)
    }
}

impl Oracle for Before<'_> {
    const IS_EXACT: bool = true;
    fn knows(&mut self, hash: ObjectHash) -> bool {
        self.ids.current(hash).is_some()
    }
    fn is_new(&mut self, hash: ObjectHash) -> bool {
        self.ids.current(hash).is_none()
    }
    fn segment(&mut self, ticket: Ticket) -> Ticket {
        std::mem::replace(&mut self.now, ticket)
    }
    fn next_mirror(&mut self, ticket: Ticket) -> Option<ClassIndex> {
        while (self.next_mirror as usize) < self.trace.classes.len() {
            let index = ClassIndex(self.next_mirror);
            let record = &self.trace.classes.get(index).record;
            if record.ticket >= ticket {
                return None;
            }
            self.next_mirror += 1;
            if !record.class.is_null() {
                return Some(index);
            }
        }
        None
    }
    fn saw_mirror(&mut self, _hash: ObjectHash) {}
    fn is_due(&self, ticket: Ticket) -> bool {
        self.holds.front().is_some_and(|(change, ..)| *change < ticket)
    }
    fn next_hold(&mut self, ticket: Ticket) -> Option<(ObjectHash, bool, u32)> {
        if !self.is_due(ticket) {
            return None;
        }
        let (_, hash, change) = self.holds.pop_front()?;
        if let Some(count) = self.held_later.get_mut(&hash) {
            *count -= 1;
        }
        Some(match change {
            Change::Thread(thread) => (hash, true, thread.0),
            Change::Loader => (hash, false, 0),
        })
    }
    fn field(&mut self, field: FieldRefId, anomalies: &mut Anomalies) -> FieldId {
        self.fields.of_ref(field, &self.trace.names, &self.trace.types, anomalies)
    }
}
