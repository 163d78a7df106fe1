//! Bad input. What is said of it is in `tests/errors`, for all programs; here is what no table of messages can hold.

mod common;

use std::fs;

use common::{class, failure, jar, report, run};

#[test]
fn any_cut_and_any_bent_byte_is_an_error_or_a_jar() {
    use et_instrument::container::zip::Archive;
    let whole = jar(&[("A.class", class("A"), false), ("b.txt", vec![1; 100], true)]);
    for cut in 0..whole.len() {
        assert!(Archive::read(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bent = whole.clone();
            bent[at] = value;
            // Any outcome but a panic will do.
            if let Ok(archive) = Archive::read(&bent) {
                archive.entries.iter().for_each(|entry| drop(entry.content(&bent)));
            }
        }
    }
}

/// The good classes are rewritten, and the bad one is named, however often.
#[test]
fn a_damaged_class_does_not_keep_the_others_from_their_hooks() {
    let folder = tempfile::tempdir().unwrap();
    let bad = b"\xca\xfe\xba\xbe\0\0\0\x34 no constant pool".to_vec();
    let items = [("A.class", class("A"), false), ("B.class", bad, false), ("C.class", class("C"), false)];
    fs::write(folder.path().join("corrupt.jar"), jar(&items)).unwrap();
    for options in [&["--check"][..], &["--force"]] {
        let said = report(folder.path(), &[&["corrupt.jar", "-o", "o.jar"], options].concat());
        let artifact = &said["artifacts"][0];
        assert_eq!((&artifact["classes"], &artifact["skipped"][0]["entry"]), (&2.into(), &"B.class".into()));
    }
}

#[test]
fn a_full_disk_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let noise: Vec<u8> = (0..300_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let input = jar(&[("A.class", class("A"), false), ("big.bin", noise, true)]);
    fs::write(folder.path().join("in.jar"), input).unwrap();
    fs::create_dir(folder.path().join("dir")).unwrap();
    fs::copy(folder.path().join("in.jar"), folder.path().join("dir/in.jar")).unwrap();
    let before = common::listing(folder.path());
    // A file size limit simulates a full disk: 100 blocks of 512 or 1024 bytes.
    for arguments in ["in.jar -o out.jar", "dir -o out", "in.jar dir/in.jar -o out"] {
        let script = format!("trap '' XFSZ; ulimit -f 100; exec \"$0\" {arguments}");
        let limited = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_et-instrument")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&limited.stderr).into_owned();
        if arguments.starts_with("in.jar dir") {
            assert!(message.contains("two inputs are named in.jar") || message.contains("cannot write"), "{message}");
        } else {
            assert_eq!(limited.status.code(), Some(1), "{message}");
            assert!(message.contains("cannot write") && message.contains("out"), "{message}");
            assert!(!message.contains("et-part"), "{message}");
        }
        assert_eq!(common::listing(folder.path()), before, "{arguments}");
    }
}

#[test]
fn a_killed_run_leaves_no_half_output_and_the_next_one_cleans_up() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..3000).map(|index| format!("r{index}.bin")).collect();
    let mut items: Vec<common::Item<'_>> = names.iter().map(|name| (name.as_str(), vec![1; 10_000], true)).collect();
    items.push(("A.class", class("A"), false));
    fs::write(folder.path().join("in.jar"), jar(&items)).unwrap();
    let parts = || {
        let names = common::listing(folder.path()).into_iter();
        names.filter(|path| path.to_string_lossy().contains(".et-part-")).count()
    };
    let mut command = common::et_instrument();
    let mut process = command.current_dir(folder.path()).args(["in.jar", "-o", "out.jar", "-q"]).spawn().unwrap();
    while parts() == 0 && process.try_wait().unwrap().is_none() {}
    process.kill().unwrap();
    process.wait().unwrap();
    if folder.path().join("out.jar").exists() {
        eprintln!("the run was done before it was killed");
        report(folder.path(), &["verify", "out.jar"]);
    }
    // What a killed run leaves has another name, and the next run removes it.
    report(folder.path(), &["in.jar", "-o", "out.jar", "--force", "--check"]);
    assert_eq!(parts(), 0);
}

#[test]
fn what_gets_no_hooks_is_said_even_when_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let classes = folder.path().join("classes");
    fs::create_dir(&classes).unwrap();
    fs::write(classes.join("A.class"), class("A")).unwrap();
    fs::write(classes.join("B.class"), "no class").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(classes.join("pipe")).status().unwrap().success());
    let said = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["classes", "--force", "-o", "out"], arguments].concat());
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let quiet = said(&["-q", "--include", "none.**", "--include", "A", "--include", "B"]);
    let lines: Vec<&str> = quiet.lines().collect();
    assert!(lines[0].starts_with("et-instrument: 1 copied unchanged: B.class: "), "{quiet}");
    assert_eq!(lines[1], "et-instrument: 1 left out: pipe: neither a file nor a folder", "{quiet}");
    assert!(lines[2].starts_with("et-instrument: --include none.** had no effect"), "{quiet}");
    let loud = said(&[]);
    assert!(loud.contains("1 copied unchanged:\n  B.class: "), "{loud}");
    assert!(loud.contains("1 left out:\n  pipe: neither a file nor a folder\n"), "{loud}");
    assert!(!folder.path().join("out/pipe").exists());
    fs::remove_file(classes.join("B.class")).unwrap();
    let strict = run(folder.path(), &["classes", "--force", "-o", "out", "--strict"]);
    assert!(
        String::from_utf8_lossy(&strict.stderr)
            .contains("pipe: neither a file nor a folder (only a warning without --strict")
    );
}

#[cfg(unix)]
#[test]
fn a_folder_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        common::not_tested("a_folder_without_permission", "this user may write everywhere");
    } else {
        assert!(failure(folder.path(), &["in.jar", "-o", "locked/out.jar"]).contains("ermission denied"));
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    // A file where a folder should be is refused for every user.
    assert!(failure(folder.path(), &["in.jar", "-o", "in.jar/out.jar"]).contains("in.jar"));
}

/// As where `ulimit -u` or `pids.max` leave no room: stacks so large that no thread can be started. The work is done all the same.
#[test]
fn without_threads_the_output_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let items = ["A", "B", "C"].map(|name| (format!("{name}.class"), class(name)));
    let items: Vec<_> = items.iter().map(|(name, bytes)| (name.as_str(), bytes.clone(), false)).collect();
    fs::write(folder.path().join("in.jar"), jar(&items)).unwrap();
    let written = |output: &str, stack: &str| {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_et-instrument"))
            .args(["-q", "--check", "in.jar", "-o", output])
            .current_dir(folder.path())
            .env("RUST_MIN_STACK", stack)
            .output()
            .unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        fs::read(folder.path().join(output)).unwrap()
    };
    assert_eq!(written("with.jar", "2000000"), written("without.jar", "140737488355328"));
}
