//! A moment of the run, as the user specifies it.

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use et_names::size::size;
use et_reader::record::AllocKind;
use et_reader::record::Record;
use et_reader::source::{Deaths, Reading, Source, SourceError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Moment {
    /// `40%`: after this share of all calls and returns.
    Percent(f64),
    /// `12.5s`: after this time since the start.
    Seconds(f64),
    /// `tick:N`: when the clock had counted so far.
    Tick(u64),
    /// `bytes:N`: after this many bytes have been allocated.
    Bytes(u64),
    /// `method:com.acme.Main.run#3`: when the method was entered for the n-th time.
    Entry {
        /// Class and method.
        method: String,
        /// Number of the call, from 1.
        nth: u64,
    },
    /// `end`: after the last record.
    #[default]
    End,
}

/// The text is not a moment.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a moment: use 40%, 12.5s, tick:N, bytes:N, method:com.acme.Main.run#3 or end")]
pub struct MomentError(String);

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let wrong = || MomentError(text.to_owned());
        let number = |digits: &str| digits.replace(['_', ','], "").parse::<u64>().map_err(|_| wrong());
        let fraction = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            digits.parse::<f64>().ok().filter(|_| is_plain).ok_or_else(wrong)
        };
        if text == "end" {
            return Ok(Self::End);
        }
        if let Some(percent) = text.strip_suffix('%') {
            return fraction(percent.trim_end()).map(Self::Percent).and_then(|moment| match moment {
                Self::Percent(percent) if percent > 100.0 => Err(wrong()),
                moment => Ok(moment),
            });
        }
        let (what, rest) = match text.split_once(':') {
            Some(parts) => parts,
            None => return fraction(text.strip_suffix('s').ok_or_else(wrong)?).map(Self::Seconds),
        };
        match what {
            "tick" => Ok(Self::Tick(number(rest)?)),
            "bytes" => size(&rest.replace(['_', ','], "")).map(Self::Bytes).ok_or_else(wrong),
            "method" => {
                let (method, nth) = match rest.rsplit_once('#') {
                    Some((method, nth)) => (method, number(nth)?),
                    None => (rest, 1),
                };
                // The glossary's names have dots; those of class files and of stack traces are taken as well.
                let method = method.replace('/', ".");
                match method.contains('.') && nth > 0 {
                    true => Ok(Self::Entry { method, nth }),
                    false => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Seconds(seconds) => write!(f, "{seconds}s"),
            Self::Tick(tick) => write!(f, "tick:{tick}"),
            Self::Bytes(bytes) => write!(f, "bytes:{bytes}"),
            Self::Entry { method, nth } => write!(f, "method:{method}#{nth}"),
            Self::End => write!(f, "end"),
        }
    }
}

/// How the clock and the time of the day went together, from the first record to the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Nanoseconds since the start and ticks, both growing: where chunks of events began, and the end.
    points: Vec<(u64, u64)>,
    /// Ticks of the whole run.
    pub ticks: u64,
    /// Bytes of all objects that were allocated while tracing was on.
    pub bytes: u64,
}

/// More points are not kept: every second one goes.
const MOST_POINTS: usize = 1 << 12;

impl Timeline {
    /// Reads the whole trace. If `reading` requests deaths and life tables are kept, one is created on the way.
    pub fn of(source: &Source, reading: Reading) -> Result<Self, SourceError> {
        let mut line = Self::default();
        let (mut last, mut apart) = (None, 1u64);
        let places = reading.deaths != Deaths::None;
        let clock = source.clock(reading.clock);
        source.for_each(Reading { places, ..reading }, |record, at| {
            line.ticks += record.ticks(clock);
            if let Record::Alloc(alloc) = record
                && alloc.kind != AllocKind::Initial
            {
                line.bytes += alloc.size;
            }
            if let Some(wall) = at.place.wall()
                && last.is_none_or(|last: u64| wall.begin.0 >= last.saturating_add(apart))
            {
                last = Some(wall.begin.0);
                line.points.push((wall.begin.0, at.tick.0));
                if line.points.len() == MOST_POINTS {
                    let mut index = 0;
                    line.points.retain(|_| {
                        index += 1;
                        index % 2 == 1
                    });
                    let span = wall.begin.0.saturating_sub(line.points[0].0);
                    apart = (span / MOST_POINTS as u64).max(1);
                }
            }
            ControlFlow::Continue(())
        })?;
        if let (Source::Trace(trace), Some(last)) = (source, last) {
            let end = trace.file.end().map(|end| (end.seconds * 1e9) as u64);
            line.points.push((end.unwrap_or(last).max(last), line.ticks));
        }
        Ok(line)
    }

    /// Seconds of the whole run; `None` where the trace does not say when anything was.
    pub fn seconds(&self) -> Option<f64> {
        self.points.last().map(|&(nanos, _)| nanos as f64 / 1e9)
    }

    /// The tick at a time: between two chunks of events that began, as if the clock had gone evenly.
    pub fn tick_at(&self, seconds: f64) -> Option<u64> {
        let nanos = (seconds * 1e9) as u64;
        let after = self.points.partition_point(|&(time, _)| time <= nanos);
        let Some(&(from, first)) = after.checked_sub(1).and_then(|before| self.points.get(before)) else {
            return self.points.first().map(|_| 0);
        };
        let Some(&(to, last)) = self.points.get(after) else {
            // There is nothing after the last one.
            return (nanos == from).then_some(first);
        };
        let share = (nanos - from) as f64 / (to - from).max(1) as f64;
        Some(first + ((last.saturating_sub(first)) as f64 * share) as u64)
    }

    /// The tick after this share of all calls and returns.
    pub fn tick_of_percent(&self, percent: f64) -> u64 {
        tick_of_percent(percent, self.ticks)
    }
}

/// The tick after this share of that many calls and returns.
pub fn tick_of_percent(percent: f64, ticks: u64) -> u64 {
    (ticks as f64 * percent / 100.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        for text in ["40%", "12.5s", "0.25s", "tick:17", "bytes:4096", "method:com.acme.Main.run#3", "end"] {
            assert_eq!(text.parse::<Moment>().unwrap().to_string(), text);
        }
        assert_eq!("tick:1,000".parse(), Ok(Moment::Tick(1000)));
        let entry = |method: &str, nth| Ok(Moment::Entry { method: method.to_owned(), nth });
        assert_eq!("method:com/acme/Main.<init>".parse(), entry("com.acme.Main.<init>", 1));
        let wrong = [
            "",
            "40",
            "-1%",
            "101%",
            "nan%",
            "infs",
            "1e3s",
            "tick:",
            "tick:x",
            "method:run#1",
            "method:A.b#0",
            "at:1",
        ];
        for text in wrong {
            let error = text.parse::<Moment>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a moment: use ")), "{error}");
        }
    }

    #[test]
    fn times_between_chunks_are_ticks_between_them() {
        let line = Timeline { points: vec![(0, 0), (1_000_000_000, 100), (3_000_000_000, 300)], ticks: 300, bytes: 0 };
        assert_eq!(line.tick_at(0.5), Some(50));
        assert_eq!(line.tick_at(1.0), Some(100));
        assert_eq!(line.tick_at(2.0), Some(200));
        assert_eq!((line.tick_at(3.0), line.tick_at(3.1), line.seconds()), (Some(300), None, Some(3.0)));
        assert_eq!(line.tick_of_percent(40.0), 120);
    }
}
