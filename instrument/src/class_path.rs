//! The `Class-Path` of a jar's manifest: jars that run with it but are not part of it.

use std::path::{Path, PathBuf};

use et_names::class_path::decoded;
use et_names::units::counted;

use crate::container::zip::Archive;
use crate::container::{class_file, jar};
use crate::input::Input;
use crate::staging::Staging;

/// The `Class-Path` of a jar's manifest.
#[derive(Debug)]
pub(crate) struct ClassPath {
    /// Name of the jar, for display.
    pub jar: String,
    /// Path of the jar.
    pub from: PathBuf,
    /// Where it is written, for the time being.
    pub to: PathBuf,
    /// Relative URLs (JAR specification, "Class-Path Attribute").
    pub names: Vec<String>,
}

impl ClassPath {
    /// A line about those that are not instrumented, or not found; `None` if there are none.
    pub(crate) fn note(&self, staging: &Staging) -> Option<String> {
        let (mut lost, mut plain) = (Vec::new(), Vec::new());
        for name in &self.names {
            let path = decoded(name);
            let source = self.from.parent()?.join(&path);
            if !source.exists() {
                continue; // nor was it there before
            }
            let staged = self.to.parent()?.join(&path);
            // Beside a single jar there may be files already.
            let beside = staging.target().parent()?.join(&path);
            match [staged, beside].into_iter().find(|path| path.exists()) {
                None => lost.push(name.as_str()),
                Some(found) if is_plain(&found) => plain.push(name.as_str()),
                Some(_) => {}
            }
        }
        let advice = "instrument the folder that contains them all";
        match (lost.as_slice(), plain.as_slice()) {
            ([first, ..], _) => Some(format!(
                "{}: its Class-Path names {} missing beside the output ({first}): {advice}",
                self.jar,
                counted(lost.len() as u64, "file"),
            )),
            (_, [first, ..]) => Some(format!(
                "{}: its Class-Path names {} that this command does not rewrite ({first}); this happens while the program runs. To do it beforehand, {advice}",
                self.jar,
                counted(plain.len() as u64, "file"),
            )),
            _ => None,
        }
    }
}

/// A jar with classes that is not instrumented.
fn is_plain(path: &Path) -> bool {
    let Ok(bytes) = Input::open(path) else { return false };
    let Ok(archive) = Archive::read(&bytes) else { return false };
    let mut names = archive.entries.iter().map(|entry| entry.name.as_str());
    names.clone().any(|name| class_file::has_class_name(name.as_ref())) && !names.any(jar::is_names_table)
}
