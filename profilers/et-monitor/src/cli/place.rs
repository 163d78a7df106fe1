//! Where a running monitor says that it is: a file that only its user can read, since it has the token.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::discovery::{folder, is_mine};

const NAME: &str = "monitor";

/// A running monitor with its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) pid: u32,
    pub(super) port: u16,
    pub(super) token: String,
}

impl Running {
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Whether its process is alive.
    fn is_alive(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }
}

/// The file that announces the monitor; removed when this is dropped.
#[derive(Debug)]
pub(super) struct Announced {
    path: PathBuf,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The monitor that runs, if one does.
pub(super) fn find() -> Option<Running> {
    let folder = folder();
    if is_mine(&folder) { read(&folder.join(NAME)).filter(Running::is_alive) } else { None }
}

fn read(path: &Path) -> Option<Running> {
    if !is_mine(path) {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    Some(Running {
        pid: value("pid")?.parse().ok()?,
        port: value("page")?.parse().ok()?,
        token: value("token")?.to_owned(),
    })
}

/// Says where this one is. Without a place for that, other commands ask VMs by themselves, which take one monitor only.
pub(super) fn announce(running: &Running) -> io::Result<Announced> {
    announce_in(&folder(), running)
}

fn announce_in(folder: &Path, running: &Running) -> io::Result<Announced> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ if !is_mine(folder) => return Err(io::ErrorKind::PermissionDenied.into()),
        _ => {}
    }
    let path = folder.join(NAME);
    // One that was killed left its own.
    let _ = fs::remove_file(&path);
    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    let announced = Announced { path };
    write!(file, "pid={}\npage={}\ntoken={}\n", running.pid, running.port, running.token)?;
    Ok(announced)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_this_user_reads_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("et-monitor");
        let running = Running { pid: std::process::id(), port: 8790, token: "abc".into() };
        let announced = announce_in(&place, &running).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&place.join(NAME))), (0o700, 0o600));
        assert_eq!(read(&place.join(NAME)), Some(running.clone()));
        drop(announced);
        assert_eq!(read(&place.join(NAME)), None);
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(announce_in(&place, &running).is_err(), "anybody could put a file there");
    }
}
