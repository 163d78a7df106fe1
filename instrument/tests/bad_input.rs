//! Bad input: one clear line, exit code 1, nothing left behind.

mod common;

use std::fs;

use common::{class, failure, jar, jdks, report, run, runtime_dir};

#[test]
fn files_that_are_no_jars() {
    let folder = tempfile::tempdir().unwrap();
    let whole = jar(&[("A.class", class("A"), false), ("b.txt", vec![1; 1000], true)]);
    let mut bent = whole.clone();
    let end = bent.len() - 14 - 22 + 16;
    bent[end] ^= 0xff;
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty.jar", b"", "empty"),
        ("text.jar", b"just text, and more than twenty-two bytes of it", "not a jar"),
        ("cut.jar", &whole[..whole.len() / 2], "not a jar, or cut off"),
        ("bent.jar", &bent, "damaged jar"),
        ("A.class", b"\xca\xfe\xba\xbe\0\0", "A.class"),
        ("B.class", b"", "empty"),
    ];
    for (name, bytes, expected) in cases {
        fs::write(folder.path().join(name), bytes).unwrap();
        let message = failure(folder.path(), &[name, "-o", "out"]);
        assert!(message.contains(expected) && message.contains(name), "{message}");
    }
    assert!(failure(folder.path(), &["none.jar", "-o", "out"]).contains("none.jar"));
}

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

#[test]
fn what_is_instrumented_is_not_instrumented_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/A.class"), class("A")).unwrap();
    fs::write(folder.path().join("in.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    for (input, output) in [("in", "out"), ("in.jar", "out.jar"), ("in/A.class", "B.class")] {
        report(folder.path(), &[input, "-o", output]);
        let message = failure(folder.path(), &[output, "-o", "again"]);
        assert!(message.contains("already instrumented"), "{message}");
    }
    // The table is gone, the classes tell all the same.
    let rewritten = fs::read(folder.path().join("out/A.class")).unwrap();
    fs::write(folder.path().join("plain.jar"), jar(&[("A.class", rewritten, false)])).unwrap();
    assert!(failure(folder.path(), &["plain.jar", "-o", "again.jar"]).contains("already instrumented"));
}

#[test]
fn outputs_that_would_destroy_something() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/A.class"), class("A")).unwrap();
    fs::write(folder.path().join("in.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    fs::write(folder.path().join("there.jar"), "precious").unwrap();
    fs::create_dir_all(folder.path().join("thesis/chapters")).unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["in.jar", "-o", "in.jar", "--force"], "is the same as"),
        (&["in", "-o", "in/out"], "lies inside"),
        (&["in", "-o", "./in/", "--force"], "is the same as"),
        (&["in/A.class", "in.jar", "-o", "in", "--force"], "contains"),
        (&["in.jar", "-o", "there.jar"], "--force"),
        (&["in", "-o", "thesis"], "exists"),
        (&["in", "-o", "thesis", "--force"], "not made by et-instrument"),
    ];
    for (arguments, expected) in cases {
        let message = failure(folder.path(), arguments);
        assert!(message.contains(expected), "{message}");
    }
    report(folder.path(), &["in.jar", "-o", "there.jar", "--force"]);
    assert_ne!(fs::read(folder.path().join("there.jar")).unwrap(), b"precious");
}

