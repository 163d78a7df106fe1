//! The containers that Java has, odd ones included, each through the command line with `--check`.

mod common;

use std::fs;
use std::path::Path;

use common::{Item, RawEntry, class, entry, jar, open, raw_entry, raw_jar, report, run};
use serde_json::Value;

const NAMES: &str = "META-INF/elephant-tracks/names.etn";

/// Instruments a jar with `--check`, and verifies the output once more. Returns the report and the output.
fn instrumented(folder: &Path, name: &str, bytes: &[u8]) -> (Value, Vec<u8>) {
    fs::create_dir_all(folder.join("in")).unwrap();
    fs::write(folder.join("in").join(name), bytes).unwrap();
    let input = format!("in/{name}");
    let output = format!("out/{name}");
    let said = report(folder, &[&input, "-o", &output, "--check", "--force"]);
    if said["artifacts"][0]["classes"] != 0 {
        report(folder, &["verify", &output]);
    }
    (said, fs::read(folder.join(output)).unwrap())
}

fn skipped(said: &Value) -> Vec<&str> {
    let skipped = said["artifacts"][0]["skipped"].as_array().unwrap();
    skipped.iter().map(|skip| skip["entry"].as_str().unwrap()).collect()
}

#[test]
fn an_ear_of_wars_of_jars() {
    let folder = tempfile::tempdir().unwrap();
    let deepest = jar(&[("d/D.class", class("d/D"), false)]);
    let library = jar(&[("l/L.class", class("l/L"), false), ("lib/d.jar", deepest, true)]);
    let war = jar(&[("WEB-INF/classes/w/W.class", class("w/W"), false), ("WEB-INF/lib/l.jar", library, false)]);
    let ejb = jar(&[("e/E.class", class("e/E"), false)]);
    let ear = jar(&[
        ("META-INF/application.xml", b"<application/>".to_vec(), false),
        ("shop.war", war, false),
        ("ejb.jar", ejb.clone(), false),
        ("lib/e.jar", ejb.clone(), false),
        ("APP-INF/lib/e.jar", ejb, false),
    ]);
    let (said, output) = instrumented(folder.path(), "shop.ear", &ear);
    assert_eq!(said["artifacts"][0]["classes"], 6, "{said}");
    assert_eq!(skipped(&said), [""; 0]);
    let war = entry(&output, "shop.war").unwrap();
    let library = entry(&war, "WEB-INF/lib/l.jar").unwrap();
    let deepest = entry(&library, "lib/d.jar").unwrap();
    assert_ne!(entry(&deepest, "d/D.class").unwrap(), class("d/D"));
    assert_eq!(open(&library).by_name("lib/d.jar").unwrap().compression(), zip::CompressionMethod::Stored);
}

#[test]
fn a_jar_too_deep_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut nested = jar(&[("D.class", class("D"), false)]);
    for _ in 0..5 {
        nested = jar(&[("lib/n.jar", nested, true), ("x.txt", b"x".to_vec(), false)]);
    }
    let (said, _) = instrumented(folder.path(), "deep.jar", &nested);
    assert_eq!(skipped(&said), ["lib/n.jar!/lib/n.jar!/lib/n.jar!/lib/n.jar"], "{said}");
}

#[test]
fn jars_that_the_manifest_names_are_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let library = jar(&[("l/L.class", class("l/L"), false)]);
    for (attribute, value) in [("Bundle-ClassPath", ".,inner/l.jar"), ("Rsrc-Class-Path", "./ inner/l.jar x.jar")] {
        let manifest = format!("Manifest-Version: 1.0\r\n{attribute}: {value}\r\n\r\n");
        let bundle = jar(&[
            ("META-INF/MANIFEST.MF", manifest.clone().into_bytes(), false),
            ("a/A.class", class("a/A"), false),
            ("inner/l.jar", library.clone(), true),
        ]);
        let (said, output) = instrumented(folder.path(), "bundle.jar", &bundle);
        assert_eq!(said["artifacts"][0]["classes"], 2, "{attribute}");
        assert_eq!(entry(&output, "META-INF/MANIFEST.MF").unwrap(), manifest.as_bytes());
    }
}

