//! `et-instrument run --jvmpi`: a program of a JDK as it is, with a profiler of JVMPI. Nothing is rewritten, and no trace is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::child;
use super::error::RunError;
use super::launcher::{self, Launcher, Surroundings};
use super::{first_word, variable};
use crate::jdk::RuntimeDir;

/// The host, beside the parts of the runtime.
const HOST: &str = "libet_jvmpi.so";

/// What to run, with which agent.
#[derive(Debug)]
pub struct JvmpiJob {
    /// The program and its arguments: `java -jar app.jar`.
    pub command: Vec<OsString>,
    /// The agent's library, and behind a colon its options.
    pub agent: String,
    /// Where the host is, if said.
    pub runtime_dir: Option<PathBuf>,
}

impl JvmpiJob {
    /// Runs it and returns its exit code.
    pub fn run(&self) -> Result<u8, RunError> {
        let (name, arguments) = first_word(&self.command)?;
        let (path, java_home) = (variable("PATH"), variable("JAVA_HOME"));
        let surroundings = Surroundings { path: path.as_deref(), java_home: java_home.as_deref() };
        let launcher = Launcher::find(name, &surroundings).map_err(|error| launcher::meant(name).unwrap_or(error))?;
        let host = self.host()?;
        let option = format!("-agentpath:{}={}", host.display(), from_here(&self.agent));
        let option = if launcher.is_java() { option } else { format!("-J{option}") };
        let mut command = Command::new(launcher.jdk.path.join(&launcher.path));
        command.arg(option).args(arguments);
        crate::interrupt::check()?;
        Ok(child::run(&mut command)?.code)
    }

    fn host(&self) -> Result<PathBuf, RunError> {
        let host = RuntimeDir::find(self.runtime_dir.as_deref())?.folder().join(HOST);
        if host.is_file() { Ok(host) } else { Err(RunError::NoHost { path: host }) }
    }
}

/// Without a slash the linker would look in its own folders only.
fn from_here(agent: &str) -> String {
    let path = agent.split(':').next().unwrap_or(agent);
    if !path.contains('/') && Path::new(path).is_file() { format!("./{agent}") } else { agent.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_of_the_linkers_folders_is_left_to_it() {
        assert_eq!(from_here("libnowhere.so:file=a/b"), "libnowhere.so:file=a/b");
        assert_eq!(from_here("/a/lib.so"), "/a/lib.so");
        // The folder of the crate.
        assert_eq!(from_here("Cargo.toml:x"), "./Cargo.toml:x");
    }
}
