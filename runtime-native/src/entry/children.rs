//! JVMs that a traced program starts.
//!
//! An instrumented JDK's own options name this agent, so that it is in every JVM of that JDK, whoever starts it. It does
//! nothing there unless `et-instrument run` has set a variable, which all processes of the program inherit.

use std::path::Path;

use et_format::trace_path::{self, Child};

use crate::options::Sources;
use crate::output::sink;

/// The property that `run` sets on the command line of the program itself, and nobody else does.
const OF_RUN: &str = "program";

/// Whether a traced program may have started this JVM.
pub fn are_wanted() -> bool {
    std::env::var_os(trace_path::CHILDREN).is_some()
}

/// Options of this JVM from variables, those of all JVMs first; `None` if it is not to be traced, or is `run`'s own program, for
/// which the agent of the command line is to come.
pub fn of_this_jvm(sources: &Sources) -> Option<String> {
    if sources.properties.iter().any(|(name, _)| name == OF_RUN) {
        return None;
    }
    let own = std::env::var(trace_path::CHILDREN).ok()?;
    if own.is_empty() {
        sink::report(&Child::Untraced { process: std::process::id() }.line());
        return None;
    }
    Some(joined(&sources.variable, &own))
}

/// Tells `run` where the trace of this JVM is.
pub fn tell_of_trace(path: &Path) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    sink::report(&Child::Traced { process: std::process::id(), path }.line());
}

fn joined(first: &str, second: &str) -> String {
    if first.trim().is_empty() { second.to_owned() } else { format!("{first}@{second}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_for_children_win_over_those_for_all() {
        assert_eq!(joined("", "traceFile=a"), "traceFile=a");
        assert_eq!(joined("traceFile=b", "traceFile=a"), "traceFile=b@traceFile=a");
    }

    #[test]
    fn the_program_of_run_has_an_agent_of_its_own() {
        let properties = vec![("program".to_owned(), "java -jar app.jar".to_owned())];
        assert_eq!(of_this_jvm(&Sources { properties, ..Sources::default() }), None);
    }
}