/// Each line: what the user does, and what the message says. The exit code is 1, and nothing is left.
#[test]
fn one_clear_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let future = common::class_of_version("F", 200);
    let corrupt = jar(&[
        ("A.class", class("A"), false),
        ("B.class", b"\xca\xfe\xba\xbe\0\0\0\x34 no constant pool".to_vec(), false),
        ("C.class", class("C"), false),
    ]);
    fs::write(at("corrupt.jar"), corrupt).unwrap();
    fs::write(at("future.jar"), jar(&[("F.class", future.clone(), false)])).unwrap();
    fs::write(at("Future.class"), future).unwrap();
    fs::write(at("good.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    fs::write(at("text.class"), "not a class").unwrap();
    fs::create_dir(at("loop")).unwrap();
    std::os::unix::fs::symlink("../loop", at("loop/again")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("gone.jar")).unwrap();
    fs::write(at("names.etn"), "").unwrap();
    report(folder.path(), &["good.jar", "-o", "done.jar"]);
    let cases: &[(&[&str], &[&str])] = &[
        (&["corrupt.jar", "-o", "o.jar", "--strict"], &["corrupt.jar: B.class: ", "--strict"]),
        (&["future.jar", "-o", "o.jar", "--strict"], &["F.class", "newer than 69 (JDK 25)"]),
        (&["Future.class", "-o", "o.class"], &["Future.class", "newer than 69 (JDK 25)"]),
        (&["text.class", "-o", "o.class"], &["text.class", "CAFEBABE"]),
        (&["good.jar", "-o", "good.jar"], &["is the same as", "choose another -o"]),
        (&["done.jar", "-o", "o.jar"], &["already instrumented", "instrument the original"]),
        (&["good.jar", "-o", "done.jar"], &["done.jar exists", "--force"]),
        (&["good.jar", "-o", "/proc/o.jar"], &["cannot", "/proc"]),
        (&["good.jar", "-o", "good.jar/o.jar"], &["good.jar"]),
        (&["/dev/null", "-o", "o.jar"], &["/dev/null", "neither a file nor a folder"]),
        (&["loop", "-o", "o"], &["loop/again", "links in a circle"]),
        (&["gone.jar", "-o", "o.jar"], &["cannot read gone.jar"]),
        (&["names.etn", "-o", "o"], &["names.etn", "empty"]),
        (&["good.jar", "-o", "o.jar", "--id-base", "0"], &["good.jar needs", "choose another --id-base"]),
        (&["good.jar", "-o", "o.jar", "--id-base", "1073741823"], &["ids end at", "choose another --id-base"]),
        (&["good.jar", "-o", "o.jar", "--id-base", "4294967295"], &["ids end at"]),
        (&["verify", "text.class"], &["nothing in it is instrumented"]),
        (&["verify", "gone.jar"], &["cannot read gone.jar"]),
    ];
    for (arguments, expected) in cases {
        let message = failure(folder.path(), arguments);
        for part in *expected {
            assert!(message.contains(part), "{arguments:?}: {message}");
        }
    }
    // Without --strict the good classes are rewritten, and the bad one is said.
    let said = report(folder.path(), &["corrupt.jar", "-o", "o.jar", "--check"]);
    assert_eq!(
        (&said["artifacts"][0]["classes"], &said["artifacts"][0]["skipped"][0]["entry"]),
        (&2.into(), &"B.class".into())
    );
    // And again, over the first run's output.
    report(folder.path(), &["corrupt.jar", "-o", "o.jar", "--force"]);
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
    // A limit on the size of files stands in for the disk: 100 blocks of 512 or 1024 bytes.
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
    // What a killed run leaves has another name, and goes with the next.
    report(folder.path(), &["in.jar", "-o", "out.jar", "--force", "--check"]);
    assert_eq!(parts(), 0);
}

#[test]
fn options_before_a_subcommand_get_a_tip() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--events", "alloc", "jdk", "--java-home", "x", "-o", "y"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("tip: options come behind the subcommand: et-instrument jdk"), "{message}");
}

#[test]
fn patterns_that_match_nothing_are_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.jar"), jar(&[("A.class", class("a/A"), false)])).unwrap();
    let said = report(folder.path(), &["in.jar", "-o", "out.jar", "--include", "com.acme.**", "--exclude", "a"]);
    let notes = said["warnings"].to_string();
    assert!(notes.contains("--include com.acme.** decided over no class") && !notes.contains("--exclude"), "{notes}");
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
    assert!(lines[2].starts_with("et-instrument: --include none.** decided over no class"), "{quiet}");
    let loud = said(&[]);
    assert!(loud.contains("1 copied unchanged:\n  B.class: "), "{loud}");
    assert!(loud.contains("1 left out:\n  pipe: neither a file nor a folder\n"), "{loud}");
    assert!(!folder.path().join("out/pipe").exists());
    fs::remove_file(classes.join("B.class")).unwrap();
    let strict = run(folder.path(), &["classes", "--force", "-o", "out", "--strict"]);
    assert!(String::from_utf8_lossy(&strict.stderr).contains("pipe: neither a file nor a folder (without --strict"));
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
        eprintln!("skipped: this user may write everywhere");
    } else {
        assert!(failure(folder.path(), &["in.jar", "-o", "locked/out.jar"]).contains("ermission denied"));
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    // A file where a folder should be is refused for every user.
    assert!(failure(folder.path(), &["in.jar", "-o", "in.jar/out.jar"]).contains("in.jar"));
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    fs::create_dir(folder.path().join("x")).unwrap();
    fs::copy(folder.path().join("in.jar"), folder.path().join("x/in.jar")).unwrap();
    let cases: [&[&str]; 5] = [
        &[],
        &["in.jar"],
        &["in.jar", "-o", "out.jar", "--events", "bogus"],
        &["in.jar", "-o", "out.jar", "--include", "a["],
        &["in.jar", "x/in.jar", "-o", "out"],
    ];
    for arguments in cases {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(!folder.path().join("out").exists());
}

#[test]
fn no_jdk_and_no_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime_dir(folder.path());
    let runtime = runtime.to_str().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let jdk = |home: &str, runtime: &str| {
        failure(folder.path(), &["jdk", "--java-home", home, "-o", "out", "--runtime-dir", runtime])
    };
    assert!(jdk("none", runtime).contains("no JDK at none"));
    assert!(jdk("empty", runtime).contains("neither lib/modules"));
    fs::create_dir_all(folder.path().join("fake/lib")).unwrap();
    fs::write(folder.path().join("fake/lib/modules"), "no image").unwrap();
    assert!(jdk("fake", runtime).contains("CAFEDADA"));
    if let Some(home) = jdks().first() {
        let home = home.to_str().unwrap();
        assert!(jdk(home, "empty").contains("libet_runtime.so is missing"));
        let message = failure(
            folder.path(),
            &["patch", "--java-home", "fake", "-o", "out", "--runtime-dir", runtime, "--module", "java.base"],
        );
        assert!(message.contains("CAFEDADA"), "{message}");
    }
}
