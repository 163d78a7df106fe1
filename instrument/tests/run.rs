//! What a user can do wrong with `et-instrument run` and `et-instrument cache`: one clear line, and an exit code that
//! is told from a program's.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
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
fn every_mistake_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    runtime_dir(root);
    program(&root.join("shims/java"), "#!/bin/sh\nexec java \"$@\"");
    program(&root.join("tool"), "\x7fELF");
    program(&root.join("jre/bin/java"), "\x7fELF");
    // An image that is none; a JDK of ours that lost its options.
    program(&root.join("damaged/bin/java"), "\x7fELF");
    program(&root.join("damaged/lib/modules"), "no image");
    program(&root.join("ours/bin/java"), "\x7fELF");
    program(&root.join("ours/lib/modules"), "no image");
    program(&root.join("ours/lib/elephant-tracks/names.etn"), "");
    // As if it were instrumented: what comes after that can go wrong, too.
    program(&root.join("good/bin/java"), "\x7fELF, but no program");
    program(&root.join("good/lib/modules"), "no image");
    program(&root.join("good/lib/elephant-tracks/names.etn"), "");
    program(&root.join("good/et.args"), "-XX:hashCode=0");
    symlink("nowhere", root.join("dangling")).unwrap();
    fs::write(root.join("file"), "").unwrap();

    let table: &[(&[&str], i32, &[&str])] = &[
        (&["java"], 127, &["java is not found", "JAVA_HOME"]),
        (&["./none/java", "-jar", "x.jar"], 127, &["cannot run ./none/java", "No such file"]),
        (&["./dangling"], 127, &["cannot run ./dangling"]),
        (&["shims/java"], 126, &["shims/java is a script", "$JAVA_HOME/bin/java"]),
        (&["./tool", "x"], 126, &["tool is no launcher of a JDK", "bin"]),
        (&["jre/bin/java"], 126, &["no launcher of a JDK", "lib/modules", "lib/rt.jar"]),
        (&["damaged/bin/java"], 125, &["damaged/lib/modules"]),
        (&["ours/bin/java"], 126, &["ours", "without et.args", "et-instrument jdk"]),
        (&["good/bin/java", "@none", "Main"], 126, &["argument file none", "No such file"]),
        (&["good/bin/java", "Main"], 126, &["cannot start", "good/bin/java"]),
    ];
    for (command, code, parts) in table {
        let output = bare(root).args(["run", "-q", "--"]).args(*command).output().unwrap();
        let message = one_line(&output, *code);
        parts.iter().for_each(|part| assert!(message.contains(part), "{command:?}: {message}"));
    }

    let fails = |change: &dyn Fn(&mut Command), code| {
        let mut command = bare(root);
        command.arg("run");
        change(&mut command);
        one_line(&command.args(["--", "good/bin/java", "Main"]).output().unwrap(), code)
    };
    let message = fails(&|command| _ = command.args(["--cache-dir", "file"]), 125);
    assert!(message.contains("cannot create the cache folder") && message.contains("file/jdks"), "{message}");
    let message = fails(&|command| _ = command.args(["--runtime-dir", "shims"]), 125);
    assert!(message.contains("libet_runtime.so") && message.contains("--runtime-dir"), "{message}");
    let message = fails(&|command| _ = command.args(["--exclude", "a["]), 2);
    assert!(message.contains("--exclude 'a[' is no pattern: "), "{message}");
}

#[test]
fn wrong_usage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [&["run"][..], &["run", "--"], &["run", "--events", "bogus", "--", "java"], &["cache"], &["cache", "x"]]
    {
        let output = bare(folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    // Options behind the program's name are the program's.
    let output = bare(folder.path()).args(["run", "none", "--events", "bogus", "-q"]).output().unwrap();
    assert!(one_line(&output, 127).contains("none is not found"));
}

#[test]
fn an_empty_cache_is_listed_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let said = |arguments: &[&str]| {
        let output = bare(folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(&["cache", "list"]), "");
    assert!(said(&["cache", "clear"]).starts_with("removed 0 entries, 0.0 MB, from "));
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
