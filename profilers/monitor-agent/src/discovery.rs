//! How monitors find the VM: a file for each process, in a folder that only its user can read. It has the port and the token.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

/// The content of the file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Port on the loopback interface.
    pub port: u16,
    /// 64 hexadecimal digits.
    pub token: String,
    /// Name of the program.
    pub name: String,
    /// Java version.
    pub java: String,
    /// Whether debuggers are forwarded.
    pub is_debuggable: bool,
}

/// A file that is there until this goes out of scope, or the process is killed.
#[derive(Debug)]
pub struct Published {
    folder: OwnedFd,
    name: String,
}

/// A random token of 32 bytes.
pub fn new_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `$XDG_RUNTIME_DIR/et-monitor`, else `/tmp/et-monitor-UID`.
pub fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    match runtime.filter(|path| path.is_dir()) {
        Some(path) => path.join("et-monitor"),
        None => {
            let mut name = OsString::from("et-monitor-");
            name.push(rustix::process::getuid().as_raw().to_string());
            Path::new("/tmp").join(name)
        }
    }
}

/// Start time of the process in ticks since the system was started: field 22 of `/proc/self/stat`, after a name that
/// may contain anything.
fn start_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse().ok()).unwrap_or(0)
}

impl Published {
    /// Makes the folder and the file. A folder that others may write to, or that is not ours, is refused, and no link is followed.
    pub fn new(path: &Path, entry: &Entry) -> io::Result<Self> {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let is = rustix::fs::fstat(&folder)?;
        let others = Mode::RWXG | Mode::RWXO;
        if is.st_uid != rustix::process::getuid().as_raw() || Mode::from_raw_mode(is.st_mode).intersects(others) {
            return Err(io::Error::other("others have access to it (0700 is needed)"));
        }
        clean(&folder);
        let pid = std::process::id();
        // A line is a name and a value.
        let line = |text: &str| text.replace(char::is_control, " ");
        let text = format!(
            "pid={pid}\nstart={}\nport={}\ntoken={}\nname={}\njava={}\ndebug={}\n",
            start_ticks(),
            entry.port,
            entry.token,
            line(&entry.name),
            line(&entry.java),
            if entry.is_debuggable { "on" } else { "off" },
        );
        let (name, part) = (pid.to_string(), format!("{pid}.part"));
        let _ = rustix::fs::unlinkat(&folder, &part, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, &part, flags, Mode::RUSR | Mode::WUSR)?;
        File::from(file).write_all(text.as_bytes())?;
        rustix::fs::renameat(&folder, &part, &folder, &name)?;
        Ok(Self { folder, name })
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
    }
}

/// Removes files of processes that are gone.
fn clean(folder: &OwnedFd) {
    let Ok(entries) = Dir::read_from(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type() == FileType::RegularFile) {
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Ok(pid) = name.strip_suffix(".part").unwrap_or(name).parse::<u32>() else { continue };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn entry() -> Entry {
        Entry { port: 8003, token: "ab".into(), name: "A \"shop\"\n".into(), java: "17".into(), is_debuggable: true }
    }

    #[test]
    fn the_file_exists_as_long_as_the_process_wants_and_is_private() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("monitors");
        let published = Published::new(&folder, &entry()).unwrap();
        fs::write(folder.join("4194305"), "").unwrap();
        let file = folder.join(std::process::id().to_string());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        let says = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = says.lines().collect();
        assert!(lines.contains(&"port=8003") && lines.contains(&"name=A \"shop\" ") && lines.len() == 7, "{says}");
        assert!(!lines.contains(&"start=0"));
        drop(published);
        assert!(!file.exists());
        let _again = Published::new(&folder, &entry()).unwrap();
        assert!(!folder.join("4194305").exists(), "no process has that number");
    }

    #[test]
    fn folders_of_others_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let open = place.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Published::new(&open, &entry()).unwrap_err().to_string().contains("0700"));
        let link = place.path().join("link");
        let real = place.path().join("real");
        fs::create_dir(&real).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&real, &link).unwrap();
        assert!(Published::new(&link, &entry()).is_err(), "a link");
    }

    #[test]
    fn tokens_differ() {
        let (one, other) = (new_token().unwrap(), new_token().unwrap());
        assert!(one.len() == 64 && one != other);
    }
}
