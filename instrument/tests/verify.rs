//! `et-instrument verify` through the command line: what is wrong with containers and artifacts.

mod common;

use std::fs;
use std::path::Path;

use common::{class, entry, jar, jdks, raw_entry, report, run, runtime_dir};

const NAMES: &str = "META-INF/elephant-tracks/names.etn";

/// An instrumented jar of two classes, made in `folder`.
fn instrumented(folder: &Path) -> Vec<u8> {
    let fixture = |name: &str| {
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.class"))).unwrap()
    };
    let input = jar(&[
        ("Wide.class", fixture("Wide"), false),
        ("Arrays.class", fixture("Arrays"), true),
        ("data.txt", vec![b'x'; 1000], true),
    ]);
    fs::write(folder.join("in.jar"), input).unwrap();
    report(folder, &["in.jar", "-o", "good.jar", "--check", "--force"]);
    fs::read(folder.join("good.jar")).unwrap()
}

/// The lines that `verify` says of a file with these bytes; the exit code goes with them.
fn findings(folder: &Path, name: &str, bytes: &[u8]) -> String {
    fs::write(folder.join(name), bytes).unwrap();
    let output = run(folder, &["verify", name]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!said.is_empty())), "{said}{:?}", output.stderr);
    assert!(String::from_utf8_lossy(&output.stderr).contains("finding"), "the closing line has the counts");
    said
}

#[test]
fn a_good_jar_has_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    let good = instrumented(folder.path());
    assert_eq!(findings(folder.path(), "good.jar", &good), "");
    let said = report(folder.path(), &["verify", "good.jar"]);
    assert_eq!((said["classes"].as_u64(), said["entries"].as_u64()), (Some(2), Some(4)), "{said}");
}

#[test]
fn headers_that_do_not_agree_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let good = instrumented(folder.path());
    let data = raw_entry(&good, b"data.txt").0;
    let local = data - 30 - "data.txt".len();
    let cases = [
        (data, "data.txt: its checksum is wrong"),
        (local + 14, "data.txt: its local header has a different size or checksum"),
        (local + 22, "data.txt: its local header has a different size or checksum"),
        (local + 8, "data.txt: its local header has a different method or different flags"),
        (local + 30, "data.txt: its local header has a different name"),
        (local, "data.txt: its local header is not where the directory says"),
        (good.len() - 14 - 22 + 10, "it claims"),
    ];
    for (at, expected) in cases {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let said = findings(folder.path(), "bad.jar", &bad);
        assert!(said.contains(expected) && said.starts_with("bad.jar: "), "{at}: {said}");
    }
    // Not a jar any more.
    assert!(findings(folder.path(), "bad.jar", &good[..good.len() - 30]).contains("no zip directory"));
}

#[test]
fn classes_and_names_tables_that_do_not_belong_together_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let good = instrumented(folder.path());
    let part = |jar: &[u8], name: &str| entry(jar, name).unwrap();
    let (wide, arrays, names) = (part(&good, "Wide.class"), part(&good, "Arrays.class"), part(&good, NAMES));
    report(folder.path(), &["in.jar", "-o", "other.jar", "--id-base", "5000000"]);
    let other = fs::read(folder.path().join("other.jar")).unwrap();
    let of = |wide: &[u8], arrays: &[u8], names: Option<&[u8]>| {
        let mut items = vec![("Wide.class", wide.to_vec(), false), ("Arrays.class", arrays.to_vec(), false)];
        items.extend(names.map(|names| (NAMES, names.to_vec(), true)));
        jar(&items)
    };
    assert_eq!(findings(folder.path(), "x.jar", &of(&wide, &arrays, Some(&names))), "");
    let foreign = of(&part(&other, "Wide.class"), &arrays, Some(&names));
    let said = findings(folder.path(), "x.jar", &foreign);
    assert!(said.contains("x.jar: Wide.class: it belongs to artifact") && said.lines().count() == 1, "{said}");
    let said = findings(folder.path(), "x.jar", &of(&wide, &arrays, None));
    assert!(said.contains("no names table"), "{said}");
    let said = findings(folder.path(), "x.jar", &of(&wide, &arrays, Some(&names[..names.len() / 2])));
    assert!(said.contains("names table cannot be read"), "{said}");
    // A table of the same hash that lacks a class.
    let table = et_names::NamesTable::decode(&names).unwrap();
    let table = et_names::NamesTable::new(table.artifact);
    let said = findings(folder.path(), "x.jar", &of(&wide, &arrays, Some(&table.encode())));
    assert!(said.contains("Arrays.class: the names table does not know it"), "{said}");
    // Other ids in the hooks: each `entry` names the next method.
    let table = et_names::NamesTable::decode(&names).unwrap();
    let id = (table.artifact.base + 1).to_be_bytes();
    let at = wide.windows(5).position(|five| five[0] == 3 && five[1..] == id).expect("an id is in the pool");
    let mut bent = wide.clone();
    bent[at + 4] ^= 0x40;
    let said = findings(folder.path(), "x.jar", &of(&bent, &arrays, Some(&names)));
    assert!(said.contains("its hooks say that it is method"), "{said}");
}

