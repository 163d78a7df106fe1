//! `et-instrument run` and `et-instrument cache` without a JDK. What is said of mistakes is in `tests/errors`.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{et_instrument, runtime_dir};

fn program(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// In `folder`, with nothing of the user's: an empty PATH, no home.
fn bare(folder: &Path) -> Command {
    let mut command = et_instrument();
    for name in ["PATH", "JAVA_HOME", "HOME", "XDG_CACHE_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"] {
        command.env_remove(name);
    }
    command.current_dir(folder).env("ET_RUNTIME_DIR", folder.join("runtime")).env("XDG_CACHE_HOME", folder.join("xdg"));
    command
}

fn one_line(output: &Output, code: i32) -> String {
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.starts_with("et-instrument: "), "{message}");
    assert!(output.stdout.is_empty());
    message
}

#[test]
fn options_behind_the_name_of_the_program_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let output = bare(folder.path()).args(["run", "none", "--events", "bogus", "-q"]).output().unwrap();
    assert!(one_line(&output, 127).contains("none not found"));
}

#[test]
fn an_empty_cache_is_listed_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let said = |arguments: &[&str]| {
        let output = bare(folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said(&["cache", "list"]).starts_with("total          0 B      0 entries  /"));
    let list: serde_json::Value = serde_json::from_str(&said(&["cache", "list", "--json"])).unwrap();
    assert_eq!((&list["bytes"], &list["entries"]), (&0.into(), &serde_json::json!([])));
    assert!(said(&["cache", "clear"]).starts_with("removed 0 entries, 0 B, from "));
    assert!(said(&["cache", "--cache-dir", "none", "clear"]).trim_end().ends_with("/none"));
}

/// As a JDK of ours looks, with a shell for its java that runs this script.
fn scripted_jdk(home: &Path, script: &str) {
    for (path, content) in [
        ("lib/modules", "no image".to_owned()),
        ("lib/elephant-tracks/names.etn", String::new()),
        ("et.args", format!("-c\n\"{script}\"\n")),
    ] {
        program(&home.join(path), &content);
    }
    fs::create_dir_all(home.join("bin")).unwrap();
    fs::copy("/bin/sh", home.join("bin/java")).unwrap();
}

#[test]
fn a_kill_takes_the_program_along() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    runtime_dir(root);
    scripted_jdk(&root.join("jdk"), "echo $$; exec sleep 60");
    let path = std::env::var_os("PATH").unwrap();
    let mut command = bare(root);
    command.env("PATH", path).args(["run", "--in-place", "--", "jdk/bin/java", "Main"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let state = Path::new("/proc").join(line.trim()).join("stat");
    assert!(state.exists(), "{line}");
    run.kill().unwrap();
    run.wait().unwrap();
    let start = Instant::now();
    // Where nobody reaps it, it stays as a zombie.
    while fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", fs::read_to_string(&state).unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
}
