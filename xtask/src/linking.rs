//! Links classes in a JVM, which verifies them, before and after they are instrumented, and compares the outcomes.
//!
//! Many classes of a jar cannot be linked because classes that they refer to are missing. These fail both before and
//! after.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::jdks::Jdk;
use crate::layout::Layout;

/// Makes the JVM verify its boot classes, which it trusts by default. Classes from a CDS archive would not be verified.
const VERIFY_BOOT_CLASSES: [&str; 6] = [
    "-Xshare:off",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+BytecodeVerificationLocal",
    "-XX:+BytecodeVerificationRemote",
    "--add-modules",
    "ALL-SYSTEM",
];

/// Each class is used once, so optimizing compilation and parallel collection are not worthwhile.
const IN_A_HURRY: [&str; 3] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx2g"];

/// Outcomes by jar and class name: `linked`, or the error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes(BTreeMap<(String, String), String>);

/// Outcome of a class that links.
const LINKED: &str = "linked";

impl Outcomes {
    /// Parses the output of `tests/java/facts/LinkAll.java`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut outcomes = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, '\t').map(str::to_owned);
            let (Some(jar), Some(class), Some(outcome)) = (fields.next(), fields.next(), fields.next()) else {
                anyhow::bail!("not a line that LinkAll writes: {line:?}");
            };
            outcomes.0.insert((jar, class), outcome);
        }
        Ok(outcomes)
    }

    /// Adds the outcomes of another run.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares with the outcomes of the rewritten classes.
    pub fn compare(&self, rewritten: &Self) -> Comparison {
        let mut comparison = Comparison::default();
        for ((jar, class), before) in &self.0 {
            let jar_linked = comparison.linked.entry(jar.clone()).or_default();
            let failure = match rewritten.0.get(&(jar.clone(), class.clone())).map(String::as_str) {
                Some(LINKED) => {
                    *jar_linked += 1;
                    None
                }
                Some(after) if before == LINKED || is_refusal(after) && !is_refusal(before) => Some(after),
                Some(_) => {
                    comparison.cannot_link += 1;
                    None
                }
                None => Some("not seen"),
            };
            if let Some(after) = failure {
                comparison.failures.push(Failure {
                    jar: jar.clone(),
                    class: class.clone(),
                    before: before.clone(),
                    after: after.to_owned(),
                });
            }
        }
        comparison
    }
}

/// Whether the JVM rejected the class itself, not a class that it refers to.
fn is_refusal(outcome: &str) -> bool {
    let error = outcome.split([':', ' ']).next().unwrap_or_default();
    ["VerifyError", "ClassFormatError", "IncompatibleClassChangeError"]
        .iter()
        .any(|refusal| error.strip_prefix("java.lang.") == Some(refusal))
}

/// A class that links plain but not instrumented, or that fails in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The jar's file name, or `jdk`.
    pub jar: String,
    /// Class name with dots.
    pub class: String,
    /// The outcome of the plain class.
    pub before: String,
    /// The outcome of the instrumented class.
    pub after: String,
}

/// Comparison of plain and instrumented classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Number of instrumented classes that link, by jar.
    pub linked: BTreeMap<String, usize>,
    /// Number of classes that link neither plain nor instrumented.
    pub cannot_link: usize,
    /// Classes broken by instrumentation.
    pub failures: Vec<Failure>,
}

impl Comparison {
    /// Number of instrumented classes that link.
    pub fn all_linked(&self) -> usize {
        self.linked.values().sum()
    }
}

/// The compiled Java program LinkAll.
#[derive(Clone, Debug)]
pub struct Linker {
    classes: PathBuf,
    folder: PathBuf,
}

impl Linker {
    /// Compiles LinkAll in a folder.
    pub fn new(layout: &Layout, compiler: &Jdk, folder: &Path) -> Result<Self> {
        let classes = folder.join("link-classes");
        let source = layout.repo.join("tests/java/facts/LinkAll.java");
        let mut command = compiler.compile()?;
        command.args(["-nowarn", "--release", "11", "-encoding", "UTF-8", "-d"]).arg(&classes);
        command::quiet(command.arg(source))?;
        Ok(Self { classes, folder: folder.to_owned() })
    }

    /// Links every class of the JDK with this launcher.
    pub fn jdk(&self, java: &Path) -> Result<Outcomes> {
        let mut command = Command::new(java);
        // Without the stub: the hooks exist and do nothing.
        command.args(IN_A_HURRY).args(VERIFY_BOOT_CLASSES).arg("-cp").arg(&self.classes).arg("LinkAll");
        self.outcomes(command, "jdk", |command| command)
    }

    /// Links every class of the jars; `neighbours` are further jars on the class path.
    pub fn jars(&self, java: &Path, jars: &[PathBuf], neighbours: &[PathBuf]) -> Result<Outcomes> {
        let mut command = Command::new(java);
        command.args(IN_A_HURRY).arg("-cp").arg(&self.classes).arg("LinkAll");
        self.outcomes(command, "jars", |command| command.args(jars).arg("-neighbours").args(neighbours))
    }

    fn outcomes(
        &self,
        mut command: Command,
        what: &str,
        arguments: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Outcomes> {
        let report = self.folder.join(format!("{what}.tsv"));
        let _ = fs::remove_file(&report);
        command::quiet(arguments(command.arg(&report)))?;
        let text =
            fs::read_to_string(&report).with_context(|| format!("LinkAll did not write {}", report.display()))?;
        Outcomes::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rewriting_broke_is_a_failure() {
        let plain = "a.jar\tA\tlinked\na.jar\tB\tjava.lang.NoClassDefFoundError: x/Y\n\
                     a.jar\tC\tlinked\na.jar\tD\tjava.lang.NoClassDefFoundError: x/Y\nb.jar\tE\tlinked\n\
                     b.jar\tF\tjava.lang.VerifyError: Bad type\n";
        let rewritten = "a.jar\tA\tlinked\na.jar\tB\tjava.lang.NoClassDefFoundError: x/Z\n\
                         a.jar\tC\tjava.lang.VerifyError: Bad\ttype\na.jar\tD\tjava.lang.ClassFormatError: Odd\n\
                         b.jar\tF\tjava.lang.VerifyError: Bad type\n";
        let comparison = Outcomes::parse(plain).unwrap().compare(&Outcomes::parse(rewritten).unwrap());
        let failures: Vec<(&str, &str)> =
            comparison.failures.iter().map(|failure| (failure.class.as_str(), failure.after.as_str())).collect();
        assert_eq!(
            failures,
            [("C", "java.lang.VerifyError: Bad\ttype"), ("D", "java.lang.ClassFormatError: Odd"), ("E", "not seen")]
        );
        assert_eq!(comparison.cannot_link, 2);
        assert_eq!(comparison.linked["a.jar"], 1);
        assert_eq!(comparison.all_linked(), 1);
    }
}
