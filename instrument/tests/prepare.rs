//! `et-instrument prepare`: what build tools are told, and that only what changed is written again.

mod common;

use std::fs;
use std::path::Path;

use common::{class, failure, jar, report, run, runtime_dir};
use serde_json::{Value, json};

/// As a JDK of ours looks, so that none has to be made.
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
    // What is not there stays where it is, as does what is no class.
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
    assert!(again.contains("rt-et.jar is damaged or was changed: making the copy of the JDK anew"), "{again}");
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