#[test]
fn data_is_not_looked_into_and_only_said_if_it_holds_classes() {
    let folder = tempfile::tempdir().unwrap();
    let input = jar(&[
        ("a/A.class", class("a/A"), false),
        ("samples/texts.jar", jar(&[("t.txt", b"t".to_vec(), false)]), false),
        ("samples/no.jar", b"no jar".to_vec(), false),
        ("samples/lib.zip", jar(&[("B.class", class("B"), false)]), false),
    ]);
    fs::write(folder.path().join("in.jar"), &input).unwrap();
    let said = report(folder.path(), &["in.jar", "-o", "out.jar", "--strict", "--check"]);
    assert_eq!(skipped(&said), [""; 0]);
    let with_classes =
        jar(&[("a/A.class", class("a/A"), false), ("samples/b.jar", jar(&[("B.class", class("B"), false)]), false)]);
    let (said, _) = instrumented(folder.path(), "b.jar", &with_classes);
    assert_eq!(skipped(&said), ["samples/b.jar"]);
    assert_eq!(run(folder.path(), &["in/b.jar", "-o", "strict.jar", "--strict"]).status.code(), Some(1));
}

#[test]
fn agents_services_and_launchers_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = b"Manifest-Version: 1.0\r\nPremain-Class: a.Agent\r\nAgent-Class: a.Agent\r\n\
        Launcher-Agent-Class: a.Agent\r\nCan-Redefine-Classes: true\r\nAdd-Opens: java.base/java.lang\r\n\
        Main-Class: a.Main\r\nMulti-Release: true\r\n\r\nName: a/\r\nSealed: true\r\n\r\n";
    let items: Vec<Item<'_>> = vec![
        ("META-INF/MANIFEST.MF", manifest.to_vec(), false),
        ("META-INF/services/a.Service", b"a.Impl # as it was\r\n".to_vec(), false),
        ("META-INF/INDEX.LIST", b"JarIndex-Version: 1.0\n\n".to_vec(), false),
        ("a/Agent.class", class("a/Agent"), false),
        ("META-INF/versions/17/a/Agent.class", class("a/Agent"), false),
        ("META-INF/versions/17/a/extra.txt", b"17".to_vec(), false),
    ];
    let (said, output) = instrumented(folder.path(), "agent.jar", &jar(&items));
    assert_eq!(said["artifacts"][0]["classes"], 2);
    for (name, content, _) in items.iter().filter(|item| !item.0.ends_with(".class")) {
        assert_eq!(entry(&output, name).as_ref(), Some(content), "{name}");
    }
}

