//! `et-instrument cache`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, Subcommand};

use crate::cache::{Cache, Kind};
use crate::error::Error;
use crate::report::counted;

/// What `cache` takes.
#[derive(Debug, Args)]
pub(super) struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
    /// The cache's folder [default: elephant-tracks in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", global = true)]
    cache_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// List instrumented JDKs and programs: size, when they were used last, where they are
    List,
    /// Remove all that no running program uses
    Clear,
}

impl CacheArgs {
    /// Lists or clears.
    pub(super) fn execute(&self) -> Result<ExitCode, Error> {
        let cache = Cache::find(self.cache_dir.as_deref())?;
        let mut out = std::io::stdout().lock();
        // A closed pipe is no reason to fail: the work is done.
        let _ = match self.command {
            CacheCommand::List => cache.entries().iter().try_for_each(|entry| {
                let what = if entry.kind == Kind::Jdk { "JDK" } else { "program" };
                let place = entry.folder.display();
                writeln!(out, "{what:<8} {:>9} {:>14}  {place}", megabytes(entry.bytes), ago(entry.used))
            }),
            CacheCommand::Clear => {
                let cleared = cache.clear()?;
                let count = counted(cleared.entries as u64, "entry").replace("entrys", "entries");
                let _ = writeln!(out, "removed {count}, {}, from {}", megabytes(cleared.bytes), cache.root().display());
                cleared.in_use.iter().try_for_each(|entry| writeln!(out, "in use, kept: {}", entry.display()))
            }
        };
        Ok(ExitCode::SUCCESS)
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn ago(used: Option<SystemTime>) -> String {
    let Some(age) = used.and_then(|used| used.elapsed().ok()) else { return "just now".into() };
    match age.as_secs() {
        seconds @ ..120 => format!("{seconds} s ago"),
        seconds @ ..7200 => format!("{} min ago", seconds / 60),
        seconds @ ..172_800 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ages_are_told_in_the_unit_that_fits() {
        let age = |seconds| ago(Some(SystemTime::now() - Duration::from_secs(seconds)));
        assert_eq!([age(5), age(600), age(90_000), age(400_000)], ["5 s ago", "10 min ago", "25 h ago", "4 days ago"]);
    }
}
