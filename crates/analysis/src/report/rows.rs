//! Objects as the report looks at them, one after the other.

use std::io;

use et_reader::made_in::{Made, MadeIn, Places};
use et_reader::model::ContextId;
use et_reader::population::{Columns, Moment, Population};
use et_reader::record::AllocKind;
use et_reader::survival::Fate;
use et_reader::types::TypeId;

use crate::fold::in_order;
use et_reader::amount::Amount;

/// An object's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub class: TypeId,
    pub place: MadeIn,
    pub context: ContextId,
    /// It was there when tracing began.
    pub is_initial: bool,
    pub size: u64,
    /// The size, and how many objects the row stands for.
    pub amount: Amount,
    pub birth: Moment,
    pub last_use: u64,
    /// `None` if it is alive at the end.
    pub death: Option<Moment>,
    /// What walks through the heap say of it, where they do.
    pub fate: Option<Fate>,
    pub escaped_thread: Option<bool>,
    pub escaped_frame: Option<bool>,
}

impl Object {
    /// Whether the last walk through the heap did not find it.
    pub fn is_missed(&self) -> bool {
        self.fate.is_some_and(|fate| fate.missed.is_some())
    }
}

/// Calls `see` with each object.
pub(super) fn each(population: &Population, places: &mut Places<'_>, mut see: impl FnMut(&Object)) -> io::Result<()> {
    const WANTED: [Columns; 15] = [
        Columns::CLASS,
        Columns::KIND,
        Columns::SIZE,
        Columns::SITE,
        Columns::CONTEXT,
        Columns::BIRTH_TICK,
        Columns::BIRTH_BYTES,
        Columns::BIRTH_NANOS,
        Columns::LAST_USE_TICK,
        Columns::DEATH_TICK,
        Columns::DEATH_BYTES,
        Columns::DEATH_NANOS,
        Columns::ESCAPED_THREAD,
        Columns::ESCAPED_FRAME,
        Columns::FATE,
    ];
    let wanted = WANTED.into_iter().fold(WANTED[0], |all, column| all | column);
    in_order(population, wanted, |rows| {
        for at in 0..rows.len {
            let birth = Moment { tick: rows.birth_tick[at], bytes: rows.birth_bytes[at], nanos: rows.birth_nanos[at] };
            let death = rows.death_tick[at].map(|tick| Moment {
                tick,
                bytes: rows.death_bytes[at].unwrap_or(birth.bytes),
                nanos: rows.death_nanos[at],
            });
            let made = Made { kind: rows.kind[at], site: rows.site[at], ty: rows.class[at] };
            see(&Object {
                class: rows.class[at],
                place: places.in_context(made, rows.context[at], &population.contexts, &population.types),
                context: rows.context[at],
                is_initial: rows.kind[at] == AllocKind::Initial,
                size: rows.size[at],
                amount: Amount::of(rows, at),
                birth,
                last_use: rows.last_use_tick[at],
                death,
                fate: rows.fate[at],
                escaped_thread: rows.escaped_thread[at],
                escaped_frame: rows.escaped_frame[at],
            });
        }
    })
}
