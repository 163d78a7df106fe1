//! Objects as the report looks at them.

use std::io;

use et_reader::axis::Span;
use et_reader::made_in::{Made, MadeIn, Places};
use et_reader::model::ContextId;
use et_reader::naming::Naming;
use et_reader::population::{Columns, Moment, Population, Rows, UNKNOWN_USE};
use et_reader::record::AllocKind;
use et_reader::survival::Fate;
use et_reader::types::TypeId;

use et_reader::amount::Amount;

use crate::fold::fold_read;

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
    /// Spans tell when it was born.
    pub has_span: bool,
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

/// All columns that reports need.
pub(super) const ALL: Columns = OF_LIVES
    .and(Columns::BIRTH_NANOS)
    .and(Columns::LAST_USE_TICK)
    .and(Columns::DEATH_NANOS)
    .and(Columns::ESCAPED_THREAD)
    .and(Columns::ESCAPED_FRAME)
    .and(Columns::FATE);

/// What was alive when, and how old it became.
pub(super) const OF_LIVES: Columns = Columns::CLASS
    .and(Columns::KIND)
    .and(Columns::SIZE)
    .and(Columns::SITE)
    .and(Columns::CONTEXT)
    .and(Columns::BIRTH_TICK)
    .and(Columns::BIRTH_BYTES)
    .and(Columns::DEATH_TICK)
    .and(Columns::DEATH_BYTES);

/// Folds all objects on several threads, in any order: each starts with `new()`, and the results are merged. What is in columns that are
/// not read is unknown. Objects that are alike may be one ([`joined`](et_reader::population::Groups::joined)); spans then say when
/// they were born.
pub(super) fn fold<T: Send>(
    population: &Population,
    naming: Naming<'_>,
    columns: Columns,
    new: impl Fn() -> T + Sync + Send,
    see: impl Fn(&mut T, &Object) + Sync + Send,
    see_spans: impl Fn(&mut T, &[Span]) + Sync + Send,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> io::Result<T> {
    let each = |(places, sum): &mut (Places<'_>, T), rows: &Rows| {
        for at in 0..rows.len {
            see(sum, &object(rows, at, places, population));
        }
        see_spans(sum, rows.spans.as_deref().unwrap_or_default());
    };
    let groups: Vec<usize> = (0..population.groups.len()).collect();
    let joined = population.groups.joined();
    let folded = fold_read(
        &groups,
        |group| joined(group, columns),
        || (Places::new(naming), new()),
        |sum, _, rows| each(sum, rows),
        |(places, one), (_, other)| (places, merge(one, other)),
    )?;
    Ok(folded.1)
}

fn object(rows: &Rows, at: usize, places: &mut Places<'_>, population: &Population) -> Object {
    fn maybe<T: Copy>(column: &[Option<T>], at: usize) -> Option<T> {
        column.get(at).copied().flatten()
    }
    let nanos = maybe(&rows.birth_nanos, at);
    let birth = Moment { tick: rows.birth_tick[at], bytes: rows.birth_bytes[at], nanos };
    let death = rows.death_tick[at].map(|tick| Moment {
        tick,
        bytes: rows.death_bytes[at].unwrap_or(birth.bytes),
        nanos: maybe(&rows.death_nanos, at),
    });
    let made = Made { kind: rows.kind[at], site: rows.site[at], ty: rows.class[at] };
    Object {
        class: rows.class[at],
        place: places.in_context(made, rows.context[at], &population.contexts, &population.types),
        context: rows.context[at],
        is_initial: rows.kind[at] == AllocKind::Initial,
        size: rows.size[at],
        amount: Amount::of(rows, at),
        birth,
        has_span: rows.spans.is_some(),
        last_use: rows.last_use_tick.get(at).copied().unwrap_or(UNKNOWN_USE),
        death,
        fate: maybe(&rows.fate, at),
        escaped_thread: maybe(&rows.escaped_thread, at),
        escaped_frame: maybe(&rows.escaped_frame, at),
    }
}
