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
    // A run that is killed leaves what it has in there.
    command.env("TMPDIR", folder);
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

/// Looks like an instrumented JDK, with a shell as its java that runs this script.
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
    // If nothing reaps it, it remains as a zombie.
    while fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", fs::read_to_string(&state).unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A run on a JDK whose java prints its options, variables, and the files that options refer to. Returns its output and
/// our messages.
fn given_to_java(root: &Path, variables: &[(&str, &str)], command: &[&str]) -> (String, Output) {
    let script = "printf '<%s>' \\\"$@\\\"; echo; env | grep OPTIONS=; \
         for word in \\\"$@\\\" $JDK_JAVA_OPTIONS; do case $word in *=/*|@/*) cat \\\"/${word#*/}\\\";; esac; done";
    scripted_jdk(&root.join("jdk"), script);
    let mut run = bare(root);
    run.env("PATH", std::env::var_os("PATH").unwrap()).env_remove("_JAVA_OPTIONS").envs(variables.iter().copied());
    let output = run.args(["run", "--in-place", "--"]).args(command).output().unwrap();
    (String::from_utf8(output.stdout.clone()).unwrap(), output)
}

#[test]
fn archives_of_the_user_are_left_out_on_every_way() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    runtime_dir(root);
    for (name, text) in [
        ("args", "-XX:AOTCache=from-args -Dx=1"),
        ("list", "-XX:AOTMode=on -Dy='a b'"),
        ("flags", "+AutoCreateSharedArchive # AOTCache\n+UseSerialGC"),
        ("more", "-XX:AOTCacheOutput=from-more -Dz=3"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    let variables = [
        ("JAVA_TOOL_OPTIONS", "-Da='b c'  -XX:SharedArchiveFile='my archive.jsa'"),
        ("_JAVA_OPTIONS", "-XX:ArchiveClassesAtExit=x"),
        ("JDK_JAVA_OPTIONS", "@more -Dd=4"),
    ];
    let line = ["-Xshare:on", "@args", "-XX:VMOptionsFile=list", "-XX:Flags=flags", "Main", "-XX:AOTCache=its-own"];
    let (printed, output) = given_to_java(root, &variables, &[&["jdk/bin/java"][..], &line].concat());
    for away in ["-XX:AOTCache=from-args", "AOTMode", "SharedArchive", "ArchiveClasses", "AOTCacheOutput", "<-Xshare"] {
        assert!(!printed.contains(away), "{away}: {printed}");
    }
    for kept in
        ["<-Dx=1>", "-Dy='a b'", "# AOTCache\n+UseSerialGC", "-Dz=3", "-Da='b c'", "-Dd=4", "<-XX:AOTCache=its-own>"]
    {
        assert!(printed.contains(kept), "{kept}: {printed}");
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("left out")).collect();
    let [line] = lines[..] else { panic!("{said}") };
    let expected = "et-instrument: left out, because archives and AOT caches do not work in a traced run: \
        '-XX:SharedArchiveFile=my archive.jsa' (JAVA_TOOL_OPTIONS), -XX:ArchiveClassesAtExit=x (_JAVA_OPTIONS), \
        -XX:AOTCacheOutput=from-more (more), -Xshare:on, -XX:AOTCache=from-args, -XX:AOTMode=on (list), \
        -XX:+AutoCreateSharedArchive (flags)";
    assert_eq!(line, expected);
    assert!(!printed.contains("\n_JAVA_OPTIONS="), "nothing is left of it: {printed}");
    assert_eq!(fs::read_to_string(root.join("list")).unwrap(), "-XX:AOTMode=on -Dy='a b'");

    let (printed, _) = given_to_java(root, &[], &["jdk/bin/java", "-XX:VMOptionsFile=none", "Main"]);
    assert!(printed.contains("><-XX:VMOptionsFile=none><Main>"), "{printed}");
    fs::copy("/bin/sh", root.join("jdk/bin/javac")).unwrap();
    let line = ["jdk/bin/javac", "-J-XX:AOTCache=a", "-J-Xmx1g", "A.java"];
    let mut run = bare(root);
    let output = run.args(["run", "--in-place", "--"]).args(line).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains(" run: -XX:AOTCache=a\n"), "{output:?}");
}
