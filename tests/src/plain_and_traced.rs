//! Programs that must behave the same with and without tracing, with any JVM options.
//!
//! Comments at the top of a program specify:
//!
//! ```java
//! // needs: 25                        not on older JDKs, and compiled for this one
//! // options: -Xmx48m                 a run with these options; may be repeated
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::command;
use xtask::jdks::Jdk;
use xtask::programs;

use crate::compiled;
use crate::lab::{self, Lab};
use crate::program::{self, Seen};

/// The oldest JDK of all tests.
const OLDEST: u32 = 11;

/// The comments at the top of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Feature release that it is compiled for.
    pub release: u32,
    /// Options of each run.
    pub runs: Vec<Vec<String>>,
}

impl Head {
    /// Reads the comment lines at the top.
    pub fn parse(source: &str) -> Result<Self> {
        let mut head = Self { release: OLDEST, runs: Vec::new() };
        for line in source.lines().map_while(|line| line.strip_prefix("// ")) {
            match line.split_once(": ") {
                Some(("needs", release)) => head.release = release.trim().parse().context("needs: a number")?,
                Some(("options", options)) => head.runs.push(options.split_whitespace().map(str::to_owned).collect()),
                _ => anyhow::bail!("unknown line at the top: {line}"),
            }
        }
        if head.runs.is_empty() {
            head.runs.push(Vec::new());
        }
        Ok(head)
    }
}

/// A program, compiled and rewritten for one JDK.
#[derive(Debug)]
pub struct Prepared<'a> {
    lab: &'a Lab,
    jdk: &'a Jdk,
    /// Name of the main class.
    pub name: String,
    /// The comments at the top of its source.
    pub head: Head,
    /// Folder for its output.
    pub folder: PathBuf,
    classes: PathBuf,
    runs: usize,
}

/// Path of a program's source.
pub fn source(lab: &Lab, name: &str) -> PathBuf {
    program::programs(lab).join("semantics").join(format!("{name}.java"))
}

impl<'a> Prepared<'a> {
    /// Has `tests/java/semantics/<name>.java` compiled, and rewrites it.
    pub fn new(lab: &'a Lab, jdk: &'a Jdk, test: &str, name: &str) -> Result<Self> {
        let file = source(lab, name);
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let head = Head::parse(&text).with_context(|| file.display().to_string())?;
        let folder = lab.folder(jdk, test)?;
        let classes = compiled::classes(lab, &file, head.release)?;
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        let prepared = Self { lab, jdk, name, head, folder, classes, runs: 0 };
        prepared.rewrite(prepared.plain(), &prepared.rewritten())?;
        Ok(prepared)
    }

    /// Instruments something else to a separate place.
    pub fn rewrite(&self, from: &Path, to: &Path) -> Result<()> {
        command::quiet(Command::new(self.lab.tools.et_instrument()).arg(from).arg("-o").arg(to)).map(drop)
    }

    /// The compiled classes, which other tests use, too.
    pub fn plain(&self) -> &Path {
        &self.classes
    }

    /// The instrumented classes.
    pub fn rewritten(&self) -> PathBuf {
        self.folder.join("classes-et")
    }

    /// The command line without tracing; the caller adds the main class.
    pub fn plain_java(&self) -> Command {
        let mut java = Command::new(self.jdk.java());
        java.current_dir(&self.folder);
        java
    }

    /// The command line with tracing, and the path of its trace.
    pub fn traced_java(&mut self) -> Result<(Command, PathBuf)> {
        self.runs += 1;
        let trace = self.folder.join(format!("trace-{}.ettrace", self.runs));
        let jdk = self.lab.instrumented(self.jdk)?;
        let mut java = Command::new(jdk.java());
        java.args(jdk.options(&trace)).current_dir(&self.folder);
        Ok((java, trace))
    }

    /// Runs the program both ways with the same options; what is seen must be the same, the trace valid.
    pub fn compare(&mut self, options: &[String]) -> Result<Seen> {
        let (name, rewritten) = (self.name.clone(), self.rewritten());
        let mut java = self.plain_java();
        let before = program::run_java(java.args(options).arg("-cp").arg(self.plain()).arg(&name))?;
        let (mut java, trace) = self.traced_java()?;
        let after = program::run_java(java.args(options).arg("-cp").arg(rewritten).arg(&name))?;
        same(&before, &self.as_if_plain(&after)).with_context(|| command::shown(&java))?;
        self.validate(&trace)?;
        Ok(after)
    }

    /// Output of the instrumented program, with paths of its classes replaced by those of the original ones: warnings
    /// of the JVM contain them.
    pub fn as_if_plain(&self, seen: &Seen) -> Seen {
        let (plain, rewritten) = (self.plain().display().to_string(), self.rewritten().display().to_string());
        let renamed = |text: &str| text.replace(&rewritten, &plain);
        Seen { stdout: renamed(&seen.stdout), stderr: renamed(&seen.stderr), code: seen.code }
    }

    /// Checks a trace, and removes it: they are large.
    pub fn validate(&self, trace: &Path) -> Result<()> {
        // Other tests have deaths; these are about what a program does.
        programs::validate_without_deaths(&self.lab.tools, trace)?;
        if !lab::keep_traces() {
            fs::remove_file(trace).with_context(|| format!("cannot remove {}", trace.display()))?;
        }
        Ok(())
    }

    /// Removes what a passed test does not need any more.
    pub fn clean(&self) -> Result<()> {
        if !lab::keep_traces() {
            fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))?;
        }
        Ok(())
    }
}

/// Fails with the first lines that differ.
pub fn same(plain: &Seen, traced: &Seen) -> Result<()> {
    ensure!(plain.code == traced.code, "exit code {:?} became {:?}\n{}", plain.code, traced.code, traced.stderr);
    for (what, one, other) in [("output", &plain.stdout, &traced.stdout), ("errors", &plain.stderr, &traced.stderr)] {
        if let Some(difference) = difference(one, other) {
            anyhow::bail!("the {what} became another: {difference}");
        }
    }
    Ok(())
}

fn difference(plain: &str, traced: &str) -> Option<String> {
    if plain == traced {
        return None;
    }
    let (mut one, mut other) = (plain.lines(), traced.lines());
    for number in 1.. {
        match (one.next(), other.next()) {
            (None, None) => break,
            (one, other) if one == other => {}
            (one, other) => {
                let shown = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
                return Some(format!("line {number}\nplain:  {}\ntraced: {}", shown(one), shown(other)));
            }
        }
    }
    Some("line ends".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head =
            Head::parse("// needs: 25\n// options: -Xmx1m -Xint\n// options: -Xcomp\nclass A {}\n// x: y").unwrap();
        assert_eq!(
            head,
            Head { release: 25, runs: vec![vec!["-Xmx1m".into(), "-Xint".into()], vec!["-Xcomp".into()]] }
        );
        assert_eq!(Head::parse("class A {}").unwrap(), Head { release: OLDEST, runs: vec![Vec::new()] });
        assert!(Head::parse("// optoins: -Xint").is_err());
    }

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert!(difference("a\nb\nc", "a\nx\nc").unwrap().starts_with("line 2\nplain:  b\ntraced: x"));
        assert!(difference("a", "a\nb").unwrap().contains("plain:  (the end)"));
    }
}
