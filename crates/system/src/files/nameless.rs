//! Unnamed files (`O_TMPFILE`): they vanish however the process ends, unless they are given a name.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;

/// Directory of a file or folder; `.` if the path has none.
pub fn parent(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates an unnamed file for reading and writing on the file system of `folder`; `None` if the file system does not
/// support it.
pub fn create(folder: &Path, mode: u32) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Ok(Some(file.into())),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives an unnamed file a name. Fails if the name exists.
pub fn name(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, in_proc(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Whether [`name`] works for this file, which needs `/proc`.
pub fn can_be_named(file: &File) -> bool {
    in_proc(file).exists()
}

fn in_proc(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_file_gets_a_name_that_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut file) = create(folder.path(), 0o600).unwrap() else { return };
        file.write_all(b"content").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        assert!(can_be_named(&file));
        let path = folder.path().join("named");
        name(&file, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");
        let other = create(folder.path(), 0o600).unwrap().unwrap();
        assert_eq!(name(&other, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_name_alone_lies_in_the_current_folder() {
        assert_eq!(parent("file".as_ref()), Path::new("."));
        assert_eq!(parent("folder/file".as_ref()), Path::new("folder"));
    }
}
