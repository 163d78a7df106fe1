//! `et-trace sql` with a fake DuckDB: what it gets, and what remains afterwards.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::trace;

/// Tables of a small trace, and a folder for programs and one for what is temporary.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder };
        fs::create_dir(place.path("bin")).unwrap();
        fs::create_dir(place.path("tmp")).unwrap();
        fs::write(place.path("a.ettrace"), trace(1)).unwrap();
        let made = place.et_reader(&["tables", "a.ettrace", "-o", "a.tables"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn et_reader(&self, args: &[&str]) -> Command {
        // The parent process may ignore signals.
        let mut command = Command::new("env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_et-trace")]);
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        command.args(args).current_dir(&self.folder).env("PATH", path).env("TMPDIR", self.path("tmp"));
        command
    }

    /// A fake DuckDB that writes the path of its folder to `told`, creates a file in that folder, and then runs the
    /// script.
    fn duckdb(&self, then: &str) {
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exit\nfolder=$(sed -n \"s/^set temp_directory = '\\(.*\\)';$/\\1/p\")\n\
             echo $$ > \"$folder/spilled\"\nstat -c %a \"$folder\" > mode\necho \"$folder\" > told.new && mv told.new told\n{then}\n"
        );
        let path = self.path("bin/duckdb");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn ask(&self) -> Command {
        self.et_reader(&["sql", "a.tables", "select 1", "--csv"])
    }

    fn told(&self) -> PathBuf {
        let path = self.path("told");
        wait_for(|| path.exists());
        fs::read_to_string(path).unwrap().trim().into()
    }

    fn left(&self) -> usize {
        fs::read_dir(self.path("tmp")).unwrap().count()
    }
}

fn wait_for(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn process_of(spilled: &Path) -> PathBuf {
    Path::new("/proc").join(fs::read_to_string(spilled).unwrap().trim())
}

#[test]
fn rows_are_spilled_to_a_new_private_folder() {
    let place = Place::new();
    place.duckdb("echo a; echo 1");
    let victim = place.path("victim");
    fs::write(&victim, "precious").unwrap();
    let child: Child = place.ask().stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The name that could be known: made when it is known, a moment before DuckDB is.
    let known = place.path("tmp").join(format!("et-sql-{}", child.id()));
    let _ = fs::create_dir(&known).and_then(|()| symlink(&victim, known.join("spilled")));
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stdout).trim()), (Some(0), "a\n1"));
    let told = place.told();
    assert!(told.starts_with(place.path("tmp")) && told != known, "{}", told.display());
    assert_eq!(fs::read_to_string(place.path("mode")).unwrap().trim(), "700");
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    let _ = fs::remove_dir_all(known);
    assert_eq!(place.left(), 0);
}

#[test]
fn nothing_is_left_whatever_ends_it() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let place = Place::new();
        place.duckdb("exec sleep 100");
        let mut child = place.ask().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let told = place.told();
        let duckdb = process_of(&told.join("spilled"));
        assert!(duckdb.exists());
        let number = child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &number]).status().unwrap().success());
        let status = child.wait().unwrap();
        assert!(!status.success() && status.code().is_none(), "{signal}: {status}");
        assert!(!told.exists() && place.left() == 0, "{signal}");
        wait_for(|| !duckdb.exists());
    }
    let place = Place::new();
    place.duckdb("echo no such table >&2; exit 1");
    let failed = place.ask().output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(place.told().starts_with(place.path("tmp")) && place.left() == 0);
}

#[test]
fn a_temporary_folder_that_is_not_there_is_named() {
    let place = Place::new();
    place.duckdb("echo a");
    let failed = place.ask().env("TMPDIR", "/no/such/folder").output().unwrap();
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        said.starts_with(
            "et-trace: cannot make a folder for DuckDB in /no/such/folder (set TMPDIR to use another folder): "
        ),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}
