//! What answers have in common.

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

/// `end` or `tick:17`
pub(crate) fn moment_text(trace: &Opened, tick: u64) -> String {
    if tick > trace.population().end.tick { "end".to_owned() } else { format!("tick:{tick}") }
}
