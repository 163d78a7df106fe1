//! Ranges of moments, and what rows tell of them.

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

/// A moment that rows cannot tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("{0}: when a method is entered is not in the life table; `et-trace heap --at {0}` says which tick that is")]
    Method(String),
    #[error("{0}: the trace has no times")]
    NoTimes(String),
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

    pub fn columns(self) -> Columns {
        match self {
            Self::Tick(_) | Self::End => Columns::BIRTH_TICK | Columns::DEATH_TICK,
            Self::Bytes(_) => Columns::BIRTH_BYTES | Columns::DEATH_BYTES,
            Self::Nanos(_) => Columns::BIRTH_NANOS | Columns::DEATH_NANOS,
        }
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
