//! The events of a trace that tells how objects were made.

use et_format::event::{self, Event, ObjectHash, Ticket};
use et_names::{FieldRefId, SiteId};

use crate::record::AllocKind;

/// An event that tells of an object.
#[derive(Clone, Copy, Debug)]
pub enum ObjectEvent {
    New { site: SiteId, object: ObjectHash, class: ObjectHash },
    Array { depth: u8, site: SiteId, object: ObjectHash, length: u32 },
    Sighted { kind: AllocKind, site: SiteId, object: ObjectHash, class: ObjectHash, length: i32 },
}

impl ObjectEvent {
    pub fn object(self) -> ObjectHash {
        match self {
            Self::New { object, .. } | Self::Array { object, .. } | Self::Sighted { object, .. } => object,
        }
    }
}

/// What an event says.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// The events that follow belong to this ticket.
    Ticket(Ticket),
    /// A new object.
    Born(ObjectEvent),
    /// An object that is new unless it has been told of before.
    Perhaps(ObjectEvent),
    /// A store: of an element of an array that one instruction has made together with its elements, or to a field, by a class that was made at
    /// run time.
    Put { field: Option<FieldRefId>, origin: ObjectHash, target: ObjectHash },
    /// Nothing: it is of null.
    Nothing,
}

/// The trace has other events, or is damaged: it has to be read in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

/// The events of a piece from an offset on.
#[derive(Debug)]
pub struct Items<'b> {
    bytes: &'b [u8],
    /// Offset of the next event.
    pub at: usize,
}

impl<'b> Items<'b> {
    pub fn new(bytes: &'b [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The next event, and its offset; `None` at the end.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<(u32, Item)>, Unfit> {
        let at = self.at;
        let Some((event, len)) = event::decode(self.bytes.get(at..).unwrap_or_default()).map_err(|_| Unfit)? else {
            return Ok(None);
        };
        self.at += len;
        let item = match event {
            Event::New { site, object, class, known } => {
                let told = ObjectEvent::New { site, object, class };
                match known {
                    _ if object.is_null() => return Err(Unfit),
                    true => Item::Perhaps(told),
                    false => Item::Born(told),
                }
            }
            Event::NewArray { object, .. } if object.is_null() => return Err(Unfit),
            Event::NewArray { depth, site, object, length } => {
                Item::Born(ObjectEvent::Array { depth, site, object, length })
            }
            Event::Ticket(ticket) => Item::Ticket(ticket),
            Event::PutElement { array, target, index: _ } => Item::Put { field: None, origin: array, target },
            Event::PutField { field, origin, target, if_changed: false } => {
                Item::Put { field: Some(field), origin, target }
            }
            Event::PutStatic { field, target } => Item::Put { field: Some(field), origin: ObjectHash::NULL, target },
            Event::Found { object, class, length } => {
                sighted(false, ObjectEvent::Sighted { kind: AllocKind::Found, site: SiteId(0), object, class, length })
            }
            Event::Made { object, class, length, fresh, constant: _ } => {
                sighted(fresh, ObjectEvent::Sighted { kind: AllocKind::Vm, site: SiteId(0), object, class, length })
            }
            Event::MadeAt { site, object, class, length, fresh } => {
                sighted(fresh, ObjectEvent::Sighted { kind: AllocKind::Vm, site, object, class, length })
            }
            _ => return Err(Unfit),
        };
        Ok(Some((at as u32, item)))
    }
}

fn sighted(is_new: bool, told: ObjectEvent) -> Item {
    match is_new {
        _ if told.object().is_null() => Item::Nothing,
        true => Item::Born(told),
        false => Item::Perhaps(told),
    }
}
