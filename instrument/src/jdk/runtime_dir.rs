//! The runtime's parts that go into an instrumented JDK: the native library, and `java.lang.HeapProxy`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::OWN_FOLDER;
use super::error::JdkError;
use super::proxy_class;
use crate::container::zip::Archive;
use crate::files::FileError;
use crate::input::Input;

/// The stub that the JVM loads.
pub const NATIVE_LIBRARY: &str = "libet_runtime.so";
/// The name by which `-agentlib` finds that library.
pub const AGENT: &str = "et_runtime";

/// The agent that monitors look through, if it is there: the stub loads it when it is wanted.
const MONITOR_LIBRARY: &str = "libet_monitor.so";

/// The reader of traces, as it is installed in `bin`.
const READER: &str = "et-trace";

/// A folder with the runtime's parts.
#[derive(Debug)]
pub struct RuntimeDir {
    folder: PathBuf,
}

/// A class of the runtime: `HeapProxy`, without package, and its bytes.
pub type RuntimeClass = (String, Vec<u8>);

impl RuntimeDir {
    /// The given folder, else that in `ET_RUNTIME_DIR`, else the one installed beside this program.
    pub fn find(given: Option<&Path>) -> Result<Self, JdkError> {
        let installed = || {
            let program = std::env::current_exe().ok()?;
            Some(program.parent()?.parent()?.join("lib/elephant-tracks"))
        };
        let folder = given
            .map(Path::to_owned)
            .or_else(|| std::env::var_os("ET_RUNTIME_DIR").map(PathBuf::from))
            .or_else(installed)
            .unwrap_or_default();
        let found = Self { folder };
        found.file(NATIVE_LIBRARY)?;
        Ok(found)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Everything in it that gets into an instrumented JDK.
    pub fn files(&self) -> Result<Vec<PathBuf>, JdkError> {
        let names = [NATIVE_LIBRARY].into_iter().chain([8, 11, 12, 21].map(variant));
        let monitor = self.file(MONITOR_LIBRARY).ok();
        names.map(|name| self.file(name)).chain(monitor.map(Ok)).collect()
    }

    fn file(&self, name: &str) -> Result<PathBuf, JdkError> {
        let path = self.folder.join(name);
        if path.is_file() {
            Ok(path)
        } else {
            Err(JdkError::NoRuntime { folder: self.folder.clone(), missing: name.to_owned() })
        }
    }

    /// The classes for a feature release.
    pub fn classes(&self, feature: u16) -> Result<Vec<RuntimeClass>, JdkError> {
        let path = self.file(variant(feature))?;
        let bytes = Input::open(&path)?;
        let fail = |source| JdkError::Zip { path: path.clone(), source };
        let archive = Archive::read(&bytes).map_err(fail)?;
        let mut classes = Vec::new();
        for entry in &archive.entries {
            let name = entry.name.strip_prefix("java/lang/").and_then(|name| name.strip_suffix(".class"));
            if let Some(name) = name.filter(|name| !name.contains('/')) {
                let class = proxy_class::adapt(&entry.content(&bytes).map_err(fail)?).map_err(|error| {
                    JdkError::Runtime { path: path.clone(), why: format!("{}: {error}", entry.name) }
                })?;
                classes.push((name.to_owned(), class));
            }
        }
        if classes.iter().any(|(name, _)| name == "HeapProxy") {
            Ok(classes)
        } else {
            Err(JdkError::Runtime {
                path,
                why: "contains no java/lang/HeapProxy.class: build the runtime again".into(),
            })
        }
    }

    /// Makes the link by which JVMs of a JDK find the agent among the JDK's own libraries.
    pub fn link_agent(home: &Path) -> Result<(), FileError> {
        let folder = Path::new(OWN_FOLDER).file_name().unwrap_or_default();
        let link = home.join("lib").join(NATIVE_LIBRARY);
        symlink(Path::new(folder).join(NATIVE_LIBRARY), &link).map_err(FileError::at("make the link", &link))
    }

    /// Copies the native libraries into `folder`, where it finds the reader of traces by a link, if that is installed.
    pub fn copy_native(&self, folder: &Path) -> Result<u64, JdkError> {
        if let Ok(reader) = self.folder.join("../../bin").join(READER).canonicalize() {
            let link = folder.join(READER);
            let _ = fs::remove_file(&link);
            // Optional: without the link, the runtime searches elsewhere for the reader.
            let _ = symlink(reader, link);
        }
        let mut bytes = 0;
        for (name, from) in [(NATIVE_LIBRARY, self.file(NATIVE_LIBRARY)), (MONITOR_LIBRARY, self.file(MONITOR_LIBRARY))]
        {
            let from = match from {
                Err(_) if name == MONITOR_LIBRARY => continue,
                from => from?,
            };
            let to = folder.join(name);
            bytes += fs::copy(from, &to).map_err(FileError::at("write", &to))?;
        }
        Ok(bytes)
    }
}

/// Which HeapProxy a release takes: 8 has `sun.misc.Unsafe` only, 12 renamed its methods, 21 brought carrier threads.
fn variant(feature: u16) -> &'static str {
    match feature {
        ..=8 => "heap-proxy-8.jar",
        9..=11 => "heap-proxy-11.jar",
        12..=20 => "heap-proxy-12.jar",
        _ => "heap-proxy-21.jar",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_take_their_variant() {
        let taken = [8, 9, 11, 12, 20, 21, 25].map(variant);
        let expected = ["8", "11", "11", "12", "12", "21", "21"].map(|variant| format!("heap-proxy-{variant}.jar"));
        assert_eq!(taken.map(str::to_owned), expected);
    }

    #[test]
    fn an_empty_folder_is_one_clear_line() {
        let folder = tempfile::tempdir().unwrap();
        let message = RuntimeDir::find(Some(folder.path())).unwrap_err().to_string();
        assert!(message.contains(NATIVE_LIBRARY) && message.contains("--runtime-dir"), "{message}");
        assert!(!message.contains('\n'));
    }
}
