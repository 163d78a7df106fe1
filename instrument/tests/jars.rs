//! Jars, folders and class files through the command line.

mod common;

use std::fs;

use common::{Item, class, class_of_version, entry, jar, open, report, run};

const NAMES: &str = "META-INF/elephant-tracks/names.etn";

#[test]
fn everything_but_the_classes_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let items: Vec<Item<'_>> = vec![
        ("META-INF/", vec![], true),
        ("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\n".to_vec(), false),
        ("a/", vec![], true),
        ("a/A.class", class("a/A"), false),
        ("a/Stored.class", class("a/Stored"), true),
        ("a/data.bin", vec![7; 5000], false),
        ("META-INF/versions/11/a/A.class", class("a/A"), false),
        ("../outside.txt", b"as an entry it does no harm".to_vec(), false),
        ("/absolute.txt", b"neither".to_vec(), false),
        ("last.txt", vec![], true),
    ];
    let input = jar(&items);
    fs::write(folder.path().join("in.jar"), &input).unwrap();
    let said = report(folder.path(), &["in.jar", "-o", "out.jar"]);
    assert_eq!(said["artifacts"][0]["classes"], 3);
    let output = fs::read(folder.path().join("out.jar")).unwrap();

    let (mut before, mut after) = (open(&input), open(&output));
    assert_eq!(after.comment(), b"made by a test");
    assert_eq!(after.len(), before.len() + 1);
    for index in 0..before.len() {
        let (old, new) = (before.by_index_raw(index).unwrap(), after.by_index_raw(index).unwrap());
        assert_eq!(old.name_raw(), new.name_raw());
        assert_eq!(old.compression(), new.compression(), "{}", old.name().unwrap());
        assert_eq!(old.last_modified(), new.last_modified());
        assert_eq!(old.unix_mode(), new.unix_mode());
        if old.name().unwrap().ends_with(".class") {
            assert_ne!(old.crc32(), new.crc32(), "{} was rewritten", old.name().unwrap());
        } else {
            assert_eq!((old.crc32(), old.compressed_size()), (new.crc32(), new.compressed_size()));
        }
    }
    assert_eq!(after.by_index_raw(after.len() - 1).unwrap().name().unwrap(), NAMES);
    for index in 0..after.len() {
        // Reads and checks the checksum.
        std::io::copy(&mut after.by_index(index).unwrap(), &mut std::io::sink()).unwrap();
    }
    let names = et_names::NamesTable::decode(&entry(&output, NAMES).unwrap()).unwrap();
    let listed: Vec<&str> = names.classes.iter().map(|class| names.str(class.name)).collect();
    assert_eq!(listed, ["a/A", "a/Stored", "a/A"]);
}

#[test]
fn the_same_input_gives_the_same_output() {
    let folder = tempfile::tempdir().unwrap();
    let classes: Vec<String> = (0..50).map(|index| format!("p/C{index}")).collect();
    let names: Vec<String> = classes.iter().map(|name| format!("{name}.class")).collect();
    let items: Vec<Item<'_>> =
        classes.iter().zip(&names).map(|(class_name, name)| (name.as_str(), class(class_name), false)).collect();
    fs::write(folder.path().join("in.jar"), jar(&items)).unwrap();
    for (output, jobs) in [("one.jar", "1"), ("two.jar", "2")] {
        report(folder.path(), &["in.jar", "-o", output, "--jobs", jobs]);
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("one.jar"), read("two.jar"));
}

#[test]
fn two_entries_of_one_name_and_a_launch_script_survive() {
    let folder = tempfile::tempdir().unwrap();
    // The writer of the tests refuses duplicates, so one is renamed afterwards.
    let mut input = jar(&[("dup1.txt", b"one".to_vec(), true), ("dup2.txt", b"two".to_vec(), true)]);
    for at in 0..input.len() - 8 {
        if &input[at..at + 8] == b"dup2.txt" {
            input[at + 3] = b'1';
        }
    }
    let script = b"#!/bin/sh\nexec java -jar \"$0\"\n";
    let class_jar = jar(&[("A.class", class("A"), false)]);
    fs::write(folder.path().join("dup.jar"), &input).unwrap();
    fs::write(folder.path().join("run.jar"), [&script[..], &class_jar].concat()).unwrap();
    report(folder.path(), &["dup.jar", "run.jar", "-o", "out"]);
    // Without classes there is nothing to rewrite: byte for byte the same.
    assert_eq!(fs::read(folder.path().join("out/dup.jar")).unwrap(), input);
    let run = fs::read(folder.path().join("out/run.jar")).unwrap();
    assert!(run.starts_with(script));
    assert!(entry(&run, NAMES).is_some());

    // The same with a class in it, so that it is written anew.
    use et_instrument::container::zip::{Archive, Packed, Writer};
    let archive = Archive::read(&input).unwrap();
    let mut writer = Writer::like(Vec::new(), &archive, &input).unwrap();
    for entry in &archive.entries {
        writer.copy(entry, &input).unwrap();
    }
    writer.add("A.class", &Packed::new(class("A"), 8)).unwrap();
    let (with_class, _) = writer.finish(b"").unwrap();
    fs::write(folder.path().join("dup2.jar"), with_class).unwrap();
    report(folder.path(), &["dup2.jar", "-o", "out2.jar"]);
    let output = fs::read(folder.path().join("out2.jar")).unwrap();
    let archive = Archive::read(&output).unwrap();
    let names: Vec<&str> = archive.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["dup1.txt", "dup1.txt", "A.class", NAMES]);
    assert_eq!(&*archive.entries[1].content(&output).unwrap(), b"two");
}

