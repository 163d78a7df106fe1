//! JVMs that the program starts: a variable, which all its processes inherit, says where their traces go. The agent that reads it is
//! in the instrumented JDK's own options, so that it does not matter who starts such a JVM, and how.

use std::fs;
use std::path::Path;
use std::process::Command;

use et_format::trace_path::{self, Child};
use et_names::units::{bytes, counted};

use super::trace_file::quoted;

/// How many traces are named one by one.
const NAMED: usize = 8;

/// Sets the variable for a program whose trace goes to `trace`, or removes it if its JVMs are not to be traced. `others` are
/// further options of the runtime.
pub fn set(command: &mut Command, trace: Option<&str>, excluded: Option<&str>, others: &[String]) {
    match trace {
        Some(trace) => command.env(trace_path::CHILDREN, options(trace, excluded, others)),
        None => command.env_remove(trace_path::CHILDREN),
    };
}

/// The value; empty if children can have no traces of their own.
fn options(trace: &str, excluded: Option<&str>, others: &[String]) -> String {
    let path = Path::new(trace);
    let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let Some(place) = (!is_special).then(|| trace_path::of_children(trace)).flatten() else { return String::new() };
    let place = match place.starts_with('>') {
        true => place,
        // A program may start others in any folder.
        false => std::path::absolute(&place).map_or(place, |path| path.display().to_string()),
    };
    let excluded = excluded.map(|classes| format!("@dynamicExclude={classes}")).unwrap_or_default();
    let others: String = others.iter().map(|option| format!("@{option}")).collect();
    format!("traceFile={place}{excluded}{others}")
}

/// What there is to say about them after the run.
pub fn lines(children: &[Child]) -> Vec<String> {
    let mut lines = Vec::new();
    let traces: Vec<&Path> = children
        .iter()
        .filter_map(|child| match child {
            Child::Traced { path, .. } => Some(path.as_path()),
            Child::Untraced { .. } => None,
        })
        .collect();
    if !traces.is_empty() {
        let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        let mut named: Vec<String> =
            traces.iter().take(NAMED).map(|path| format!("{} ({})", quoted(path), bytes(size(path)))).collect();
        if traces.len() > NAMED {
            let others = &traces[NAMED..];
            named.push(format!("and {} more ({})", others.len(), bytes(others.iter().map(|path| size(path)).sum())));
        }
        lines.push(format!(
            "{} of JVMs that the program started: {}",
            counted(traces.len() as u64, "trace"),
            named.join(", ")
        ));
    }
    let untraced = children.len() - traces.len();
    if untraced > 0 {
        let why = "their traces would go to the same place; write %p into it, which becomes the process id";
        lines.push(format!("not traced: {} that the program started: {why}", counted(untraced as u64, "JVM")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_place_of_its_own() {
        assert_eq!(options("/x/et-%p.ettrace", None, &[]), "traceFile=/x/et-%p.ettrace");
        assert_eq!(
            options("/x/app.ettrace", Some("a.**,b.C"), &["counts=1s".to_owned()]),
            "traceFile=/x/app.%p.ettrace@dynamicExclude=a.**,b.C@counts=1s"
        );
        assert!(options("app.ettrace", None, &[]).starts_with("traceFile=/"));
        assert_eq!(options(">(cat > %p)", None, &[]), "traceFile=>(cat > %p)");
        assert_eq!([options(">(cat)", None, &[]), options("/dev/null", None, &[])], ["", ""]);
    }

    #[test]
    fn what_is_said_of_them() {
        assert!(lines(&[]).is_empty());
        let traced = |process: u32| Child::Traced { process, path: format!("/none/a {process}").into() };
        let said = lines(&[traced(1), Child::Untraced { process: 2 }]);
        assert_eq!(said[0], "1 trace of JVMs that the program started: '/none/a 1' (0 B)");
        assert!(said[1].starts_with("not traced: 1 JVM that the program started: "), "{said:?}");
        let many: Vec<Child> = (0..11).map(traced).collect();
        assert!(lines(&many)[0].ends_with("'/none/a 7' (0 B), and 3 more (0 B)"), "{:?}", lines(&many));
    }
}
