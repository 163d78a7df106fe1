//! What answers have in common.

use et_analysis::heap::Moment;
use serde::Serialize;
use serde_json::Value;

use crate::opened::Opened;
use crate::params::Refused;

pub(crate) type Answer = Result<Value, Refused>;

pub(crate) fn to_value(answer: &impl Serialize) -> Answer {
    serde_json::to_value(answer).map_err(|error| Refused::Failed(error.to_string()))
}

/// Adds the command line that answers the same.
pub(crate) fn with_command(answer: &impl Serialize, command: Option<String>) -> Answer {
    let mut value = to_value(answer)?;
    value["command"] = command.map_or(Value::Null, Value::String);
    Ok(value)
}

/// A tick as commands name it: `end`, `tick:17`, or of a trace without calls `bytes:17`.
pub(crate) fn named(trace: &Opened, tick: u64) -> Moment {
    if tick > trace.population().end.tick {
        Moment::End
    } else if trace.is_by_bytes() {
        Moment::Bytes(tick)
    } else {
        Moment::Tick(tick)
    }
}
