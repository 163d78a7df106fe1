//! Conditions on a difference, for continuous integration: `bytes > +10%`, `objects of java.lang.String > 5000`.

use std::fmt;
use std::str::FromStr;

use et_names::size::size;
use thiserror::Error;

use super::{Change, Changes, Diff, Differ};

/// A number that a condition is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Bytes,
    Objects,
    AliveBytes,
    AliveObjects,
    PeakBytes,
}

const METRICS: [(&str, Metric); 5] = [
    ("bytes", Metric::Bytes),
    ("objects", Metric::Objects),
    ("alive-bytes", Metric::AliveBytes),
    ("alive-objects", Metric::AliveObjects),
    ("peak-bytes", Metric::PeakBytes),
];

/// The limit that a number is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// An absolute value.
    Value(f64),
    /// An absolute increase.
    More(f64),
    /// An increase in per cent.
    Percent(f64),
}

/// A condition on a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    metric: Metric,
    class: Option<String>,
    is_above: bool,
    limit: Limit,
}

/// Why a condition is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a condition: write METRIC [of CLASS] > LIMIT, with bytes, objects, alive-bytes, alive-objects or peak-bytes, > or <, \
     and a limit like +10%, +64M or 2G"
)]
pub struct BadCondition(String);

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = BadCondition;

    fn from_str(text: &str) -> Result<Self, BadCondition> {
        parse(text.trim()).ok_or_else(|| BadCondition(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Condition> {
    let at = text.find(['>', '<'])?;
    let (what, limit) = (text[..at].trim(), text[at + 1..].trim());
    let (metric, class) = match what.split_once(" of ") {
        Some((metric, class)) => (metric.trim(), Some(class.trim().to_owned())),
        None => (what, None),
    };
    let metric = METRICS.iter().find(|(name, _)| *name == metric)?.1;
    if class.as_deref() == Some("") || class.is_some() && metric == Metric::PeakBytes {
        return None;
    }
    let number = if metric.is_objects() { count } else { bytes };
    let limit = match limit.strip_suffix('%') {
        Some(percent) => Limit::Percent(count(percent.trim())?),
        None if limit.starts_with(['+', '-']) => Limit::More(number(limit)?),
        None => Limit::Value(number(limit)?),
    };
    Some(Condition { text: text.to_owned(), metric, class, is_above: text.as_bytes()[at] == b'>', limit })
}

impl Metric {
    fn is_objects(self) -> bool {
        matches!(self, Self::Objects | Self::AliveObjects)
    }
}

/// `+64M`, `1.5g`, `-4MB`: a size as all our tools read it.
fn bytes(text: &str) -> Option<f64> {
    match text.strip_prefix('-') {
        Some(less) => size(less).map(|bytes| -(bytes as f64)),
        None => size(text.strip_prefix('+').unwrap_or(text)).map(|bytes| bytes as f64),
    }
}

/// `10`, `+1.5`, `5k`, `2M`: thousands, as one counts.
fn count(text: &str) -> Option<f64> {
    let powers = [('k', 1), ('K', 1), ('M', 2), ('G', 3), ('T', 4)];
    let (digits, power) = match powers.iter().find(|(letter, _)| text.ends_with(*letter)) {
        Some((_, power)) => (&text[..text.len() - 1], *power),
        None => (text, 0),
    };
    let is_plain = digits.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = digits.parse().ok().filter(|_| is_plain)?;
    Some(value * 1000f64.powi(power))
}

impl Condition {
    /// The class that it is about, if none of the runs has one of that name: the condition would never hold, whatever happens.
    pub fn missing_class(&self, differ: &Differ) -> Option<&str> {
        self.class.as_deref().filter(|class| differ.of_class(class).is_none())
    }

    /// Whether it holds: then what the condition warns of has happened. Of a class that is in no run there is nothing.
    pub fn holds(&self, differ: &Differ, diff: &Diff) -> bool {
        let changes: Changes = match &self.class {
            Some(class) => differ.of_class(class).unwrap_or_default(),
            None => diff.total,
        };
        let Change { before, after } = match self.metric {
            Metric::Bytes => changes.bytes,
            Metric::Objects => changes.objects,
            Metric::AliveBytes => changes.alive_bytes,
            Metric::AliveObjects => changes.alive_objects,
            Metric::PeakBytes => diff.peak_bytes,
        };
        let (before, after) = (before.median as f64, after.median as f64);
        let limit = match self.limit {
            Limit::Value(value) => value,
            Limit::More(more) => before + more,
            Limit::Percent(percent) => before * (1.0 + percent / 100.0),
        };
        if self.is_above { after > limit } else { after < limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Option<Limit> {
        parse(text).map(|condition| condition.limit)
    }

    #[test]
    fn conditions_are_read() {
        assert_eq!(limit("bytes > +10%"), Some(Limit::Percent(10.0)));
        for size in ["2Gi", "2G", "2 GB", "2048m"] {
            assert_eq!(
                limit(&format!("peak-bytes>{size}")),
                Some(Limit::Value(2.0 * 1024.0 * 1024.0 * 1024.0)),
                "{size}"
            );
        }
        assert_eq!(limit("bytes > +1.5k"), Some(Limit::More(1536.0)));
        assert_eq!(limit("alive-bytes < -4MB"), Some(Limit::More(-4_194_304.0)));
        assert_eq!(limit("objects > 5k"), Some(Limit::Value(5000.0)));
        assert_eq!(limit("alive-objects < -1.5k"), Some(Limit::More(-1500.0)));
        let condition = parse("objects of shop.Order$Line[] > 3").unwrap();
        assert_eq!((condition.class.as_deref(), condition.metric), (Some("shop.Order$Line[]"), Metric::Objects));
        for bad in [
            "",
            "bytes",
            "bytes > ",
            "bytes > many",
            "lines > 1",
            "bytes of > 1",
            "peak-bytes of A > 1",
            "bytes > 1i",
            "bytes > inf",
            "bytes = 1",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