#[test]
fn more_entries_than_16_bits_count() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..66_000).map(|index| format!("{index}.txt")).collect();
    let mut items: Vec<Item<'_>> = names.iter().map(|name| (name.as_str(), vec![], true)).collect();
    items.push(("A.class", class("A"), false));
    fs::write(folder.path().join("in.jar"), jar(&items)).unwrap();
    report(folder.path(), &["in.jar", "-o", "out.jar"]);
    let output = fs::read(folder.path().join("out.jar")).unwrap();
    assert_eq!(open(&output).len(), 66_002);
}

#[test]
fn signatures_and_digests_go_and_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = b"Manifest-Version: 1.0\r\n\r\nName: A.class\r\nSHA-256-Digest: abc=\r\n\r\n";
    let input = jar(&[
        ("META-INF/MANIFEST.MF", manifest.to_vec(), false),
        ("META-INF/ME.SF", b"x".to_vec(), false),
        ("META-INF/ME.RSA", b"x".to_vec(), false),
        ("A.class", class("A"), false),
    ]);
    fs::write(folder.path().join("in.jar"), input).unwrap();
    let said = report(folder.path(), &["in.jar", "-o", "out.jar"]);
    assert_eq!(said["artifacts"][0]["signaturesRemoved"], serde_json::json!(["META-INF/ME.SF", "META-INF/ME.RSA"]));
    let output = fs::read(folder.path().join("out.jar")).unwrap();
    assert_eq!(entry(&output, "META-INF/MANIFEST.MF").unwrap(), b"Manifest-Version: 1.0\r\n\r\n");
    assert_eq!(entry(&output, "META-INF/ME.SF"), None);
}

#[test]
fn the_libraries_of_a_fat_jar_are_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = jar(&[("l/L.class", class("l/L"), false), ("META-INF/X.SF", b"x".to_vec(), false)]);
    let without_classes = jar(&[("r.txt", b"r".to_vec(), false), ("META-INF/X.SF", b"x".to_vec(), false)]);
    let input = jar(&[
        ("org/springframework/boot/loader/Main.class", class("org/springframework/boot/loader/Main"), false),
        ("BOOT-INF/classes/a/A.class", class("a/A"), false),
        ("BOOT-INF/lib/l.jar", library.clone(), true),
        ("BOOT-INF/lib/r.jar", without_classes.clone(), true),
        ("BOOT-INF/lib/broken.jar", b"no jar".to_vec(), true),
        ("a/template.jar", library.clone(), false),
    ]);
    fs::write(folder.path().join("in.jar"), input).unwrap();
    let said = report(folder.path(), &["in.jar", "-o", "out.jar"]);
    let artifact = &said["artifacts"][0];
    assert_eq!(artifact["classes"], 3);
    assert_eq!(artifact["signaturesRemoved"], serde_json::json!(["BOOT-INF/lib/l.jar!/META-INF/X.SF"]));
    assert_eq!(artifact["skipped"].as_array().unwrap().len(), 2, "{artifact}");
    let output = fs::read(folder.path().join("out.jar")).unwrap();
    let inner = entry(&output, "BOOT-INF/lib/l.jar").unwrap();
    assert_ne!(entry(&inner, "l/L.class").unwrap(), class("l/L"));
    assert_eq!(entry(&inner, NAMES), None, "one artifact, one table");
    assert_eq!(open(&output).by_name("BOOT-INF/lib/l.jar").unwrap().compression(), zip::CompressionMethod::Stored);
    assert_eq!(entry(&output, "BOOT-INF/lib/r.jar").unwrap(), without_classes);
    assert_eq!(entry(&output, "a/template.jar").unwrap(), library);
    assert_eq!(entry(&output, NAMES).map(|names| et_names::NamesTable::decode(&names).unwrap().classes.len()), Some(3));
}

