//! What events say of the objects that they tell of: type, size, site, stack. Most events say what others have said.

use et_format::event::Ticket;
use et_names::SiteId;

use super::events::ObjectEvent;
use crate::classes::ClassIndex;
use crate::record::{Alloc, AllocKind, StackId};
use crate::resolve::Anomalies;
use crate::resolve::allocs::Allocs;
use crate::resolve::sizes::Layout;
use crate::trace::Trace;
use crate::types::TypeId;

/// Number of entries for events of a kind, a power of two.
const ENTRIES: usize = 1 << 12;
/// Kinds of events: those of hooks at allocations, objects that the VM has made, objects that were found.
const KINDS: usize = 3;

/// Of an entry that says nothing: no class has that id.
const NO_KEY: u64 = u64::MAX;

/// An object: all that events tell of it but its id.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub kind: AllocKind,
    pub ty: TypeId,
    pub site: SiteId,
    pub stack: StackId,
    pub size: u64,
    pub length: u32,
}

impl From<Alloc> for Made {
    fn from(alloc: Alloc) -> Self {
        let Alloc { kind, ty, site, stack, size, length, .. } = alloc;
        Self { kind, ty, site, stack, size, length }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The site of an event, and its class or, for an array of a hook, the depth with a bit that no class has.
    key: u64,
    made: Made,
    /// Of arrays, which differ in size.
    layout: Option<Layout>,
    /// When this was looked up last.
    round: u32,
}

/// Looks up what events say, and remembers it where nothing about it is unusual.
#[derive(Debug)]
pub struct Maker<'a> {
    trace: &'a Trace,
    allocs: Allocs<'a>,
    recent: Vec<Entry>,
    round: u32,
    pub anomalies: Anomalies,
}

impl<'a> Maker<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        let nothing = Made {
            kind: AllocKind::New,
            ty: TypeId::UNKNOWN,
            site: SiteId(0),
            stack: StackId::NONE,
            size: 0,
            length: 0,
        };
        let entry = Entry { key: NO_KEY, made: nothing, layout: None, round: 0 };
        Self {
            trace,
            allocs: Allocs::new(trace),
            recent: vec![entry; KINDS * ENTRIES],
            round: 0,
            anomalies: Anomalies::default(),
        }
    }

    /// A piece begins: the first event of each kind in it is one of which [`of`](Self::of) says so.
    pub fn begin(&mut self) {
        self.round += 1;
    }

    /// What an event says, and whether it may be the first since [`begin`](Self::begin) to say it.
    #[inline]
    pub fn of(&mut self, told: ObjectEvent, now: Ticket) -> (Made, bool) {
        let (kind, site, second, length) = match told {
            ObjectEvent::New { site, class, .. } => (0, site, class.0, None),
            ObjectEvent::Array { depth, site, length, .. } => (0, site, 1 << 31 | u32::from(depth), Some(length)),
            ObjectEvent::Sighted { object, .. } if self.trace.classes.is_mirror(object) => {
                return (self.look_up(told, now), true);
            }
            ObjectEvent::Sighted { kind, site, class, length, .. } => {
                (1 + usize::from(kind == AllocKind::Found), site, class.0, u32::try_from(length).ok())
            }
        };
        let key = u64::from(site.0) << 32 | u64::from(second);
        let hash = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let place = kind * ENTRIES + hash % ENTRIES;
        let entry = &mut self.recent[place];
        if entry.key != key || entry.layout.is_some() != length.is_some() {
            return (self.remember(told, now, key, place), true);
        }
        let is_first = std::mem::replace(&mut entry.round, self.round) != self.round;
        let mut made = entry.made;
        if let (Some(layout), Some(length)) = (&entry.layout, length) {
            (made.size, made.length) = (layout.size(length), length);
        }
        (made, is_first)
    }

    #[cold]
    fn remember(&mut self, told: ObjectEvent, now: Ticket, key: u64, place: usize) -> Made {
        let before = std::mem::take(&mut self.anomalies);
        let made = self.look_up(told, now);
        let is_usual = self.anomalies == Anomalies::default();
        let found = std::mem::replace(&mut self.anomalies, before);
        self.anomalies.add(&found);
        let layout = match told {
            ObjectEvent::Sighted { length, .. } if length < 0 => None,
            ObjectEvent::Array { .. } | ObjectEvent::Sighted { .. } => self.allocs.layout(made.ty),
            ObjectEvent::New { .. } => None,
        };
        if is_usual && self.trace.classes.have_own_mirrors() {
            self.recent[place] = Entry { key, made, layout, round: self.round };
        }
        made
    }

    /// The mirror of a class.
    pub fn mirror(&self, class: ClassIndex) -> Made {
        self.allocs.mirror(class).into()
    }

    /// What an event says, whatever others have said.
    pub fn look_up(&mut self, told: ObjectEvent, now: Ticket) -> Made {
        let Self { allocs, anomalies, trace, .. } = self;
        let alloc = match told {
            ObjectEvent::New { site, class, .. } => allocs.new_object(site, class, now, anomalies),
            ObjectEvent::Array { depth, site, length, .. } => allocs.new_array(depth, site, length, anomalies),
            ObjectEvent::Sighted { kind, site, object, class, length } => {
                let (_, stack) = trace.stacks.split(site);
                Alloc { stack, ..allocs.sighted(kind, object, class, length, now, anomalies) }
            }
        };
        alloc.into()
    }
}
