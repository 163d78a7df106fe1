//! Programs state in comments which records their methods leave:
//!
//! ```java
//! static void one() {
//!     new Leaf(); // @one
//! }
//! /* expect one
//!  * N #1 Leaf @one
//!  * M Leaf.<init> #1
//!  * E Leaf.<init> #1
//!  */
//! ```
//!
//! `#1`, `#2` … are objects in the order in which they are first mentioned; one that was not allocated in the window is
//! followed by its type there. `@one` is the line that ends with that comment. Options after the method's name: `first`
//! compares the first call instead of the last (when all classes are loaded), `own` omits what code of the JDK did,
//! `size` includes sizes. A program without expectations states the reason: `// no expectations: REASON`.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

/// The records that one method must leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// A method of the program's main class.
    pub method: String,
    /// The first call counts, not the last.
    pub first: bool,
    /// How records are displayed.
    pub view: View,
    /// One record per line.
    pub lines: Vec<String>,
}

/// What is displayed of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Only what concerns the program's own classes.
    pub own: bool,
    /// Whether sizes of objects are displayed.
    pub size: bool,
    /// Objects are shown by their types, without numbers and sites.
    pub types: bool,
}

/// What a program's source states about it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub expectations: Vec<Expectation>,
    /// Labels by line number.
    pub labels: HashMap<u32, String>,
    /// Options for et-instrument: `// instrument: --events alloc`.
    pub options: Vec<String>,
    /// C source beside the program with its native methods, which the program loads as library `native`: `// library:
    /// Program.c`.
    pub library: Option<String>,
    /// The Java version that it needs: `// needs: 21`. Otherwise, 11 is enough.
    pub needs: Option<u32>,
    /// Options for java: `// java: -Xmx64m`.
    pub java: Vec<String>,
    /// Why it has no expectations: `// no expectations: REASON`.
    pub no_expectations: Option<String>,
    /// `// not instrumented`: the classes are not rewritten before the run.
    pub is_plain: bool,
}

impl Source {
    /// Reads the comments of a program.
    pub fn parse(text: &str) -> Result<Self> {
        let mut source = Self::default();
        let mut open: Option<Expectation> = None;
        for (index, line) in text.lines().enumerate() {
            let line_number = u32::try_from(index + 1)?;
            let trimmed = line.trim();
            if let Some(expectation) = &mut open {
                if trimmed.ends_with("*/") {
                    source.expectations.extend(open.take());
                } else {
                    let record = trimmed.trim_start_matches('*').trim();
                    if !record.is_empty() {
                        expectation.lines.push(record.to_owned());
                    }
                }
            } else if let Some(head) = trimmed.strip_prefix("/* expect ") {
                open = Some(heading(head).with_context(|| format!("line {line_number}"))?);
            } else if let Some(options) = trimmed.strip_prefix("// instrument:") {
                source.options.extend(options.split_whitespace().map(str::to_owned));
            } else if let Some(library) = trimmed.strip_prefix("// library:") {
                source.library = Some(library.trim().to_owned());
            } else if let Some(version) = trimmed.strip_prefix("// needs:") {
                source.needs = Some(version.trim().parse().with_context(|| format!("line {line_number}"))?);
            } else if let Some(reason) = trimmed.strip_prefix("// no expectations:") {
                source.no_expectations = Some(reason.trim().to_owned());
            } else if let Some(options) = trimmed.strip_prefix("// java:") {
                source.java.extend(options.split_whitespace().map(str::to_owned));
            } else if trimmed == "// not instrumented" {
                source.is_plain = true;
            } else if let Some((_, label)) = trimmed.rsplit_once("// @") {
                let others = source.labels.values();
                ensure!(!others.clone().any(|other| other == label), "line {line_number}: label @{label} stands twice");
                source.labels.insert(line_number, label.to_owned());
            }
        }
        ensure!(open.is_none(), "an expectation has no end");
        Ok(source)
    }

    /// A program that is compared with its expectations has some, or says why not.
    pub fn has_expectations_or_says_why(&self) -> Result<()> {
        match (&self.no_expectations, self.expectations.is_empty()) {
            (None, false) => Ok(()),
            (Some(reason), true) => {
                ensure!(!reason.is_empty(), "it does not say why it has no expectations");
                Ok(())
            }
            (Some(_), false) => bail!("it has expectations, and says that it has none"),
            (None, true) => bail!("it has no expectations; if that is meant: // no expectations: REASON"),
        }
    }
}

fn heading(text: &str) -> Result<Expectation> {
    let mut words = text.split_whitespace();
    let method = words.next().context("no method named")?.to_owned();
    let mut expectation = Expectation { method, first: false, view: View::default(), lines: Vec::new() };
    for word in words {
        match word {
            "first" => expectation.first = true,
            "own" => expectation.view.own = true,
            "size" => expectation.view.size = true,
            other => bail!("unknown word {other:?} after expect"),
        }
    }
    Ok(expectation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_all_of_it() {
        let text = "// instrument: --events alloc\n// needs: 21\n// java: -Xint\n// not instrumented\nx(); // @here\n/* expect one own first\n * N #1 Leaf @here\n *\n */\n";
        let source = Source::parse(text).unwrap();
        assert_eq!(source.options, ["--events", "alloc"]);
        assert_eq!((source.needs, source.java, source.is_plain), (Some(21), vec!["-Xint".into()], true));
        assert_eq!(source.labels[&5], "here");
        let [expectation] = &source.expectations[..] else { panic!("one expectation") };
        assert_eq!(expectation.lines, ["N #1 Leaf @here"]);
        assert!(expectation.first && expectation.view.own && !expectation.view.size);
    }

    #[test]
    fn programs_without_expectations_state_the_reason() {
        let check = |text: &str| Source::parse(text).unwrap().has_expectations_or_says_why().map_err(|e| e.to_string());
        assert!(check("class A {}").unwrap_err().contains("// no expectations: REASON"));
        assert!(check("// no expectations:").unwrap_err().contains("why"));
        assert!(check("// no expectations: too many").is_ok());
        let one = "/* expect one\n * M A.one 0\n */\n";
        assert!(check(one).is_ok());
        assert!(check(&format!("// no expectations: none\n{one}")).unwrap_err().contains("says that it has none"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("/* expect one twice\n*/", "unknown word"),
            ("/* expect one\n", "no end"),
            ("// @a\n// @a\n", "stands twice"),
            ("// needs: much\n", "line 1"),
        ] {
            let error = format!("{:#}", Source::parse(text).unwrap_err());
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
