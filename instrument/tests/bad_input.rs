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

#[cfg(unix)]
#[test]
fn a_folder_without_permission_and_a_full_disk() {
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
