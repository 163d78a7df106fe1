//! Moments as ticks, by what is kept beside a trace.

use et_analysis::heap::{self, HeapError, Moment, Timeline};
use et_names::units::number;
use et_reader::population::Population;
use et_reader::source::{Deaths, Reading, Source};

use super::{CliError, LifeTable};

/// The tick of a moment that tables know; `None`: they do not tell it.
pub(super) fn tick_of(
    source: &Source,
    lives: Option<&LifeTable>,
    population: &Population,
    moment: &Moment,
) -> Result<Option<u64>, CliError> {
    let end = population.end.tick;
    let beyond = |end: String| HeapError::Beyond { moment: moment.clone(), end };
    Ok(match *moment {
        Moment::End => Some(u64::MAX),
        Moment::Tick(tick) if tick > end => return Err(beyond(format!("tick {}", number(end))).into()),
        Moment::Tick(tick) => Some(tick),
        // No timeline is needed for the share of a number that is known.
        Moment::Percent(percent) => Some(heap::tick_of_percent(percent, end)),
        Moment::Seconds(_) => heap::tick_of(moment, &timeline(source, lives, Deaths::None)?)?,
        Moment::Bytes(_) | Moment::Entry { .. } => None,
    })
}

/// File name of the timeline kept with the life table, with its format version.
const TIMELINE: &str = "timeline-1.json";

/// The timeline that was kept with the life table, or a new one, which takes a reading of the whole trace.
pub(super) fn timeline(source: &Source, lives: Option<&LifeTable>, deaths: Deaths) -> Result<Timeline, CliError> {
    let kept = lives.and_then(|lives| lives.kept(TIMELINE));
    if let Some(line) = kept.and_then(|kept| serde_json::from_slice(&kept).ok()) {
        return Ok(line);
    }
    let line = Timeline::of(source, Reading { deaths, ..Reading::default() })?;
    if let Some(lives) = lives
        && let Ok(kept) = serde_json::to_vec(&line)
    {
        lives.keep(TIMELINE, &kept);
    }
    Ok(line)
}
