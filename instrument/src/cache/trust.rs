//! Checks the ownership of a cache, since its content is executed.
//!
//! It must belong to this user, or to root, who can execute anything as this user anyway, and no other user may be able
//! to change it or to replace it. A writable cache that belongs to this user is kept up to date; all others are used as
//! they are, such as one that is part of a container image.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access};

use super::error::CacheError;

/// Permitted use of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// All: it belongs to us, or is still to be made.
    Own,
    /// Read-only, or owned by root. No locks are taken, since no process changes it.
    Read,
}

impl Right {
    pub(super) fn of(root: &Path) -> Self {
        match fs::metadata(root) {
            Ok(found) if found.uid() != us() || access(root, Access::WRITE_OK).is_err() => Self::Read,
            _ => Self::Own,
        }
    }
}

/// Fails if other users may have changed the cache. Missing folders are accepted.
pub(super) fn check(root: &Path, folders: &[&str]) -> Result<(), CacheError> {
    for folder in std::iter::once(root.to_owned()).chain(folders.iter().map(|folder| root.join(folder))) {
        let Ok(found) = fs::metadata(&folder) else { continue };
        check_owner(&folder, &found)?;
        // Members of our group, or of root's, were given access by the owner.
        let is_our_group = found.gid() == 0 || found.gid() == rustix::process::getegid().as_raw();
        if found.mode() & 0o002 != 0 || found.mode() & 0o020 != 0 && !is_our_group {
            let why = format!("is writable by others (mode {:o})", found.mode() & 0o777);
            return Err(CacheError::Untrusted { path: folder, why });
        }
    }
    // The owner of a folder can replace what is in it.
    for folder in root.ancestors().skip(1) {
        if let Ok(found) = fs::metadata(folder) {
            check_owner(folder, &found)?;
        }
    }
    Ok(())
}

fn check_owner(path: &Path, found: &Metadata) -> Result<(), CacheError> {
    let owner = found.uid();
    if owner == us() || owner == 0 || is_unmapped(owner) {
        return Ok(());
    }
    let why = format!("belongs to another user (uid {owner})");
    Err(CacheError::Untrusted { path: path.to_owned(), why })
}

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// In a rootless container, the system's folders seem to belong to the overflow user.
fn is_unmapped(owner: u32) -> bool {
    let number = |text: String| text.trim().parse::<u32>().ok();
    let nobody = fs::read_to_string("/proc/sys/kernel/overflowuid").ok().and_then(number);
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    nobody == Some(owner) && map.split_whitespace().next_back() != Some("4294967295")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_cache_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("cache");
        assert!(check(&root, &["jdks"]).is_ok() && Right::of(&root) == Right::Own, "it is still to be made");
        fs::create_dir_all(root.join("jdks")).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for path in [root.clone(), root.join("jdks")] {
            set(&path, 0o777);
            let error = check(&root, &["jdks"]).unwrap_err().to_string();
            assert!(error.contains("is writable by others (mode 777)") && !error.contains('\n'), "{error}");
            set(&path, 0o755);
            assert!(check(&root, &["jdks"]).is_ok());
        }
    }

    #[test]
    fn a_cache_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("theirs/cache");
        fs::create_dir_all(&root).unwrap();
        // Only root gives folders away.
        if std::os::unix::fs::chown(root.parent().unwrap(), Some(4711), None).is_err() {
            return;
        }
        for found in [&root, &root.join("jdks")] {
            let error = check(found, &[]).unwrap_err().to_string();
            assert!(error.contains("theirs belongs to another user (uid 4711)"), "{error}");
        }
        std::os::unix::fs::chown(&root, Some(4711), None).unwrap();
        assert_eq!(Right::of(&root), Right::Read);
        assert!(check(&root, &[]).unwrap_err().to_string().contains("cache belongs to another user"));
    }
}
