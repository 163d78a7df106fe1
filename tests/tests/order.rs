//! The order of records between threads: handing over objects from one thread to another appears in the trace in the
//! order in which it happened.
#![allow(clippy::print_stderr, reason = "tests tell what they do")]

use std::io::BufReader;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use et_tests::handovers::Handovers;
use et_tests::lab::{self, Lab};
use et_tests::program::{Run, Setup};
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    lab::run(lab::on_each_jdk("handovers", handovers)).exit_code()
}

/// Default number of objects handed over in each way.
const ROUNDS: u64 = 2_000;

/// `ET_HANDOVERS=100000` makes it more than a million in all.
fn handovers(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let rounds = match std::env::var("ET_HANDOVERS") {
        Ok(rounds) => rounds.parse().context("ET_HANDOVERS: a number")?,
        Err(_) => ROUNDS,
    };
    let option = format!("-Drounds={rounds}");
    let run = Run::with(lab, jdk, "handovers", "facts/Handovers", Setup { both: &[&option], ..Setup::default() })?;
    let mut text = Command::new(lab.tools.et_trace());
    let mut text = text.args(["text", "--deaths", "none"]).arg(&run.trace).stdout(Stdio::piped()).spawn()?;
    let read = Handovers::read(BufReader::with_capacity(1 << 20, text.stdout.take().context("no pipe")?));
    let status = text.wait()?;
    let done = read.with_context(|| format!("et-trace text {}", run.trace.display()))?.done;
    ensure!(status.success(), "et-trace text fails");
    let ways = if jdk.feature >= 21 { 12 } else { 11 };
    ensure!(done.len() == ways, "{done:?}");
    for (way, count) in &done {
        let expected = if way == "ByStartAndJoin" { rounds / 100 } else { rounds };
        ensure!(*count == expected, "{way}: {count} of {expected}");
    }
    eprintln!("JDK {}: {} objects handed over, all in order", jdk.feature, done.values().sum::<u64>());
    run.clean()
}
