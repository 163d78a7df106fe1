//! `et-instrument cache`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use et_names::escape::{Json, Lines, OneLine};
use et_names::units::{self, counted};

use super::error::Error;
use crate::cache::entry::About;
use crate::cache::list::Cleared;
use crate::cache::{Cache, Kind};

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
    /// List instrumented JDKs and programs: size, last use, place, origin
    List {
        /// Print one JSON object instead of lines
        #[arg(long)]
        json: bool,
    },
    /// Remove everything that no running program uses
    Clear,
    /// Remove entries, unless a running program uses them
    Remove {
        /// The folder as printed by list, its name, or an unambiguous prefix of that
        #[arg(required = true, value_name = "ENTRY")]
        entries: Vec<String>,
    },
}

impl CacheArgs {
    /// Executes the subcommand.
    pub(super) fn execute(&self) -> Result<ExitCode, Error> {
        let cache = Cache::find(self.cache_dir.as_deref())?;
        let mut out = std::io::stdout().lock();
        // A closed pipe is not an error: the work is done.
        match &self.command {
            CacheCommand::List { json: true } => _ = writeln!(out, "{}", Json(json(&cache))),
            CacheCommand::List { json: false } => _ = write!(out, "{}", Lines(table(&cache))),
            CacheCommand::Clear => _ = write!(out, "{}", Lines(removed(&cache.clear()?, &cache))),
            CacheCommand::Remove { entries } => {
                let cleared = cache.remove_entries(entries)?;
                let _ = write!(out, "{}", Lines(removed(&cleared, &cache)));
                if !cleared.in_use.is_empty() {
                    return Ok(ExitCode::FAILURE);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(cache: &Cache) -> String {
    let entries = cache.entries();
    let mut lines = String::new();
    for entry in &entries {
        let (place, about) = (entry.folder.display(), about(&entry.about));
        let (size, used) = (units::bytes(entry.bytes), ago(entry.used));
        let line = format!("{:<8} {size:>9} {used:>14}  {place}{about}", what(entry.kind));
        lines += &format!("{}\n", OneLine(line));
    }
    let total = units::bytes(entries.iter().map(|entry| entry.bytes).sum());
    lines + &format!("{:<8} {total:>9} {:>14}  {}\n", "total", number(entries.len()), cache.root().display())
}

/// In the last column, since its length is unbounded.
fn about(about: &About) -> String {
    let jdk = about.jdk.iter().map(|home| format!("of {}", home.display()));
    let parts: Vec<String> = jdk.chain(about.options.iter().cloned()).collect();
    if parts.is_empty() { String::new() } else { format!("  ({})", parts.join(", ")) }
}

fn json(cache: &Cache) -> serde_json::Value {
    let entries = cache.entries();
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let entries = entries.iter().map(|entry| {
        let since = entry.used.and_then(|used| used.duration_since(SystemTime::UNIX_EPOCH).ok());
        serde_json::json!({
            "kind": what(entry.kind).to_lowercase(),
            "name": entry.name(),
            "folder": entry.folder,
            "bytes": entry.bytes,
            "usedUnixSeconds": since.map(|since| since.as_secs()),
            "jdk": entry.about.jdk,
            "options": entry.about.options,
        })
    });
    serde_json::json!({ "folder": cache.root(), "bytes": total, "entries": entries.collect::<Vec<_>>() })
}

fn removed(cleared: &Cleared, cache: &Cache) -> String {
    let mut lines = format!(
        "removed {}, {}, from {}\n",
        number(cleared.entries),
        units::bytes(cleared.bytes),
        cache.root().display()
    );
    cleared.in_use.iter().for_each(|entry| lines += &format!("in use, kept: {}\n", entry.display()));
    lines
}

fn what(kind: Kind) -> &'static str {
    if kind == Kind::Jdk { "JDK" } else { "program" }
}

fn number(entries: usize) -> String {
    counted(entries as u64, "entry")
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
    fn ages_are_formatted_in_the_unit_that_fits() {
        let age = |seconds| ago(Some(SystemTime::now() - Duration::from_secs(seconds)));
        assert_eq!([age(5), age(600), age(90_000), age(400_000)], ["5 s ago", "10 min ago", "25 h ago", "4 days ago"]);
    }
}
