//! Where the time of `cargo xtask test` goes: its phases, and what nextest reports of each test, summed up.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of lines of each table.
const SHOWN: usize = 12;

/// Where nextest writes its report, from the target folder on: `.config/nextest.toml` says so.
pub const REPORT: &str = "nextest/default/junit.xml";

/// A test that was run.
#[derive(Debug, PartialEq)]
struct Test<'r> {
    binary: &'r str,
    name: &'r str,
    seconds: f64,
}

impl<'r> Test<'r> {
    /// The JDK that the test runs on, if it has one of its own: the module that it is in.
    fn jdk(&self) -> &'r str {
        let module = self.name.split("::").next().unwrap_or("");
        let is_release = module.strip_prefix("jdk").is_some_and(|release| release.parse::<u16>().is_ok());
        if is_release { module } else { "none of its own" }
    }
}

/// The value of an attribute in what follows a tag's name.
fn attribute<'r>(tag: &'r str, name: &str) -> Option<&'r str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// The tests in a report in JUnit's form. Names of tests need no unescaping.
fn tests(report: &str) -> Vec<Test<'_>> {
    let tags = report.split("<testcase").skip(1).filter_map(|rest| rest.split('>').next());
    let test = |tag| {
        let seconds = attribute(tag, "time")?.parse().ok()?;
        Some(Test { binary: attribute(tag, "classname")?, name: attribute(tag, "name")?, seconds })
    };
    tags.filter_map(test).collect()
}

fn by<'t>(tests: &'t [Test<'_>], key: impl Fn(&'t Test<'_>) -> &'t str) -> Vec<(&'t str, f64, usize)> {
    let mut sums: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for test in tests {
        let sum = sums.entry(key(test)).or_default();
        *sum = (sum.0 + test.seconds, sum.1 + 1);
    }
    sums.into_iter().map(|(key, (seconds, count))| (key, seconds, count)).collect()
}

fn table(report: &str) -> String {
    let tests = tests(report);
    let mut text = String::new();
    let mut list = |title: &str, mut sums: Vec<(&str, f64, usize)>| {
        _ = writeln!(text, "{title}");
        sums.sort_by(|one, other| other.1.total_cmp(&one.1));
        for (key, seconds, count) in sums.into_iter().take(SHOWN) {
            _ = writeln!(text, "  {seconds:7.0} s  {key} ({count})");
        }
    };
    list("time of tests by program:", by(&tests, |test| test.binary));
    list("by JDK:", by(&tests, |test| test.jdk()));
    list("slowest:", tests.iter().map(|test| (test.name, test.seconds, 1)).collect());
    text
}

/// A summary of the last run's report; empty if there is none.
pub fn of_last_run(target: &Path) -> String {
    fs::read_to_string(target.join(REPORT)).map(|report| table(&report)).unwrap_or_default()
}

/// How long each phase of `cargo xtask test` took.
#[derive(Debug)]
pub struct Phases {
    begun: Instant,
    ended: Vec<(&'static str, Duration)>,
}

impl Phases {
    /// Begins the first phase.
    pub fn begin() -> Self {
        Self { begun: Instant::now(), ended: Vec::new() }
    }

    /// Ends a phase and begins the next.
    pub fn end(&mut self, name: &'static str) {
        self.ended.push((name, self.begun.elapsed()));
        self.begun = Instant::now();
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "by phase:")?;
        self.ended.iter().try_for_each(|(name, time)| writeln!(f, "  {:7.0} s  {name}", time.as_secs_f64()))
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    const SAMPLE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" time="9.5">
    <testsuite name="et-tests::stacks" tests="2">
        <testcase name="jdk17::counts" classname="et-tests::stacks" timestamp="2026-11-28T10:00:00Z" time="81.082">
        </testcase>
        <testcase name="jdk25::counts" classname="et-tests::stacks" timestamp="2026-11-28T10:00:00Z" time="40">
            <failure>time="7"</failure>
        </testcase>
    </testsuite>
    <testsuite name="et-reader" tests="1"><testcase name="merge::in_order" classname="et-reader" time="0.5"/></testsuite>
</testsuites>"#;

    #[test]
    fn times_are_summed_up() {
        assert_eq!(tests(SAMPLE).len(), 3);
        assert_eq!(tests(SAMPLE)[1], Test { binary: "et-tests::stacks", name: "jdk25::counts", seconds: 40.0 });
        let text = table(SAMPLE);
        assert!(text.contains("    121 s  et-tests::stacks (2)"), "{text}");
        assert!(text.contains("     81 s  jdk17 (1)"), "{text}");
        assert_eq!(table(""), "time of tests by program:\nby JDK:\nslowest:\n");
    }

    #[test]
    fn phases_follow_each_other() {
        let mut phases = Phases::begin();
        phases.end("setup");
        phases.end("tests");
        assert_eq!(phases.to_string(), "by phase:\n        0 s  setup\n        0 s  tests\n");
    }
}