#[test]
fn headers_that_libraries_drop_survive() {
    let folder = tempfile::tempdir().unwrap();
    let stamp: &[u8] = b"UT\x05\0\x01\x2a\0\0\0";
    let owner: &[u8] = b"ux\x04\0\x01\x00\x01\x00";
    let texts = vec![b'x'; 300];
    let input = raw_jar(&[
        RawEntry { deflated: true, descriptor: true, ..RawEntry::new("a/A.class", class("a/A")) },
        RawEntry { deflated: true, descriptor: true, comment: b"of mine", ..RawEntry::new("d.txt", texts.clone()) },
        RawEntry { local_extra: stamp, central_extra: owner, ..RawEntry::new("extra.txt", texts.clone()) },
        RawEntry { local_extra: stamp, comment: b"class", ..RawEntry::new("a/B.class", class("a/B")) },
        RawEntry { name: b"caf\xe9.txt", ..RawEntry::new("", texts.clone()) },
        RawEntry { name: b"caf\xe8.txt", ..RawEntry::new("", b"another".to_vec()) },
        RawEntry { name: b"p\xff/C.class", ..RawEntry::new("", class("p/C")) },
        RawEntry { flags: 1 << 11, ..RawEntry::new("grüße.txt", texts.clone()) },
        RawEntry::new("dup/A.class", class("dup/A")),
        RawEntry::new("dup/A.class", class("dup/A")),
        RawEntry::new("/", vec![]),
        RawEntry::new("../../etc/passwd", texts.clone()),
        RawEntry::new("C:\\evil.class", class("evil")),
        RawEntry::new("folder/", vec![]),
    ]);
    let (said, output) = instrumented(folder.path(), "odd.jar", &input);
    assert_eq!(said["artifacts"][0]["classes"], 6, "{said}");
    assert_eq!(skipped(&said), [""; 0]);
    assert!(output.ends_with(b"\x07\0comment"));
    for name in [b"d.txt".as_slice(), b"extra.txt", b"caf\xe9.txt", b"caf\xe8.txt", "grüße.txt".as_bytes(), b"folder/"]
    {
        let (old, new) = (raw_entry(&input, name), raw_entry(&output, name));
        assert_eq!((&old.1, &old.2, &old.3), (&new.1, &new.2, &new.3), "{}", String::from_utf8_lossy(name));
    }
    let at = raw_entry(&output, b"caf\xe8.txt").0;
    assert_eq!(&output[at..at + 7], b"another");
    assert_eq!(raw_entry(&output, b"a/B.class").1, stamp);
    assert_eq!(raw_entry(&output, b"a/B.class").3, b"class");
    assert!(!folder.path().join("etc").exists());
}

#[test]
fn aligned_entries_stay_aligned() {
    let folder = tempfile::tempdir().unwrap();
    // Zeros as zipalign pads, and the field that says how.
    let library = jar(&[("l/L.class", class("l/L"), false)]);
    let first = RawEntry::new("a/A.class", class("a/A"));
    let before = 30 + first.name.len() + first.content.len();
    let zeros = vec![0; (4 - (before + 30 + "BOOT-INF/lib/l.jar".len()) % 4) % 4 + 4];
    let mut padded = vec![0x35, 0xd9, 4, 0, 64, 0, 0, 0];
    let input = |padded: &[u8]| {
        raw_jar(&[
            first.clone(),
            RawEntry { local_extra: &zeros, ..RawEntry::new("BOOT-INF/lib/l.jar", library.clone()) },
            RawEntry { local_extra: padded, ..RawEntry::new("data.bin", vec![7; 100]) },
            RawEntry::new("plain.bin", vec![8; 101]),
        ])
    };
    let at = raw_entry(&input(&padded), b"data.bin").0;
    let missing = at.next_multiple_of(64) - at;
    padded[2] += missing as u8;
    padded.resize(8 + missing, 0);
    let input = input(&padded);
    assert_eq!(raw_entry(&input, b"BOOT-INF/lib/l.jar").0 % 4, 0);
    assert_eq!(raw_entry(&input, b"data.bin").0 % 64, 0);
    let (_, output) = instrumented(folder.path(), "aligned.jar", &input);
    assert_ne!(raw_entry(&output, b"BOOT-INF/lib/l.jar").0, raw_entry(&input, b"BOOT-INF/lib/l.jar").0);
    assert_eq!(raw_entry(&output, b"BOOT-INF/lib/l.jar").0 % 4, 0);
    assert_eq!(raw_entry(&output, b"data.bin").0 % 64, 0);
    assert_eq!(raw_entry(&output, b"plain.bin").1, b"");
}

