//! One turn of a fuzzer.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use wait4::Wait4;

use super::Target;
use super::record::Done;
use xtask::command;

/// Memory limit of a fuzzer, in MB; the memory of a single input is limited by the target.
const MEMORY_MB: u32 = 1024;
/// Seconds after which an input is assumed not to terminate, even on a busy machine.
const LONGEST_SECONDS: u32 = 120;
/// Exit code of libFuzzer after SIGINT or SIGTERM.
const INTERRUPTED: i32 = 72;

/// The fuzzer to run.
pub(super) struct Slice<'a> {
    pub program: &'a Path,
    pub target: &'a Target,
    pub seconds: u64,
    /// Folders with seeds and kept inputs, if they exist.
    pub inputs: [PathBuf; 2],
    /// Folder for failing inputs.
    pub folder: &'a Path,
}

impl Slice<'_> {
    /// Runs the fuzzer until its time is over. A finding is not an error.
    pub(super) fn run(&self) -> Result<Done> {
        let name = &self.target.name;
        let [corpus, found, logs] = ["corpus", "found", "logs"].map(|kind| self.folder.join(kind));
        let corpus = corpus.join(name);
        for folder in [&corpus, &found, &logs] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let log = logs.join(format!("{name}.txt"));
        let mut fuzzer = Command::new(self.program);
        fuzzer.arg(&corpus).args(self.inputs.iter().filter(|folder| folder.is_dir()));
        fuzzer.args([
            format!("-max_total_time={}", self.seconds),
            format!("-max_len={}", self.target.longest),
            format!("-rss_limit_mb={MEMORY_MB}"),
            format!("-timeout={LONGEST_SECONDS}"),
            format!("-artifact_prefix={}/{name}-", found.display()),
            "-print_final_stats=1".into(),
            // Only this process writes to its corpus.
            "-reload=0".into(),
        ]);
        let file = File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        fuzzer.env("RUST_BACKTRACE", "1").stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let mut started = fuzzer.spawn().with_context(|| format!("cannot start {}", command::shown(&fuzzer)))?;
        let ended = started.wait4()?;
        let text = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        let mut done = said(&String::from_utf8_lossy(&text));
        done.processor = (ended.rusage.utime + ended.rusage.stime).as_secs_f64();
        if ended.status.success() {
            // Slow inputs, which libFuzzer also keeps, may be due to a busy machine.
            done.found = None;
        } else if ended.status.code() == Some(INTERRUPTED) {
            bail!("the fuzzer of {name} was interrupted");
        } else {
            let kept = logs.join(format!("{name}-{}.txt", std::process::id()));
            fs::rename(&log, &kept).with_context(|| format!("cannot keep {}", log.display()))?;
            let input = done.found.take().unwrap_or_else(|| format!("it ended with {}", ended.status));
            done.found = Some(format!("{input} ({})", kept.display()));
        }
        Ok(done)
    }
}

/// Parses the figures printed by libFuzzer.
fn said(text: &str) -> Done {
    let mut done = Done::default();
    for line in text.lines() {
        let number = |name: &str| {
            let rest = line.split_once(name)?.1.trim_start();
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        if let Some(edges) = number(" cov: ") {
            done.edges = edges;
        } else if let Some(executions) = number("stat::number_of_executed_units:") {
            done.executions = executions;
        } else if let Some(peak) = number("stat::peak_rss_mb:") {
            done.peak = peak;
        } else if let Some((_, input)) = line.split_once("Test unit written to ") {
            done.found = Some(input.trim().to_owned());
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libfuzzer_says_of_itself_is_read() {
        let done = said(
            "#9861\tINITED cov: 12388 ft: 34715 corp: 2555/7477Kb exec/s: 704 rss: 62Mb\n\
             #86050\tNEW    cov: 12462 ft: 35529 corp: 2844/8376Kb lim: 12288\n\
             stat::number_of_executed_units: 86096\nstat::peak_rss_mb:              101\n",
        );
        assert_eq!(done, Done { executions: 86_096, peak: 101, edges: 12_462, ..Done::default() });
        let crash = said("artifact_prefix='found/'; Test unit written to found/trace-crash-12ab\n");
        assert_eq!(crash.found.as_deref(), Some("found/trace-crash-12ab"));
    }
}
