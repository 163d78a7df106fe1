//! Projects of `examples/`, built by their build tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xtask::jdks::Jdk;
use xtask::{dist, instrumented};

use crate::lab::Lab;

/// A fresh copy of an example; the original is left as it is.
pub fn copy(lab: &Lab, jdk: &Jdk, example: &str, test: &str) -> Result<PathBuf> {
    let folder = fs::canonicalize(lab.folder(jdk, test)?)?;
    dist::copy_folder(&lab.layout.repo.join("examples").join(example), &folder, &dist::LEFT_BY_BUILDS)?;
    Ok(folder)
}

/// Has a word and its count printed in another way: a change of one class.
pub fn change_word(folder: &Path) -> Result<()> {
    let word = folder.join("src/main/java/words/Word.java");
    let text = fs::read_to_string(&word)?;
    fs::write(&word, text.replace("text + \" \" + count", "text + \"=\" + count"))?;
    Ok(())
}

/// Has the code that may allocate nothing allocate something: a change of one test.
pub fn allocate_more(folder: &Path) -> Result<()> {
    let test = folder.join("src/test/java/words/AllocationsTest.java");
    let text = fs::read_to_string(&test)?;
    let more = text
        .replace("Allocations.of(() -> index.count(\"be\")).none()", "Allocations.of(() -> index.toString()).none()");
    ensure!(more != text, "the test has changed");
    fs::write(&test, more).map_err(Into::into)
}

/// JUnit's reports say which limit was exceeded where allocations count, and that limits are skipped where they do not.
pub fn limits_in(counting: &Path, plain: &Path) -> Result<()> {
    const REPORT: &str = "TEST-words.AllocationsTest.xml";
    let read = |folder: &Path| {
        let path = folder.join(REPORT);
        fs::read_to_string(&path).with_context(|| format!("no report {}", path.display()))
    };
    let (failed, skipped) = (read(counting)?, read(plain)?);
    for what in ["tests=\"2\"", "failures=\"1\"", "at most 0 objects allowed, but ", "words.Index.toString("] {
        ensure!(failed.contains(what), "not in the report: {what}\n{failed}");
    }
    for what in ["tests=\"2\"", "skipped=\"2\"", "failures=\"0\""] {
        ensure!(skipped.contains(what), "not in the report: {what}\n{skipped}");
    }
    Ok(())
}

/// The report of a plugin lists only that class.
pub fn only_word_was_rewritten(report: &Path) -> Result<()> {
    let report: Value = serde_json::from_slice(&fs::read(report)?)?;
    let rewritten = report["rewritten"].as_array().context("the report lists what was rewritten")?;
    let paths: Vec<&str> = rewritten.iter().filter_map(Value::as_str).collect();
    ensure!(paths.len() == 1 && paths[0].ends_with("/words/Word.class"), "{paths:?}");
    Ok(())
}

/// The trace files in a folder.
pub fn traces(folder: &Path) -> Result<Vec<PathBuf>> {
    let items = fs::read_dir(folder).with_context(|| format!("no traces in {}", folder.display()))?;
    Ok(items.flatten().map(|item| item.path()).collect())
}

/// Objects of these classes were made, and no class of the program was rewritten only when it was defined.
pub fn made(lab: &Lab, trace: &Path, classes: &[&str]) -> Result<()> {
    let summary = instrumented::summary(&lab.tools, trace, 5000)?;
    ensure!(summary["complete"] == true, "{}", summary["trace"]);
    ensure!(summary["overlaps"].as_array().is_none_or(Vec::is_empty), "{}", summary["overlaps"]);
    let known = summary["classes"].as_array().context("the summary lists no classes")?;
    for class in classes {
        ensure!(known.iter().any(|known| known["type"] == *class), "no objects of {class}");
    }
    let before = &summary["dynamic"]["alreadyInstrumented"];
    ensure!(before.as_u64().is_some_and(|count| count >= 3), "{before} classes were rewritten before");
    Ok(())
}

/// Result of a build.
#[derive(Debug)]
pub struct Ran {
    pub succeeded: bool,
    pub text: String,
}

impl Ran {
    /// Runs a build and waits for its end.
    pub fn of(build: &mut Command) -> Result<Self> {
        let output = build.output().with_context(|| format!("cannot start {:?}", build.get_program()))?;
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok(Self { succeeded: output.status.success(), text })
    }

    /// As [`Self::of`], for one that is to succeed.
    pub fn well(build: &mut Command) -> Result<Self> {
        let ran = Self::of(build)?;
        ensure!(ran.succeeded, "{}", ran.text);
        Ok(ran)
    }

    /// Fails unless the output contains this.
    pub fn says(&self, what: &str) -> Result<()> {
        ensure!(self.text.contains(what), "not said: {what}\n{}", self.text);
        Ok(())
    }

    /// Fails if the output contains this.
    pub fn says_nothing_of(&self, what: &str) -> Result<()> {
        ensure!(!self.text.contains(what), "said: {what}\n{}", self.text);
        Ok(())
    }
}
