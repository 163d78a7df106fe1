//! Ranges of moments, and what rows tell of them.

use std::ops::RangeInclusive;
use std::str::FromStr;

use et_reader::population::{Columns, Moment as When, Population};

use crate::heap::{Moment, MomentError};

/// A range of moments; without a bound on a side, it is open there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    pub from: Option<Moment>,
    pub to: Option<Moment>,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a range of moments: use A..B, A.. or ..B, such as 12.5s.. or 40%..60%");
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let moment = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|error: MomentError| error.to_string()),
        };
        match (from, to) {
            ("", "") => Err(wrong()),
            (from, to) => Ok(Self { from: moment(from)?, to: moment(to)? }),
        }
    }
}

impl Span {
    /// Whether it is open on both sides.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

/// A moment or a range that rows cannot tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("{0}: when a method is entered is not in the life table; `et-trace heap --at {0}` says which tick that is")]
    Method(String),
    #[error("{0}: the trace has no times")]
    NoTimes(String),
    #[error("{0}: the trace has no calls and returns to count: use 12.5s or bytes:N")]
    NoCalls(String),
    #[error("{from} is not before {to}: give the earlier moment first")]
    Order { from: String, to: String },
    #[error("{moment} is past the end of the trace, which is at tick {tick}, {bytes} bytes")]
    PastEnd { moment: String, tick: u64, bytes: u64 },
}

/// A moment on the clock that it is given in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    Tick(u64),
    Bytes(u64),
    Nanos(u64),
    End,
}

impl Bound {
    /// # Errors
    /// Rows do not tell when that was.
    pub fn of(moment: &Moment, population: &Population) -> Result<Self, QueryError> {
        let end = population.end;
        Ok(match *moment {
            Moment::Percent(_) | Moment::Tick(_) if end.tick == 0 && end.bytes > 0 => {
                return Err(QueryError::NoCalls(moment.to_string()));
            }
            Moment::Percent(percent) => Self::Tick((end.tick as f64 * percent / 100.0) as u64),
            Moment::Seconds(_) if end.nanos.is_none() => return Err(QueryError::NoTimes(moment.to_string())),
            Moment::Seconds(seconds) => Self::Nanos((seconds * 1e9) as u64),
            Moment::Tick(tick) => Self::Tick(tick),
            Moment::Bytes(bytes) => Self::Bytes(bytes),
            Moment::Entry { .. } => return Err(QueryError::Method(moment.to_string())),
            Moment::End => Self::End,
        })
    }

    /// As [`of`](Self::of), for a moment that must be in the trace.
    ///
    /// # Errors
    /// Rows do not tell when that was, or the trace has ended before.
    pub fn within(moment: &Moment, population: &Population) -> Result<Self, QueryError> {
        let (bound, end) = (Self::of(moment, population)?, population.end);
        if bound.is_past(end) {
            return Err(QueryError::PastEnd { moment: moment.to_string(), tick: end.tick, bytes: end.bytes });
        }
        Ok(bound)
    }

    /// Whether an object that was made and died then was alive. It was made; `None`: it never died.
    pub fn is_in_life(self, born: When, died: Option<When>) -> bool {
        self.is_at_or_after(born) && died.is_none_or(|died| !self.is_at_or_after(died))
    }

    /// Whether something has happened by then.
    pub fn is_at_or_after(self, when: When) -> bool {
        match self {
            Self::Tick(tick) => when.tick <= tick,
            Self::Bytes(bytes) => when.bytes <= bytes,
            Self::Nanos(nanos) => when.nanos.is_some_and(|at| at <= nanos),
            Self::End => true,
        }
    }

    /// Whether the trace has ended before.
    fn is_past(self, end: When) -> bool {
        match self {
            Self::Tick(tick) => tick > end.tick,
            Self::Bytes(bytes) => bytes > end.bytes,
            Self::Nanos(nanos) => end.nanos.is_some_and(|end| nanos > end),
            Self::End => false,
        }
    }

    /// The columns that tell when an object was made and when it died, on this clock.
    pub fn columns(self) -> Columns {
        match self {
            Self::Tick(_) | Self::End => Columns::BIRTH_TICK | Columns::DEATH_TICK,
            Self::Bytes(_) => Columns::BIRTH_BYTES | Columns::DEATH_BYTES,
            Self::Nanos(_) => Columns::BIRTH_NANOS | Columns::DEATH_NANOS,
        }
    }
}

/// Fails if the first moment is the later one, as far as that shows: moments on different clocks are not compared.
///
/// # Errors
/// They are in the wrong order.
pub(crate) fn in_order(
    [from, to]: [&Moment; 2],
    bounds: [Bound; 2],
    population: &Population,
) -> Result<(), QueryError> {
    let is_later = match bounds {
        [Bound::Tick(from), Bound::Tick(to)]
        | [Bound::Bytes(from), Bound::Bytes(to)]
        | [Bound::Nanos(from), Bound::Nanos(to)] => from > to,
        [Bound::End, to] => !to.is_at_or_after(population.end),
        _ => false,
    };
    if is_later { Err(QueryError::Order { from: from.to_string(), to: to.to_string() }) } else { Ok(()) }
}

/// A range on the clocks that it is given in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    from: Option<Bound>,
    to: Option<Bound>,
}

impl Bounds {
    /// # Errors
    /// Rows do not tell a moment.
    pub fn of(span: &Span, population: &Population) -> Result<Self, QueryError> {
        let bound = |moment: &Option<Moment>| moment.as_ref().map(|moment| Bound::of(moment, population)).transpose();
        Ok(Self { from: bound(&span.from)?, to: bound(&span.to)? })
    }

    /// As [`of`](Self::of), for a range that must begin in the trace, and before it ends.
    ///
    /// # Errors
    /// Rows do not tell a moment, or there is no such range.
    pub fn within(span: &Span, population: &Population) -> Result<Self, QueryError> {
        if let Some(from) = &span.from {
            Bound::within(from, population)?;
        }
        let bounds = Self::of(span, population)?;
        if let (Some(from), Some(to)) = (&span.from, &span.to)
            && let (Some(first), Some(last)) = (bounds.from, bounds.to)
        {
            in_order([from, to], [first, last], population)?;
        }
        Ok(bounds)
    }

    /// Whether something happened in the range. It begins behind its first moment: what happened by then is before it.
    pub fn has(self, when: When) -> bool {
        self.from.is_none_or(|from| !from.is_at_or_after(when)) && self.to.is_none_or(|to| to.is_at_or_after(when))
    }

    /// Whether something may have happened in it that happened at some of these ticks.
    pub fn may_have(self, ticks: &RangeInclusive<u64>) -> bool {
        let is_behind = !matches!(self.from, Some(Bound::Tick(from)) if *ticks.end() <= from);
        is_behind && !matches!(self.to, Some(Bound::Tick(to)) if *ticks.start() > to)
    }

    /// The columns that tell when an object was made and when it died, on its clocks.
    pub fn columns(self) -> Columns {
        let bounds = self.from.into_iter().chain(self.to);
        bounds.fold(Columns::BIRTH_TICK, |columns, bound| columns | bound.columns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_pairs_of_moments() {
        let span = |text: &str| text.parse::<Span>();
        assert_eq!(span("40%..end"), Ok(Span { from: Some(Moment::Percent(40.0)), to: Some(Moment::End) }));
        assert_eq!(span("..12.5s"), Ok(Span { from: None, to: Some(Moment::Seconds(12.5)) }));
        assert_eq!(span("tick:7.."), Ok(Span { from: Some(Moment::Tick(7)), to: None }));
        for wrong in ["", "..", "40%", "a..b"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
