//! Scripts that start JVMs: `gradlew`, `spark-submit`, start scripts of servers. Their JVMs are children, which need nothing but an
//! instrumented JDK to be started from: the one that `JAVA_HOME` and `PATH` lead to.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use et_format::trace_path;

use super::error::RunError;
use super::launcher::{Launcher, Surroundings};
use super::left_out::LeftOut;
use super::report::Report;
use super::trace_file::TraceFile;
use super::{RunJob, about_objects, child, children, excluded_classes, lead_to, teller, variable};
use crate::artifact::Settings;
use crate::jdk::is_instrumented;

/// Whether a script stands for `java` itself, whose command line would be lost on us.
pub fn is_shim(script: &Path) -> bool {
    script.file_name().is_some_and(|name| name == "java")
}

impl RunJob {
    /// Runs a script and returns its exit code.
    pub(super) fn script(
        &self,
        script: &Path,
        arguments: &[OsString],
        surroundings: &Surroundings<'_>,
        settings: &Settings,
    ) -> Result<u8, RunError> {
        // As most scripts do.
        let preferred = surroundings.java_home.map(|home| Path::new(home).join("bin/java"));
        let java = preferred.as_deref().map_or(OsStr::new("java"), Path::as_os_str);
        let jdk = Launcher::find(java, surroundings)?.jdk;
        let (umask, workplace, scratch) = self.begin(settings)?;
        let say = teller(settings, self.quiet);
        let mut left_out = LeftOut::new(&scratch);
        let variables = left_out.of_variables()?;
        left_out.line().iter().for_each(|line| say(line));
        let prepared = workplace.jdk(&jdk, settings, &say)?;
        settings.progress.finish();
        drop(umask);

        let mut command = Command::new(script);
        LeftOut::set(variables, &mut command);
        command.args(arguments);
        lead_to(&mut command, &prepared.home, true);
        crate::interrupt::check()?;
        let in_variable = variable("ET_OPTIONS").and_then(|text| TraceFile::in_variable(&text.to_string_lossy()));
        let trace = TraceFile::new(in_variable.into_iter().chain(self.trace()));
        let report = Report::new(&scratch)?;
        command.env(trace_path::REPORT, report.path());
        children::set(
            &mut command,
            Some(trace.given()),
            excluded_classes(settings).as_deref(),
            &about_objects(settings),
        );
        let ended = child::run(&mut command)?;
        let told = children::lines(&report.children());
        told.iter().for_each(|line| say(line));
        if told.is_empty() {
            say(&format!("no trace was written: {} started no JVM of {}", script.display(), prepared.home.display()));
            if is_instrumented(&jdk.path) {
                say(
                    "the JVMs of a copy that et-instrument jdk made are traced with its et.args only: set JAVA_HOME to the original",
                );
            }
        }
        Ok(ended.code)
    }
}