#[test]
fn encrypted_and_otherwise_packed_entries_are_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut input = raw_jar(&[
        RawEntry::new("a/A.class", class("a/A")),
        RawEntry { flags: 1, ..RawEntry::new("a/Secret.class", class("a/Secret")) },
        RawEntry::new("a/Odd.class", class("a/Odd")),
        RawEntry { flags: 1, ..RawEntry::new("secret.txt", b"secret".to_vec()) },
    ]);
    // Method 12 for one class, in both of its headers.
    let at = raw_entry(&input, b"a/Odd.class").0;
    let local = input[..at].windows(4).rposition(|four| four == b"PK\x03\x04").unwrap();
    input[local + 8] = 12;
    let central = input.windows(11).rposition(|name| name == b"a/Odd.class").unwrap() - 46;
    input[central + 10] = 12;
    let (said, output) = instrumented(folder.path(), "packed.jar", &input);
    assert_eq!(said["artifacts"][0]["classes"], 1);
    assert_eq!(skipped(&said), ["a/Secret.class", "a/Odd.class"]);
    let at = raw_entry(&output, b"a/Secret.class").0;
    assert_eq!(output[at..at + class("a/Secret").len()], class("a/Secret"));
}

#[test]
fn a_prefix_stays_whether_offsets_count_it_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let script = b"#!/bin/sh\nexec java -jar \"$0\" \"$@\"\nexit\n";
    let plain = raw_jar(&[RawEntry::new("a/A.class", class("a/A"))]);
    let mut counted = [&script[..], &plain].concat();
    let shift = script.len() as u32;
    let end = counted.len() - 29;
    let start = u32::from_le_bytes(counted[end + 16..end + 20].try_into().unwrap()) + shift;
    counted[end + 16..end + 20].copy_from_slice(&start.to_le_bytes());
    let entry_at = start as usize + 42;
    counted[entry_at..entry_at + 4].copy_from_slice(&shift.to_le_bytes());
    for input in [[&script[..], &plain].concat(), counted] {
        let (said, output) = instrumented(folder.path(), "run.jar", &input);
        assert_eq!(said["artifacts"][0]["classes"], 1);
        assert!(output.starts_with(script));
        assert!(entry(&output, NAMES).is_some());
    }
}

#[test]
fn zip64_headers_of_small_entries_are_read() {
    use std::io::Write;
    use zip::write::SimpleFileOptions;
    let folder = tempfile::tempdir().unwrap();
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in [("a/A.class", class("a/A")), ("b.txt", b"b".to_vec())] {
        writer.start_file(name, SimpleFileOptions::default().large_file(true)).unwrap();
        writer.write_all(&content).unwrap();
    }
    let input = writer.finish().unwrap().into_inner();
    let (said, output) = instrumented(folder.path(), "large.jar", &input);
    assert_eq!(said["artifacts"][0]["classes"], 1);
    assert_eq!(entry(&output, "b.txt").unwrap(), b"b");
}

/// An archive of stored entries that uses zip64 fields for every number that allows it.
fn all_in_64_bits(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let (offset, size) = ((out.len() as u64).to_le_bytes(), (content.len() as u64).to_le_bytes());
        let shared = |extra: &[u8]| {
            let mut bytes = Vec::new();
            [45u16, 0, 0, 0x1234, 0x5678].into_iter().for_each(|value| bytes.extend(value.to_le_bytes()));
            bytes.extend(crc32fast::hash(content).to_le_bytes());
            bytes.extend([0xff; 8]);
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend((extra.len() as u16).to_le_bytes());
            bytes
        };
        let field = |values: &[[u8; 8]]| [&[1, 0, values.len() as u8 * 8, 0], &values.concat()[..]].concat();
        let (local_extra, central_extra) = (field(&[size, size]), field(&[size, size, offset]));
        out.extend([b"PK\x03\x04", &shared(&local_extra)[..], name.as_bytes(), &local_extra, content].concat());
        central.extend([b"PK\x01\x02\x2d\x03", &shared(&central_extra)[..], &[0; 10], &[0xff; 4]].concat());
        central.extend([name.as_bytes(), &central_extra].concat());
    }
    let (start, count) = (out.len() as u64, entries.len() as u64);
    out.extend(&central);
    let end64 = out.len() as u64;
    out.extend([b"PK\x06\x06", &44u64.to_le_bytes()[..], &[45, 0, 45, 0], &[0; 8]].concat());
    [count, count, central.len() as u64, start].into_iter().for_each(|value| out.extend(value.to_le_bytes()));
    out.extend([b"PK\x06\x07", &[0; 4][..], &end64.to_le_bytes(), &[1, 0, 0, 0]].concat());
    out.extend([b"PK\x05\x06", &[0; 4][..], &[0xff; 12], &[0; 2]].concat());
    out
}

