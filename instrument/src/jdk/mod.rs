//! `et-instrument jdk` and `et-instrument patch`: instrumented copies of a JDK's own classes.

mod args_file;
mod cds;
mod copy;
mod error;
mod home;
mod image;
mod jars;
mod patch;
mod proxy_class;
mod runtime_dir;
mod seed;
pub(crate) mod stack_size;

use std::path::{Path, PathBuf};

pub(crate) use args_file::quoted as argument_quoted;
pub use error::JdkError;
pub(crate) use et_names::shell::quoted;
pub use home::{JdkHome, Layout};
pub use runtime_dir::RuntimeDir;

use crate::artifact::{AlreadyInstrumented, Settings};
use crate::report::Report;
use crate::staging::{MARKS, Staging, refuse_entangled};

/// The package of the runtime's classes.
const RUNTIME_PACKAGE: &str = "java/lang";
/// The output's folder for the library and the names table.
const OWN_FOLDER: &str = MARKS[1];
/// The file with JVM options.
pub(crate) const ARGS_FILE: &str = "et.args";

/// What to make from which JDK.
#[derive(Debug)]
pub struct JdkJob {
    /// The JDK to instrument.
    pub home: PathBuf,
    /// The folder to create.
    pub output: PathBuf,
    /// Where the runtime's parts are, if said.
    pub runtime_dir: Option<PathBuf>,
    /// Whether to replace an existing output.
    pub force: bool,
    /// First id, if given.
    pub id_base: Option<u32>,
    /// Whether to dump a CDS archive.
    pub cds: bool,
    /// Whether JVMs of the copy are traced that a traced program starts. Such a copy can dump no archives itself.
    pub children: bool,
}

impl JdkJob {
    /// An instrumented copy of the JDK; for a JDK 8, rewritten boot jars.
    pub fn copy(&self, settings: &Settings) -> Result<Report, JdkError> {
        let (home, runtime, staging) = self.start()?;
        let done = match &home.layout {
            Layout::Image(image) => image::copy(self, &home, image, &runtime, &staging, settings),
            Layout::Jars(lib) => jars::prepend(self, &home, lib, &runtime, &staging, settings),
        };
        self.finish(staging, done, settings)
    }

    /// Patches for modules of the JDK.
    pub fn patch(&self, modules: &[String], settings: &Settings) -> Result<Report, JdkError> {
        let (home, runtime, staging) = self.start()?;
        let done = match &home.layout {
            Layout::Image(image) => patch::patch(self, &home, image, modules, &runtime, &staging, settings),
            Layout::Jars(lib) => jars::prepend(self, &home, lib, &runtime, &staging, settings),
        };
        self.finish(staging, done, settings)
    }

    fn finish(
        &self,
        staging: Staging,
        done: Result<Report, JdkError>,
        settings: &Settings,
    ) -> Result<Report, JdkError> {
        let mut report = done.map_err(|error| match error {
            JdkError::File(error) => JdkError::File(staging.explain(error)),
            other => other,
        })?;
        let verdict = staging.check(settings, std::slice::from_ref(&self.home))?;
        report.checked(verdict.map(|verdict| verdict.summary()));
        report.warnings.extend(settings.filter.unused());
        report.output = staging.target().display().to_string();
        staging.commit()?;
        Ok(report)
    }

    fn start(&self) -> Result<(JdkHome, RuntimeDir, Staging), JdkError> {
        let home = JdkHome::find(&self.home)?;
        if is_instrumented(&home.path) {
            return Err(AlreadyInstrumented { place: self.home.display().to_string() }.into());
        }
        refuse_entangled(&self.home, &self.output)?;
        Ok((home, RuntimeDir::find(self.runtime_dir.as_deref())?, Staging::new(&self.output, self.force)?))
    }
}

/// Whether this tool made the JDK at a home.
pub(crate) fn is_instrumented(home: &Path) -> bool {
    home.join(OWN_FOLDER).exists()
}

/// The line that tells the user how to use the output.
fn usage(java: &Path, staging: &Staging) -> String {
    let args = format!("@{}", staging.target().join(ARGS_FILE).display());
    let java = quoted(&java.display().to_string());
    format!("run with: {java} {} -Det.traceFile=app.ettrace -jar app-et.jar", quoted(&args))
}