#[test]
fn a_folder_may_hold_classes_and_jars() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir_all(input.join("p/q")).unwrap();
    fs::create_dir_all(input.join("lib")).unwrap();
    fs::write(input.join("p/q/A.class"), class("p/q/A")).unwrap();
    fs::write(input.join("p/app.properties"), "x=1").unwrap();
    fs::write(input.join("lib/a.jar"), jar(&[("B.class", class("B"), false)])).unwrap();
    fs::write(input.join("lib/bad.jar"), "bad").unwrap();
    let said = report(folder.path(), &["in", "-o", "out"]);
    let artifacts = said["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 2, "the loose classes and the jar");
    assert_eq!(artifacts[0]["skipped"][0]["entry"], "lib/bad.jar");
    let block = |artifact: &serde_json::Value| {
        let [base, size] = ["idBase", "idCount"].map(|key| artifact[key].as_u64().unwrap());
        base..base + size.max(1)
    };
    let (one, two) = (block(&artifacts[0]), block(&artifacts[1]));
    assert!(one.end <= two.start || two.end <= one.start, "blocks of ids overlap");
    let out = folder.path().join("out");
    assert!(out.join(NAMES).is_file());
    assert_eq!(fs::read(out.join("p/app.properties")).unwrap(), b"x=1");
    assert_eq!(fs::read(out.join("lib/bad.jar")).unwrap(), b"bad");
    assert_ne!(fs::read(out.join("p/q/A.class")).unwrap(), class("p/q/A"));
    assert!(entry(&fs::read(out.join("lib/a.jar")).unwrap(), NAMES).is_some());
}

#[test]
fn a_single_class_has_its_table_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("A.class"), class("p/A")).unwrap();
    report(folder.path(), &["A.class", "-o", "out/A.class"]);
    let table = fs::read(folder.path().join("out/A.class.etn")).unwrap();
    assert_eq!(et_names::NamesTable::decode(&table).unwrap().classes.len(), 1);
}

#[test]
fn what_cannot_be_rewritten_is_copied_and_reported_unless_strict() {
    let folder = tempfile::tempdir().unwrap();
    let future = class_of_version("F", 200);
    let input = jar(&[
        ("A.class", class("A"), false),
        ("B.class", b"\xca\xfe\xba\xbe broken".to_vec(), false),
        ("E.class", vec![], true),
        ("F.class", future.clone(), false),
    ]);
    fs::write(folder.path().join("in.jar"), input).unwrap();
    let said = report(folder.path(), &["in.jar", "-o", "out.jar"]);
    let skipped = said["artifacts"][0]["skipped"].as_array().unwrap();
    let entries: Vec<&str> = skipped.iter().map(|skip| skip["entry"].as_str().unwrap()).collect();
    assert_eq!(entries, ["B.class", "E.class", "F.class"]);
    assert_eq!(entry(&fs::read(folder.path().join("out.jar")).unwrap(), "F.class").unwrap(), future);
    assert_eq!(run(folder.path(), &["in.jar", "-o", "strict.jar", "--strict"]).status.code(), Some(1));
    assert!(!folder.path().join("strict.jar").exists());
}

#[test]
fn filters_and_id_base_reach_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let input = jar(&[("a/A.class", class("a/A"), false), ("b/B.class", class("b/B"), false)]);
    fs::write(folder.path().join("in.jar"), input).unwrap();
    let said = report(folder.path(), &["in.jar", "-o", "out.jar", "--include", "a.**", "--id-base", "5000000"]);
    assert_eq!(said["artifacts"][0]["excluded"], 1);
    assert_eq!(said["artifacts"][0]["classes"], 2);
    let output = fs::read(folder.path().join("out.jar")).unwrap();
    let names = et_names::NamesTable::decode(&entry(&output, NAMES).unwrap()).unwrap();
    assert_eq!(names.artifact.base, 5_000_000);
    assert_eq!(names.classes.len(), 2, "names of excluded classes are listed too");
}

#[test]
fn an_existing_folder_takes_a_single_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("out")).unwrap();
    fs::write(folder.path().join("in.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    report(folder.path(), &["in.jar", "-o", "out"]);
    assert!(folder.path().join("out/in.jar").is_file());
}

/// JDK 26 and 27 are out, and were not tested: their classes are rewritten all the same.
#[test]
fn classes_of_releases_that_were_not_tested_are_rewritten_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (major, caution) in [(69, None), (70, Some("JDK 26 is newer than")), (71, Some("JDK 27 is newer than"))] {
        fs::write(folder.path().join("A.class"), class_of_version("a/A", major)).unwrap();
        let output = run(folder.path(), &["A.class", "-o", "B.class", "--force", "--quiet"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("newer than"), caution.is_some(), "{said}");
        assert!(said.contains(caution.unwrap_or_default()), "{said}");
        assert_ne!(fs::read(folder.path().join("B.class")).unwrap(), class_of_version("a/A", major));
    }
}
