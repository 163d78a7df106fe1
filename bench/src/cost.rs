//! Measures the time and memory of a run.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wait4::Wait4;

use xtask::command;

/// Time and memory of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Wall time.
    pub seconds: f64,
    /// Processor time of all threads.
    pub processor: f64,
    /// Peak resident memory of its largest process, in bytes.
    pub resident: f64,
}

/// Arguments of the process between this one and the measured one.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// File for the figures
    figures: PathBuf,
    /// The command to run
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs a command. Its output goes to a file in `folder`, and into the error if it fails.
///
/// A separate process starts the command, because a child's peak memory begins with that of its parent, and this
/// process is not small.
pub fn of(run: &Command, folder: &Path) -> Result<Cost> {
    let (log, figures) = (folder.join("output.txt"), folder.join("cost.txt"));
    let file = File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
    // Not by its path, where a later build may have put another program.
    let mut between = Command::new("/proc/self/exe");
    between.arg("cost").arg(&figures).arg("--").arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => between.env(name, value),
            None => between.env_remove(name),
        };
    }
    if let Some(place) = run.get_current_dir() {
        between.current_dir(place);
    }
    let status = between.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status()?;
    let printed = || fs::read_to_string(&log).unwrap_or_default();
    ensure!(status.success(), "{} failed ({status})\n{}", command::shown(run), printed());
    let text = fs::read_to_string(&figures)?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, processor, resident] = numbers[..] else {
        anyhow::bail!("no figures of {}: {text:?}", command::shown(run))
    };
    Ok(Cost { seconds, processor, resident })
}

/// Main function of the process in between.
pub fn run(options: &Options) -> Result<ExitCode> {
    let [program, arguments @ ..] = &options.command[..] else { anyhow::bail!("nothing to run") };
    let start = Instant::now();
    let mut child = Command::new(program).args(arguments).spawn()?;
    let done = child.wait4()?;
    let seconds = start.elapsed().as_secs_f64();
    let processor = (done.rusage.utime + done.rusage.stime).as_secs_f64();
    fs::write(&options.figures, format!("{seconds} {processor} {}\n", done.rusage.maxrss))?;
    Ok(if done.status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