#[test]
fn numbers_of_64_bits_are_read_wherever_they_may_stand() {
    let folder = tempfile::tempdir().unwrap();
    let input = all_in_64_bits(&[("a/A.class", class("a/A")), ("b.txt", b"b".to_vec())]);
    let (said, output) = instrumented(folder.path(), "wide.jar", &input);
    assert_eq!(said["artifacts"][0]["classes"], 1);
    assert_eq!(entry(&output, "b.txt").unwrap(), b"b");
    assert_ne!(entry(&output, "a/A.class").unwrap(), class("a/A"));
    let mut cut = input.clone();
    let field = cut.windows(4).rposition(|four| four == [1, 0, 24, 0]).unwrap();
    cut[field + 2] = 16;
    fs::write(folder.path().join("cut.jar"), cut).unwrap();
    let refused = run(folder.path(), &["cut.jar", "-o", "out.jar"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("its zip64 field is too short"), "{refused:?}");
}

#[test]
fn more_entries_than_16_bits_count() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..70_000).map(|number| format!("r/{number}")).collect();
    let mut entries: Vec<(&str, Vec<u8>)> = names.iter().map(|name| (name.as_str(), Vec::new())).collect();
    entries.push(("a/A.class", class("a/A")));
    let (said, output) = instrumented(folder.path(), "many.jar", &all_in_64_bits(&entries));
    assert_eq!(said["artifacts"][0]["classes"], 1);
    assert_eq!(common::open(&output).len(), 70_002);
}

#[test]
fn an_empty_jar_is_a_jar() {
    let folder = tempfile::tempdir().unwrap();
    let (said, output) = instrumented(folder.path(), "empty.jar", &jar(&[]));
    assert_eq!(output, jar(&[]));
    assert!(said["warnings"][0].as_str().unwrap().contains("no class"), "{said}");
}

#[test]
fn a_jmod_keeps_its_header_and_takes_its_table_where_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let zip = jar(&[
        ("classes/module-info.class", class("module-info"), false),
        ("classes/a/A.class", class("a/A"), false),
        ("lib/libx.so", b"elf".to_vec(), false),
        ("legal/LICENSE", b"mine".to_vec(), false),
    ]);
    let input = [b"JM\x01\x00", &zip[..]].concat();
    let (said, output) = instrumented(folder.path(), "a.jmod", &input);
    assert_eq!(said["artifacts"][0]["classes"], 2);
    assert!(output.starts_with(b"JM\x01\x00PK\x03\x04"));
    assert!(entry(&output, "lib/elephant-tracks/a.etn").is_some() && entry(&output, NAMES).is_none());
    let again = run(folder.path(), &["out/a.jmod", "-o", "again.jmod"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("already instrumented"));
    let base = [b"JM\x01\x00", &jar(&[("classes/java/lang/Object.class", class("java/lang/Object"), false)])[..]];
    fs::write(folder.path().join("java.base.jmod"), base.concat()).unwrap();
    let refused = run(folder.path(), &["java.base.jmod", "-o", "b.jmod"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("et-instrument jdk"), "{refused:?}");
    fs::create_dir(folder.path().join("app")).unwrap();
    fs::rename(folder.path().join("java.base.jmod"), folder.path().join("app/java.base.jmod")).unwrap();
    fs::copy(folder.path().join("in/a.jmod"), folder.path().join("app/a.jmod")).unwrap();
    let said = report(folder.path(), &["app", "-o", "app-et", "--check"]);
    assert_eq!(skipped(&said), ["java.base.jmod"], "{said}");
}

#[test]
fn what_a_class_path_names_is_instrumented_with_it_or_said() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = b"Manifest-Version: 1.0\r\nClass-Path: lib/my%20l.jar lib/none.jar lib/res.jar\r\n\r\n";
    let app = jar(&[("META-INF/MANIFEST.MF", manifest.to_vec(), false), ("A.class", class("A"), false)]);
    let dist = folder.path().join("dist");
    fs::create_dir_all(dist.join("lib")).unwrap();
    fs::write(dist.join("app.jar"), app).unwrap();
    fs::write(dist.join("lib/my l.jar"), jar(&[("L.class", class("L"), false)])).unwrap();
    fs::write(dist.join("lib/res.jar"), jar(&[("r.txt", vec![], false)])).unwrap();
    let notes = |arguments: &[&str]| report(folder.path(), arguments)["warnings"].to_string();
    let lost = notes(&["dist/app.jar", "-o", "app-et.jar"]);
    assert!(lost.contains("names 2 files missing beside the output (lib/my%20l.jar)"), "{lost}");
    let plain = notes(&["dist/app.jar", "-o", "dist/app-et.jar"]);
    assert!(plain.contains("names 1 file that this command does not rewrite (lib/my%20l.jar); "), "{plain}");
    fs::remove_file(dist.join("app-et.jar")).unwrap();
    let together = notes(&["dist", "-o", "dist-et", "--check"]);
    assert!(!together.contains("Class-Path"), "{together}");
}

