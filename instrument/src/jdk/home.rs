//! Determines the kind of JDK in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use et_names::releases;

use super::error::JdkError;
use crate::container::class_file;

/// A JDK or Java runtime on disk.
#[derive(Debug)]
pub struct JdkHome {
    /// Canonical path.
    pub path: PathBuf,
    /// How its classes are stored.
    pub layout: Layout,
}

/// The two ways in which JDKs keep their classes.
#[derive(Debug, PartialEq, Eq)]
pub enum Layout {
    /// JDK 9 and later: this image.
    Image(PathBuf),
    /// JDK 8: the folder with `rt.jar`.
    Jars(PathBuf),
}

impl JdkHome {
    /// Examines the folder. Fails if it is not a JDK.
    pub fn find(home: &Path) -> Result<Self, JdkError> {
        let fail = |why: String| JdkError::Home { home: home.to_owned(), why };
        let path = fs::canonicalize(home).map_err(|error| fail(error.to_string()))?;
        let image = path.join("lib/modules");
        if image.is_file() {
            return Ok(Self { path, layout: Layout::Image(image) });
        }
        let jars = ["jre/lib", "lib"].map(|lib| path.join(lib)).into_iter().find(|lib| lib.join("rt.jar").is_file());
        match jars {
            Some(lib) => Ok(Self { path, layout: Layout::Jars(lib) }),
            None => Err(fail("it has neither lib/modules (JDK 9 and later) nor lib/rt.jar (JDK 8)".into())),
        }
    }

    /// The folder's name, for people.
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(|| "jdk".into(), |name| name.to_string_lossy().into_owned())
    }
}

/// The feature release (8, 17, 25) of a JDK, from the class file version of its `java.lang.Object`: some builds have no
/// `release` file, and `java` of another machine's JDK may not run here.
pub fn feature_release(object_class: &[u8]) -> Option<u16> {
    releases::of_class(object_class).filter(|feature| class_file::is_class(object_class) && *feature >= 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_file_version_tells_the_release() {
        assert_eq!(feature_release(&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52]), Some(8));
        assert_eq!(feature_release(&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 69]), Some(25));
        assert_eq!(feature_release(&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 1]), None);
        assert_eq!(feature_release(b"short"), None);
    }

    #[test]
    fn a_folder_without_classes_is_no_jdk() {
        let folder = tempfile::tempdir().unwrap();
        let message = JdkHome::find(folder.path()).unwrap_err().to_string();
        assert!(message.contains("neither lib/modules"), "{message}");
        assert!(JdkHome::find(&folder.path().join("none")).is_err());
        fs::create_dir_all(folder.path().join("jre/lib")).unwrap();
        fs::write(folder.path().join("jre/lib/rt.jar"), "").unwrap();
        assert!(matches!(JdkHome::find(folder.path()).unwrap().layout, Layout::Jars(_)));
    }
}
