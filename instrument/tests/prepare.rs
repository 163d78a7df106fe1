//! `et-instrument prepare`: what build tools get, and that only what has changed is written again.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use common::{class, failure, jar, report, run, runtime_dir};
use serde_json::{Value, json};

/// Looks like an instrumented JDK, so that none has to be made.
fn prepared_jdk(root: &Path) {
    for (path, content) in [
        ("jdk/bin/java", ""),
        ("jdk/lib/modules", "no image"),
        ("jdk/lib/elephant-tracks/names.etn", ""),
        ("jdk/et.args", "-XX:hashCode=0\n\"-agentpath:/a b/libet_runtime.so\"\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[test]
fn copies_are_made_once_and_kept_up_to_date_class_by_class() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    runtime_dir(root);
    prepared_jdk(root);
    fs::create_dir(root.join("classes")).unwrap();
    for name in ["Arrays", "Calls"] {
        fs::write(root.join(format!("classes/{name}.class")), class(name)).unwrap();
    }
    fs::write(root.join("classes/settings.txt"), "a").unwrap();

    let options = ["--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let more = ["--class-path", "classes:none.jar", "--exclude", "com.acme.**"];
    let arguments: Vec<&str> = ["prepare"].into_iter().chain(options).chain(more).collect();
    let rewritten = |said: &Value| -> Vec<String> {
        let paths = said["rewritten"].as_array().unwrap().iter().map(|path| path.as_str().unwrap());
        paths.map(|path| path.strip_prefix(root.to_str().unwrap()).unwrap().to_owned()).collect()
    };

    let first = report(root, &arguments);
    assert_eq!(rewritten(&first), ["/classes/Arrays.class", "/classes/Calls.class"]);
    assert_eq!((&first["classFiles"], &first["jars"]), (&json!(2), &json!(0)));
    assert_eq!(first["javaHome"], json!(root.join("jdk")));
    let options = ["-XX:hashCode=0", "-agentpath:/a b/libet_runtime.so", "-Det.dynamicExclude=com.acme.**"];
    assert_eq!(first["options"], json!(options));
    // Missing files keep their paths, as do files that are not classes.
    assert_eq!(first["classPath"][1], json!({"original": "none.jar", "copy": "none.jar"}));
    assert_eq!(first["classPath"][0]["original"], json!(root.join("classes")));
    let copy = Path::new(first["classPath"][0]["copy"].as_str().unwrap());
    assert!(copy.starts_with(root.join("cache")));
    assert_ne!(fs::read(copy.join("Calls.class")).unwrap(), class("Calls"));
    assert_eq!(fs::read_to_string(copy.join("settings.txt")).unwrap(), "a");

    let second = report(root, &arguments);
    assert!(rewritten(&second).is_empty());
    assert_eq!(second["classPath"], first["classPath"]);

    let untouched = fs::metadata(copy.join("Arrays.class")).unwrap().modified().unwrap();
    fs::write(root.join("classes/Calls.class"), class("Allocations")).unwrap();
    assert_eq!(rewritten(&report(root, &arguments)), ["/classes/Calls.class"]);
    assert_eq!(fs::metadata(copy.join("Arrays.class")).unwrap().modified().unwrap(), untouched);
}

#[test]
fn damaged_copies_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    runtime_dir(root);
    prepared_jdk(root);
    fs::create_dir(root.join("classes")).unwrap();
    fs::write(root.join("classes/Arrays.class"), class("Arrays")).unwrap();
    fs::write(root.join("classes/settings.txt"), "a").unwrap();
    fs::write(root.join("app.jar"), jar(&[("Calls.class", class("Calls"), true)])).unwrap();
    let options = ["--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let arguments: Vec<&str> = ["prepare", "--class-path", "classes:app.jar"].into_iter().chain(options).collect();
    let first = report(root, &arguments);
    let copy = |number: usize| Path::new(first["classPath"][number]["copy"].as_str().unwrap()).to_owned();
    let (classes, app) = (copy(0), copy(1));
    let whole = |path: &Path| (fs::read(path).unwrap(), path.to_owned());
    let expected =
        [classes.join("Arrays.class"), classes.join("Arrays.class.etn"), app.clone()].map(|path| whole(&path));
    let damages: [&dyn Fn(&Path); 3] = [
        &|path| fs::File::options().write(true).open(path).unwrap().set_len(3).unwrap(),
        &|path| fs::remove_file(path).unwrap(),
        &|path| fs::write(path, "something else").unwrap(),
    ];
    for damage in damages {
        for (content, path) in &expected {
            damage(path);
            let said = report(root, &arguments);
            assert_eq!(said["rewritten"].as_array().unwrap().len(), 1, "{}: {said}", path.display());
            assert_eq!(fs::read(path).unwrap().len(), content.len(), "{}", path.display());
        }
    }
    fs::remove_file(classes.join("settings.txt")).unwrap();
    assert_eq!(report(root, &arguments)["rewritten"], json!([]));
    assert_eq!(fs::read_to_string(classes.join("settings.txt")).unwrap(), "a");
}

#[test]
fn a_damaged_copy_of_a_jdk_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    runtime_dir(root);
    let lib = root.join("jdk8/jre/lib");
    fs::create_dir_all(&lib).unwrap();
    fs::write(lib.join("rt.jar"), jar(&[("java/lang/Object.class", class("java/lang/Object"), true)])).unwrap();
    let said = || {
        let options = ["--java-home", "jdk8", "--runtime-dir", "runtime", "--cache-dir", "cache"];
        let output = run(root, &["prepare"].into_iter().chain(options).collect::<Vec<_>>());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said().contains("preparing an instrumented copy of "));
    assert_eq!(said(), "");
    let copies = fs::read_dir(root.join("cache/jdks")).unwrap().map(|item| item.unwrap().path());
    let copy = copies.into_iter().find(|path| path.is_dir()).unwrap();
    fs::File::options().write(true).open(copy.join("rt-et.jar")).unwrap().set_len(100).unwrap();
    let again = said();
    assert!(again.contains("rt-et.jar is damaged or was changed: making the copy of the JDK again"), "{again}");
    assert!(fs::metadata(copy.join("rt-et.jar")).unwrap().len() > 100);
    assert_eq!(said(), "");
    assert!(run(root, &["cache", "--cache-dir", "cache", "clear"]).status.success());
    assert_eq!(
        fs::read_dir(root.join("cache/jdks"))
            .unwrap()
            .filter(|item| { !item.as_ref().unwrap().file_name().to_string_lossy().ends_with("e") })
            .count(),
        0,
        "locks stay"
    );
}

#[test]
fn what_gets_no_hooks_is_said_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    runtime_dir(root);
    prepared_jdk(root);
    fs::create_dir(root.join("classes")).unwrap();
    fs::write(root.join("classes/Arrays.class"), class("Arrays")).unwrap();
    fs::write(root.join("classes/Bad.class"), "no class").unwrap();
    fs::write(root.join("app.jar"), jar(&[("Calls.class", class("Calls"), true), ("Bad.class", vec![1], true)]))
        .unwrap();
    let options = ["--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let more = ["--class-path", "classes:app.jar", "--include", "none.**", "--include", "Arrays", "--include", "Calls"];
    let arguments: Vec<&str> = ["prepare"].into_iter().chain(options).chain(more).collect();
    for round in ["made", "found"] {
        let notes = report(root, &arguments)["notes"].clone();
        let lines: Vec<&str> = notes.as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
        assert_eq!(lines.len(), 2, "{round}: {lines:?}");
        assert!(lines[0].starts_with("2 copied unchanged: ") && lines[0].contains("Bad.class: "), "{round}: {lines:?}");
        assert!(lines[1].starts_with("--include none.** had no effect"), "{round}: {lines:?}");
    }
}

#[test]
fn a_class_path_may_be_too_long_for_a_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    runtime_dir(root);
    prepared_jdk(root);
    let list = (0..3000).map(|number| format!("{}/{number}.jar", "x".repeat(100))).collect::<Vec<_>>();
    fs::write(root.join("list"), list.join(":") + "\n").unwrap();
    let options = ["--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let arguments: Vec<&str> = ["prepare", "--class-path", "@list"].into_iter().chain(options).collect();
    assert_eq!(report(root, &arguments)["classPath"].as_array().unwrap().len(), 3000);
}

#[test]
fn mistakes_are_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    runtime_dir(root);
    let message = failure(root, &["prepare", "--java-home", ".", "--cache-dir", "cache"]);
    assert!(message.contains("no JDK at"), "{message}");
    prepared_jdk(root);
    let options = ["--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    report(root, &["prepare"].into_iter().chain(options).collect::<Vec<_>>());
    let arguments: Vec<&str> = ["prepare", "--class-path", "@none"].into_iter().chain(options).collect();
    let message = failure(root, &arguments);
    assert!(message.contains("cannot read the class path none: No such file"), "{message}");
}

/// A user id without an account or a home.
const STRANGER: u32 = 4711;

/// The same command as another user, or as we are if only root could do so; whether it is another user.
fn as_stranger(root: &Path, arguments: &[&str]) -> (std::process::Output, bool) {
    let mut command = common::et_instrument();
    command.current_dir(root).args(arguments).env_remove("HOME");
    let is_other = rustix::process::geteuid().is_root();
    if is_other {
        command.uid(STRANGER).gid(STRANGER);
    }
    (command.output().unwrap(), is_other)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All that can be written in a folder can be written no longer.
fn make_read_only(folder: &Path) {
    for path in common::listing(folder) {
        if !path.is_symlink() {
            set_mode(&path, mode(&path) & !0o222);
        }
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    set_mode(root, 0o755);
    runtime_dir(root);
    let lib = root.join("jdk8/jre/lib");
    fs::create_dir_all(&lib).unwrap();
    fs::write(lib.join("rt.jar"), jar(&[("java/lang/Object.class", class("java/lang/Object"), true)])).unwrap();
    fs::create_dir_all(lib.join("management")).unwrap();
    fs::write(lib.join("management/passwords"), "of root").unwrap();
    set_mode(&lib.join("management/passwords"), 0o600);
    fs::create_dir(root.join("classes")).unwrap();
    fs::write(root.join("classes/Arrays.class"), class("Arrays")).unwrap();
    fs::write(root.join("app.jar"), jar(&[("Calls.class", class("Calls"), true)])).unwrap();
    let options = ["--java-home", "jdk8", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let arguments: Vec<&str> = ["prepare", "--class-path", "classes:app.jar"].into_iter().chain(options).collect();
    let made = report(root, &arguments);
    make_read_only(&root.join("cache"));
    // As after a copy into an image.
    for path in ["app.jar", "classes/Arrays.class"] {
        let file = fs::File::options().write(true).open(root.join(path)).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    let before = common::listing(&root.join("cache"));
    let arguments = [&arguments[..], &["--report", "json"]].concat();
    let (output, is_other) = as_stranger(root, &arguments);
    if !is_other {
        common::not_tested(
            "a_cache_that_cannot_be_written_is_used_as_it_is: by another user",
            "only root can become one",
        );
    }
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["classPath"], &found["javaHome"]), (&made["classPath"], &made["javaHome"]));
    assert_eq!(found["rewritten"], json!([]));

    // Missing copies are not created, and changed originals are not replaced by old copies.
    let options = ["--java-home", "jdk8", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    fs::write(root.join("other.jar"), jar(&[("Other.class", class("Other"), true)])).unwrap();
    fs::write(root.join("classes/Arrays.class"), class("Brrays")).unwrap();
    for (class_path, missing) in [("app.jar:other.jar", "other.jar"), ("classes", "classes")] {
        let (output, _) = as_stranger(root, &[&["prepare", "--class-path", class_path][..], &options].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(&format!("has no copy of {}", root.join(missing).display())), "{said}");
    }
    let (output, _) = as_stranger(root, &[&["prepare", "--events", "alloc"][..], &options].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("has no copy of the JDK ") && said.contains("with --events alloc: its owner"), "{said}");
    assert_eq!(common::listing(&root.join("cache")), before, "nothing is written, no lock is taken");
    for path in common::listing(&root.join("cache")) {
        if path.is_dir() {
            set_mode(&path, 0o755);
        }
    }
}

#[test]
fn a_cache_of_another_user_or_for_all_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    set_mode(root, 0o755);
    runtime_dir(root);
    prepared_jdk(root);
    fs::create_dir(root.join("cache")).unwrap();
    set_mode(&root.join("cache"), 0o777);
    let arguments = ["prepare", "--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let said = failure(root, &arguments);
    assert!(said.contains("/cache is writable by others (mode 777), and files in the cache are executed"), "{said}");
    set_mode(&root.join("cache"), 0o755);
    if std::os::unix::fs::chown(root.join("cache"), Some(STRANGER), None).is_err() {
        common::not_tested(
            "a_cache_of_another_user_or_for_all_is_refused: of somebody else",
            "only root gives it away",
        );
        return;
    }
    let said = failure(root, &arguments);
    assert!(said.contains("/cache belongs to another user (uid 4711)"), "{said}");
    let said = failure(root, &["cache", "--cache-dir", "cache", "clear"]);
    assert!(said.contains("belongs to another user"), "{said}");
    // The same for a folder that would contain it.
    let said = failure(root, &[&arguments[..6], &["cache/mine"]].concat());
    assert!(said.contains("/cache belongs to another user"), "{said}");
}

#[test]
fn the_variable_counts_for_a_user_without_a_home() {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o755);
    if !rustix::process::geteuid().is_root() {
        common::not_tested("the_variable_counts_for_a_user_without_a_home", "only root can become one");
        return;
    }
    let listed = |variable: Option<&str>| {
        let mut command = common::et_instrument();
        command.current_dir(folder.path()).args(["cache", "list"]).uid(STRANGER).gid(STRANGER).env_remove("HOME");
        match variable {
            Some(value) => command.env("XDG_CACHE_HOME", value),
            None => command.env_remove("XDG_CACHE_HOME"),
        };
        let output = command.output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert!(listed(Some("/xdg")).trim_end().ends_with("/xdg/elephant-tracks"));
    let said = listed(None);
    assert!(said.contains("neither XDG_CACHE_HOME nor HOME is set") && said.lines().count() == 1, "{said}");
}

#[test]
fn copies_are_as_private_as_their_originals() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    runtime_dir(root);
    prepared_jdk(root);
    fs::create_dir_all(root.join("classes/inner")).unwrap();
    for (name, wanted) in [("Arrays", 0o644), ("inner/Calls", 0o600)] {
        let path = root.join(format!("classes/{name}.class"));
        fs::write(&path, class(name)).unwrap();
        set_mode(&path, wanted);
    }
    set_mode(&root.join("classes/inner"), 0o700);
    set_mode(&root.join("classes"), 0o755);
    for (name, wanted) in [("open.jar", 0o664), ("closed.jar", 0o600)] {
        fs::write(root.join(name), jar(&[("Calls.class", class("Calls"), true)])).unwrap();
        set_mode(&root.join(name), wanted);
    }
    let options = ["--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let more = ["--class-path", "classes:open.jar:closed.jar"];
    let arguments: Vec<&str> = ["prepare"].into_iter().chain(options).chain(more).collect();
    let made = report(root, &arguments);
    let copy = |number: usize| Path::new(made["classPath"][number]["copy"].as_str().unwrap()).to_owned();
    let classes = copy(0);
    for (path, wanted) in [
        ("", 0o755),
        ("Arrays.class", 0o644),
        ("Arrays.class.etn", 0o644),
        ("inner", 0o700),
        ("inner/Calls.class", 0o600),
        ("inner/Calls.class.etn", 0o600),
    ] {
        assert_eq!(mode(&classes.join(path)), wanted, "{path}");
    }
    assert_eq!([copy(1), copy(2)].map(|jar| mode(&jar)), [0o644, 0o600]);
    let all = |jar: &Path| jar.parent().unwrap().parent().unwrap().to_owned();
    assert_eq!([copy(1), copy(2)].map(|jar| mode(&all(&jar))), [0o755, 0o700]);
    assert_eq!([copy(1), copy(2)].map(|jar| mode(&all(&jar).join("item.json"))), [0o644, 0o600]);
    // Closed later: the copy is, too.
    set_mode(&root.join("classes/Arrays.class"), 0o600);
    assert_eq!(report(root, &arguments)["rewritten"], json!([]));
    assert_eq!(mode(&classes.join("Arrays.class")), 0o600);
}

#[test]
fn a_copy_that_was_changed_and_looks_as_before_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(folder.path()).unwrap();
    runtime_dir(root);
    prepared_jdk(root);
    fs::write(root.join("app.jar"), jar(&[("Calls.class", class("Calls"), true)])).unwrap();
    let options = ["--java-home", "jdk", "--runtime-dir", "runtime", "--cache-dir", "cache"];
    let arguments: Vec<&str> = ["prepare", "--class-path", "app.jar"].into_iter().chain(options).collect();
    let made = report(root, &arguments);
    let copy = Path::new(made["classPath"][0]["copy"].as_str().unwrap());
    let (content, time) = (fs::read(copy).unwrap(), fs::metadata(copy).unwrap().modified().unwrap());
    let mut other = content.clone();
    other[content.len() / 2] ^= 1;
    fs::write(copy, &other).unwrap();
    fs::File::options().write(true).open(copy).unwrap().set_modified(time).unwrap();
    assert_eq!(report(root, &arguments)["jars"], 1);
    assert_ne!(fs::read(copy).unwrap(), other);
}