#[test]
fn hashes_of_modules_go() {
    let jdks = common::jdks();
    let Some(home) = jdks.iter().find(|home| home.join("bin/javac").is_file() && home.join("bin/jar").is_file()) else {
        common::not_tested("hashes_of_modules_go", "no JDK with javac");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sources = [
        ("src/a/module-info.java", "module a { exports a; }"),
        ("src/a/a/A.java", "package a; public class A {}"),
        ("src/b/module-info.java", "module b { requires a; }"),
        ("src/b/b/B.java", "package b; class B { public static void main(String[] x) { new a.A(); } }"),
    ];
    for (path, text) in sources {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let java = |program: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(home.join("bin").join(program));
        command.current_dir(folder.path()).args(arguments).output().unwrap()
    };
    fs::create_dir(folder.path().join("mods")).unwrap();
    for step in [
        &["javac", "-d", "out", "--module-source-path", "src", "-m", "a,b"][..],
        &["jar", "--create", "--file", "mods/b.jar", "-C", "out/b", "."],
        &[
            "jar",
            "--create",
            "--file",
            "mods/a.jar",
            "--hash-modules",
            "b",
            "--module-path",
            "mods",
            "-C",
            "out/a",
            ".",
        ],
    ] {
        let done = java(step[0], &step[1..]);
        assert!(done.status.success(), "{step:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    report(folder.path(), &["mods", "-o", "mods-et", "--check"]);
    // Resolves modules and checks their hashes, and runs nothing.
    let plain = java("java", &["--dry-run", "-p", "mods", "-m", "b/b.B"]);
    assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    let done = java("java", &["--dry-run", "-p", "mods-et", "-m", "b/b.B"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn outputs_are_named_as_inputs_are_given() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("h2-2.1.214.jar"), jar(&[("A.class", class("A"), false)])).unwrap();
    fs::write(folder.path().join("b.jar"), jar(&[("B.class", class("B"), false)])).unwrap();
    std::os::unix::fs::symlink("h2-2.1.214.jar", folder.path().join("h2.jar")).unwrap();
    report(folder.path(), &["h2.jar", "b.jar", "-o", "out", "--check"]);
    assert!(folder.path().join("out/h2.jar").is_file());
    fs::create_dir(folder.path().join("into")).unwrap();
    let said = report(folder.path(), &["h2.jar", "-o", "into"]);
    assert!(folder.path().join("into/h2.jar").is_file());
    assert_eq!(said["artifacts"][0]["name"], "h2.jar");
}