#[test]
fn a_damaged_class_is_found_in_every_container() {
    let folder = tempfile::tempdir().unwrap();
    let good = instrumented(folder.path());
    let mut wide = entry(&good, "Wide.class").unwrap();
    // The last byte of the class is that of the mark: one less is an attribute cut off.
    wide.pop();
    let at = |name: &str| folder.path().join(name);
    let expected = "cut off";
    assert!(findings(folder.path(), "Wide.class", &wide).contains(expected));
    let inner = jar(&[("Wide.class", wide.clone(), false)]);
    assert!(findings(folder.path(), "x.jar", &inner).contains("x.jar: Wide.class: "));
    let fat = jar(&[("BOOT-INF/lib/x.jar", inner.clone(), true)]);
    let said = findings(folder.path(), "fat.jar", &fat);
    assert!(said.contains("fat.jar: BOOT-INF/lib/x.jar!/Wide.class: ") && said.contains(expected), "{said}");
    let jmod = [b"JM\x01\x00", &jar(&[("classes/Wide.class", wide.clone(), false)])[..]].concat();
    assert!(findings(folder.path(), "x.jmod", &jmod).contains("x.jmod: classes/Wide.class: "));
    fs::create_dir_all(at("dir/lib")).unwrap();
    fs::write(at("dir/Wide.class"), &wide).unwrap();
    fs::write(at("dir/lib/x.jar"), &inner).unwrap();
    let output = run(folder.path(), &["verify", "dir", "--report", "json"]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let places: Vec<_> = said["findings"].as_array().unwrap().iter().map(|found| found["place"].clone()).collect();
    assert!(places.contains(&"dir".into()) && places.contains(&"dir/lib/x.jar".into()), "{said}");
}

#[test]
fn what_is_not_instrumented_is_checked_only_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    let refused = run(folder.path(), &["verify", "plain.jar"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--all"));
    assert_eq!(report(folder.path(), &["verify", "--all", "plain.jar"])["classes"], 1);
    let broken = jar(&[("A.class", class("A")[..20].to_vec(), false)]);
    fs::write(folder.path().join("broken.jar"), broken).unwrap();
    assert_eq!(run(folder.path(), &["verify", "--all", "broken.jar"]).status.code(), Some(1));
    for wrong in [&["verify"][..], &["verify", "--all"]] {
        assert_eq!(run(folder.path(), wrong).status.code(), Some(2));
    }
    let missing = run(folder.path(), &["verify", "none.jar"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read none.jar"));
}

#[test]
fn a_check_is_not_troubled_by_what_was_wrong_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut input = jar(&[("A.class", class("A"), false), ("d.txt", vec![b'd'; 100], true)]);
    let data = raw_entry(&input, b"d.txt").0;
    input[data] ^= 1;
    fs::write(folder.path().join("in.jar"), &input).unwrap();
    report(folder.path(), &["in.jar", "-o", "out.jar", "--check"]);
    assert!(run(folder.path(), &["verify", "out.jar"]).status.code() == Some(1), "verify does not know the input");
}

#[test]
fn a_patch_is_verified_with_the_table_beside_it() {
    for home in jdks().iter().take(1) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = runtime_dir(folder.path());
        let (home, runtime) = (home.to_str().unwrap(), runtime.to_str().unwrap());
        report(folder.path(), &["patch", "--java-home", home, "-o", "p", "--runtime-dir", runtime, "--check"]);
        let said = report(folder.path(), &["verify", "p"]);
        assert!(said["classes"].as_u64().unwrap() > 5000 && said["unmarked"] == 1, "{said}");
        let table = folder.path().join("p/lib/elephant-tracks/names.etn");
        let mut names = et_names::NamesTable::decode(&fs::read(&table).unwrap()).unwrap();
        names.artifact.hash ^= 1;
        fs::write(&table, names.encode()).unwrap();
        let said = run(folder.path(), &["verify", "p"]);
        assert_eq!(said.status.code(), Some(1));
        let said = String::from_utf8_lossy(&said.stdout);
        assert!(said.contains(".class: it belongs to") && said.contains("findings more; --report json"), "{said}");
        assert_eq!(said.lines().count(), 21);
    }
}
