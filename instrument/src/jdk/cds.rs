//! A class data sharing archive for a rewritten JDK.
//!
//! The JVM checks only the *size* of `lib/modules` against the archive, so a stale one would run the old classes
//! in silence: archives are never copied, and a new one is dumped from the rewritten image.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::args_file;
use crate::error::Error;

/// A collector that does not archive heap objects. Archived objects carry the identity hashes that they had at the
/// dump, and those would collide with the hashes drawn at run time.
fn collector(feature: u16) -> &'static str {
    // ZGC never archives objects, but before 21 its archives did not fit a run with compressed references.
    if feature >= 21 { "-XX:+UseZGC" } else { "-XX:+UseParallelGC" }
}

/// Dumps the default archive of the JDK at `home`. Returns where it is and how long it took.
pub fn dump(home: &Path, feature: u16) -> Result<(PathBuf, Duration), Error> {
    let fail = |why: String| Error::Cds { why };
    let start = Instant::now();
    let mut command = Command::new(home.join("bin/java"));
    command.args(args_file::flags(feature)).arg(collector(feature)).arg("-Xshare:dump");
    // A user's options may name agents and collectors.
    for variable in ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"] {
        command.env_remove(variable);
    }
    let done = command.stdin(Stdio::null()).output().map_err(|error| fail(error.to_string()))?;
    crate::interrupt::check()?;
    let archives = ["classes.jsa", "classes_nocoops.jsa"].map(|name| home.join("lib/server").join(name));
    let archive = archives.into_iter().find(|path| path.is_file());
    match archive {
        Some(archive) if done.status.success() => Ok((archive, start.elapsed())),
        _ => {
            let said = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
            let line = said.lines().find(|line| line.to_lowercase().contains("error")).or(said.lines().last());
            Err(fail(format!("{} ({})", line.unwrap_or("no message").trim(), done.status)))
        }
    }
}
