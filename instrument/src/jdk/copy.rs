//! A copy of a JDK home that shares what does not change.

use std::fs;
use std::path::Path;

use walkdir::WalkDir;

use super::error::JdkError;
use crate::container::folder;
use crate::files::FileError;
use crate::report::Skip;

/// Smaller files are copied: they may be edited, and sharing them saves little.
const SHARED_FROM: u64 = 64 << 10;

/// Result of copying.
#[derive(Debug, Default)]
pub struct Copied {
    /// Files that share their content with the original.
    pub linked: u64,
    /// Number of files copied.
    pub copied: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Files that were not copied.
    pub skipped: Vec<Skip>,
}

/// Copies `home` (a canonical path) to `to`, except what will be made anew: the image and the CDS archives. Links are
/// resolved, since distributions spread a JDK over the file system. Large files, which are never edited, are
/// hard-linked.
pub fn copy_home(home: &Path, to: &Path) -> Result<Copied, JdkError> {
    let mut copied = Copied::default();
    let walk = WalkDir::new(home).follow_links(true).min_depth(1);
    for item in walk {
        crate::interrupt::check()?;
        let item = match item {
            Ok(item) => item,
            Err(error) => {
                let path = error.path().unwrap_or(home).to_owned();
                let name = path.strip_prefix(home).unwrap_or(&path).display().to_string();
                let reason = match error.into_io_error() {
                    Some(error) if error.kind() == std::io::ErrorKind::NotFound => "a dangling link".to_owned(),
                    Some(error) => error.to_string(),
                    None => "circular links".to_owned(),
                };
                copied.skipped.push(Skip { entry: name, reason });
                continue;
            }
        };
        let path = item.path().strip_prefix(home).unwrap_or(item.path());
        let target = to.join(path);
        if item.file_type().is_dir() {
            fs::create_dir_all(&target).map_err(FileError::at("create", &target))?;
        } else if item.file_type().is_file() && !is_made_anew(path) {
            copied.file(home, path, &target)?;
        }
    }
    Ok(copied)
}

fn is_made_anew(path: &Path) -> bool {
    path == Path::new("lib/modules") || path.extension().is_some_and(|extension| extension == "jsa")
}

impl Copied {
    fn file(&mut self, home: &Path, path: &Path, target: &Path) -> Result<(), FileError> {
        let from = home.join(path);
        // Editing a file in the copy must not change the original, and files outside the home belong to other packages.
        let real = fs::canonicalize(&from).map_err(FileError::at("read", &from))?;
        let is_large = fs::metadata(&real).is_ok_and(|about| about.len() >= SHARED_FROM);
        let is_settings = path.starts_with("conf") || path.starts_with("lib/security");
        let shared = real.starts_with(home) && is_large && !is_settings;
        if shared && fs::hard_link(&real, target).is_ok() {
            self.linked += 1;
            return Ok(());
        }
        match fs::File::open(&real) {
            Ok(_) => {}
            // Password files of management, for example: a run does without.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.skipped.push(Skip { entry: path.display().to_string(), reason: error.to_string() });
                return Ok(());
            }
            Err(error) => return Err(FileError::at("read", &real)(error)),
        }
        self.bytes += folder::copy(&real, target)?;
        self.copied += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_are_resolved_and_configuration_is_not_shared() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (home, outside, to) = (root.join("home"), root.join("etc"), root.join("to"));
        for path in ["home/bin", "home/lib/server", "home/conf", "etc"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["bin/java", "lib/modules", "lib/server/classes.jsa", "conf/net.properties"] {
            fs::write(home.join(path), path).unwrap();
        }
        let large = vec![0; SHARED_FROM as usize];
        for path in ["lib/libjava.so", "lib/security/cacerts"] {
            fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
            fs::write(home.join(path), &large).unwrap();
        }
        fs::write(outside.join("security"), "s").unwrap();
        symlink(outside.join("security"), home.join("lib/policy")).unwrap();
        symlink("nowhere", home.join("src.zip")).unwrap();
        fs::create_dir(&to).unwrap();
        let copied = copy_home(&home, &to).unwrap();
        let inode = |path: std::path::PathBuf| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(home.join("lib/libjava.so")), inode(to.join("lib/libjava.so")));
        for own in ["bin/java", "conf/net.properties", "lib/security/cacerts"] {
            assert_ne!(inode(home.join(own)), inode(to.join(own)), "{own}");
        }
        assert_ne!(inode(outside.join("security")), inode(to.join("lib/policy")));
        assert!(!fs::symlink_metadata(to.join("lib/policy")).unwrap().is_symlink());
        assert!(!to.join("lib/modules").exists() && !to.join("lib/server/classes.jsa").exists());
        assert_eq!((copied.linked, copied.copied, copied.skipped.len()), (1, 4, 1));
    }
}
