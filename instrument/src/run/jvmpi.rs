//! `et-instrument run --jvmpi`: runs a program with a JVMPI profiler and without a trace.
//!
//! Without hooks nothing is instrumented; the VM reports methods, and interprets all code meanwhile. With hooks the JDK
//! is an instrumented copy whose classes report methods; the host instruments the program's classes when they are
//! loaded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use et_names::EventSet;
use et_rewriter::filter::Filter;

use super::error::RunError;
use super::java_line::JavaLine;
use super::launcher::{self, Launcher, Surroundings};
use super::left_out::LeftOut;
use super::prepare::{Prepared, Workplace};
use super::scratch::Scratch;
use super::{argfile, child, first_word, long_line, variable};
use crate::artifact::Settings;
use crate::files::Umask;
use crate::jdk::stack_size::StackSize;
use crate::jdk::{JdkHome, Layout, RuntimeDir};

/// The host library, in the same folder as the runtime.
const HOST: &str = "libet_jvmpi.so";
/// Jar with the class that hooks call, in the same folder.
const PROXY: &str = "heap-proxy-jvmpi.jar";

/// What to run with which agent.
#[derive(Debug)]
pub struct JvmpiJob {
    /// The program and its arguments: `java -jar app.jar`.
    pub command: Vec<OsString>,
    /// Path of the agent's library, optionally followed by a colon and its options.
    pub agent: String,
    /// Folder of the host library, if given.
    pub runtime_dir: Option<PathBuf>,
    /// Whether methods are reported by hooks.
    pub hooks: bool,
    /// Where the cache is, if said.
    pub cache_dir: Option<PathBuf>,
    /// Print errors only.
    pub quiet: bool,
}

impl JvmpiJob {
    /// Runs it and returns its exit code.
    pub fn run(&self, settings: &Settings) -> Result<u8, RunError> {
        let (name, arguments) = first_word(&self.command)?;
        let (path, java_home) = (variable("PATH"), variable("JAVA_HOME"));
        let surroundings = Surroundings { path: path.as_deref(), java_home: java_home.as_deref() };
        let launcher = Launcher::find(name, &surroundings).map_err(|error| launcher::meant(name).unwrap_or(error))?;
        let runtime = RuntimeDir::find(self.runtime_dir.as_deref())?;
        let host = runtime.folder().join(HOST);
        if !host.is_file() {
            return Err(RunError::NoHost { path: host });
        }
        let scratch = Scratch::new(&std::env::temp_dir())?;
        let mut left_out = LeftOut::new(&scratch);
        let arguments = if launcher.is_java() {
            let mut line = JavaLine::parse(argfile::expand(arguments.to_vec())?);
            left_out.of_java(&mut line.options)?;
            long_line::arguments(line, &scratch)?
        } else {
            left_out.of_launcher(arguments)?
        };
        let variables = left_out.of_variables()?;
        left_out.line().iter().for_each(|line| super::teller(settings, self.quiet)(line));
        let mut options = vec![format!("-agentpath:{}={}", host.display(), from_here(&self.agent))];
        // It keeps the copy from being removed.
        let prepared = self.hooks.then(|| self.hooked(&launcher.jdk, &runtime, settings)).transpose()?;
        let mut home = launcher.jdk.path.as_path();
        if let Some((prepared, proxy)) = &prepared {
            home = &prepared.home;
            options.push(format!("--patch-module=java.base={}", proxy.display()));
            // Hooks push some methods past 8000 bytes of code, beyond which the JVM would only interpret them.
            options.push("-XX:-DontCompileHugeMethods".to_owned());
            options.push(StackSize::default().scaled().option());
        }
        if !launcher.is_java() {
            options.iter_mut().for_each(|option| option.insert_str(0, "-J"));
        }
        let mut command = Command::new(home.join(&launcher.path));
        LeftOut::set(variables, &mut command);
        command.args(options).args(arguments);
        crate::interrupt::check()?;
        Ok(child::run(&mut command)?.code)
    }

    /// The copy of the JDK, and the class that its hooks call in the place of that which writes traces.
    fn hooked(
        &self,
        jdk: &JdkHome,
        runtime: &RuntimeDir,
        settings: &Settings,
    ) -> Result<(Prepared, PathBuf), RunError> {
        if matches!(jdk.layout, Layout::Jars(_)) {
            return Err(RunError::Usage("--hooks needs a JDK 11 or later".into()));
        }
        let proxy = runtime.folder().join(PROXY);
        if !proxy.is_file() {
            return Err(RunError::NoHost { path: proxy });
        }
        let methods = Settings {
            events: EventSet::METHOD,
            counts: false,
            survival: None,
            filter: Filter::default(),
            progress: settings.progress.clone(),
            ..*settings
        };
        let say = super::teller(settings, self.quiet);
        let _umask = Umask::tightened();
        let workplace = Workplace::find(self.cache_dir.as_deref(), self.runtime_dir.as_deref())?;
        let prepared = workplace.jdk(jdk, &methods, &say)?;
        settings.progress.finish();
        Ok((prepared, proxy))
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
        // A file in the folder of the crate.
        assert_eq!(from_here("Cargo.toml:x"), "./Cargo.toml:x");
    }
}
