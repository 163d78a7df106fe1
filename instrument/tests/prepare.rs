//! `et-instrument prepare`: what build tools are told, and that only what changed is written again.

mod common;

use std::fs;
use std::path::Path;

use common::{class, failure, report, runtime_dir};
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
    assert_eq!((&first["class_files"], &first["jars"]), (&json!(2), &json!(0)));
    assert_eq!(first["java_home"], json!(root.join("jdk")));
    let options = ["-XX:hashCode=0", "-agentpath:/a b/libet_runtime.so", "-Det.dynamicExclude=com.acme.**"];
    assert_eq!(first["options"], json!(options));
    // What is not there stays where it is, as does what is no class.
    assert_eq!(first["class_path"][1], json!({"original": "none.jar", "copy": "none.jar"}));
    assert_eq!(first["class_path"][0]["original"], json!(root.join("classes")));
    let copy = Path::new(first["class_path"][0]["copy"].as_str().unwrap());
    assert!(copy.starts_with(root.join("cache")));
    assert_ne!(fs::read(copy.join("Calls.class")).unwrap(), class("Calls"));
    assert_eq!(fs::read_to_string(copy.join("settings.txt")).unwrap(), "a");

    let second = report(root, &arguments);
    assert!(rewritten(&second).is_empty());
    assert_eq!(second["class_path"], first["class_path"]);

    let untouched = fs::metadata(copy.join("Arrays.class")).unwrap().modified().unwrap();
    fs::write(root.join("classes/Calls.class"), class("Allocations")).unwrap();
    assert_eq!(rewritten(&report(root, &arguments)), ["/classes/Calls.class"]);
    assert_eq!(fs::metadata(copy.join("Arrays.class")).unwrap().modified().unwrap(), untouched);
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
    assert_eq!(report(root, &arguments)["class_path"].as_array().unwrap().len(), 3000);
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
