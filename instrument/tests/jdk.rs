//! Images and JDKs. Needs a JDK; passes with a message if there is none.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{class, jar, jdks, report, run, runtime_dir};
use et_instrument::container::jimage::{Image, ImageWriter};
use et_instrument::input::Input;

/// Two of the JDKs: the others have images of the same form, and end-to-end tests make copies of them.
fn first_and_last() -> Vec<PathBuf> {
    let mut all = jdks();
    if all.len() > 2 {
        all.drain(1..all.len() - 1);
    }
    all
}

fn contents(image: &Image<'_>) -> BTreeMap<String, Vec<u8>> {
    let resources = image.resources().unwrap();
    // Folders of the trees list offsets, which move.
    let plain = resources.iter().filter(|resource| !resource.name.starts_with("/modules"));
    let plain = plain.filter(|resource| resource.name != "/packages");
    plain.map(|resource| (resource.name.clone(), image.content(resource).unwrap().into_owned())).collect()
}

#[test]
fn an_image_comes_back_with_every_byte_of_every_resource() {
    for home in first_and_last() {
        let input = Input::open(&home.join("lib/modules")).unwrap();
        let image = Image::read(&input).unwrap();
        let mut same = Vec::new();
        ImageWriter::new(image, image.resources().unwrap()).write(&mut same).unwrap().unwrap();
        let copy = Image::read(&same).unwrap();
        assert!(contents(&image) == contents(&copy), "{}", home.display());

        // And with a class more, and one replaced: all others still come back, and every name is found.
        let resources = image.resources().unwrap();
        let mut writer = ImageWriter::new(image, resources.clone());
        let object = resources.iter().position(|item| item.name == "/java.base/java/lang/Object.class").unwrap();
        writer.replace(object, vec![1, 2, 3]);
        writer.add_class("java.base", "java/lang", "HeapProxy", class("java/lang/HeapProxy")).unwrap();
        let mut more = Vec::new();
        writer.write(&mut more).unwrap().unwrap();
        let copy = Image::read(&more).unwrap();
        let mut expected = contents(&image);
        expected.insert("/java.base/java/lang/Object.class".into(), vec![1, 2, 3]);
        expected.insert("/java.base/java/lang/HeapProxy.class".into(), class("java/lang/HeapProxy"));
        assert!(expected == contents(&copy), "{}", home.display());
        for resource in copy.resources().unwrap() {
            assert!(copy.find(&resource.name).unwrap().is_some(), "{}", resource.name);
        }
        assert!(copy.find("/java.base/java/lang/HeapProxi.class").unwrap().is_none());

        let jimage = home.join("bin/jimage");
        if !jimage.is_file() {
            common::not_tested(&format!("jimage verify of {}", home.display()), "it has no jimage");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("modules");
        fs::write(&file, &same).unwrap();
        let verify = Command::new(&jimage).arg("verify").arg(&file).output().unwrap();
        assert!(verify.status.success());
        let said = String::from_utf8_lossy(&verify.stdout).into_owned();
        assert!(!said.to_lowercase().contains("error"), "{said}");
        fs::write(&file, &more).unwrap();
        let include = ["list", "--include", "regex:.*HeapProxy.class"];
        let listed = Command::new(&jimage).args(include).arg(&file).output().unwrap();
        assert!(String::from_utf8_lossy(&listed.stdout).contains("HeapProxy"), "{}", home.display());
    }
}

#[test]
fn damaged_images_are_errors() {
    for home in jdks().iter().take(1) {
        let input = Input::open(&home.join("lib/modules")).unwrap();
        for cut in [0, 3, 27, 28, 1000, 100_000] {
            assert!(Image::read(&input[..cut]).is_err(), "cut at {cut}");
        }
        let image = Image::read(&input[..input.len() / 2]).unwrap();
        let error = image.refuse_cut_off(&image.resources().unwrap()).unwrap_err().to_string();
        assert!(error.contains("it is cut off"), "{error}");

        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("copy/lib/elephant-tracks")).unwrap();
        fs::create_dir(folder.path().join("copy/bin")).unwrap();
        fs::write(folder.path().join("copy/lib/elephant-tracks/names.etn"), "").unwrap();
        let one_line = |arguments: &[&str]| {
            let output = run(folder.path(), arguments);
            let said = String::from_utf8(output.stdout).unwrap();
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
            said
        };
        let said = one_line(&["verify", "copy"]);
        assert!(said.starts_with("copy: lib/modules: it is missing"), "{said}");
        fs::write(folder.path().join("copy/lib/modules"), &input[..16 << 20]).unwrap();
        let said = one_line(&["verify", "copy"]);
        assert!(said.starts_with("copy/lib/modules: damaged JDK image: it is cut off"), "{said}");
        fs::write(folder.path().join("copy/lib/modules"), "no image").unwrap();
        assert!(one_line(&["verify", "copy"]).contains("CAFEDADA"));

        // Any outcome but a panic will do.
        let read = |bytes: &[u8]| {
            if let Ok(image) = Image::read(bytes)
                && let Ok(resources) = image.resources()
            {
                for resource in resources.iter().step_by(1000) {
                    let _ = image.content(resource);
                }
            }
        };
        // All of the header, and what is spread over the tables.
        let mut bent = input[..4 << 20].to_vec();
        for at in (0..28).chain((28..bent.len()).step_by(65_537)) {
            bent[at] ^= 0xff;
            read(&bent);
            bent[at] ^= 0xff;
        }
    }
}

/// One that has something to link: `jmods`, or, from JDK 24 on, the modules of the JDK itself (JEP 493).
fn jlink(home: &Path) -> Option<PathBuf> {
    let jlink = home.join("bin/jlink");
    let from_run_time = || {
        let help = Command::new(&jlink).arg("--help").output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("Linking from run-time image enabled"))
    };
    (jlink.is_file() && (home.join("jmods").is_dir() || from_run_time())).then_some(jlink)
}

#[test]
fn compressed_images_are_read() {
    for home in jdks() {
        let Some(jlink) = jlink(&home) else {
            let test = format!("compressed images of {}", home.display());
            common::not_tested(&test, "it has no jlink that has something to link");
            continue;
        };
        let plain_input = Input::open(&home.join("lib/modules")).unwrap();
        let plain = Image::read(&plain_input).unwrap();
        for compress in ["1", "2"] {
            let folder = tempfile::tempdir().unwrap();
            let made = Command::new(&jlink)
                .args(["--add-modules", "java.base", "--compress", compress, "--output"])
                .arg(folder.path().join("jre"))
                .output()
                .unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
            let input = Input::open(&folder.path().join("jre/lib/modules")).unwrap();
            let image = Image::read(&input).unwrap();
            let mut compared = 0;
            for resource in image.resources().unwrap() {
                let content = image.content(&resource).unwrap();
                // jlink generates the module graph and a few others for the selected modules.
                if resource.name.starts_with("/java.base/java/") {
                    let other = plain.find(&resource.name).unwrap().unwrap();
                    assert_eq!(content.len(), plain.content(&other).unwrap().len(), "{}", resource.name);
                    assert!(content == plain.content(&other).unwrap(), "{} --compress={compress}", resource.name);
                    compared += 1;
                }
            }
            assert!(compared > 1000);
        }
    }
}

#[test]
fn a_jdk_is_copied_and_left_as_it_was() {
    for home in first_and_last() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = runtime_dir(folder.path());
        let before = fs::metadata(home.join("lib/modules")).unwrap();
        let (home_text, runtime) = (home.to_str().unwrap(), runtime.to_str().unwrap());
        let arguments =
            ["jdk", "--java-home", home_text, "-o", "my jdk", "--runtime-dir", runtime, "--no-cds", "--jobs", "2"];
        let said = report(folder.path(), &arguments);
        assert!(said["artifacts"][0]["classes"].as_u64().unwrap() > 5000, "{said}");
        assert_eq!(said["artifacts"][0]["skipped"], serde_json::json!([]));
        assert_eq!(said["artifacts"][0]["idBase"], 1);
        let out = folder.path().join("my jdk");
        let args = fs::read_to_string(out.join("et.args")).unwrap();
        assert!(args.starts_with("\"-agentpath:") && args.contains("-XX:hashCode=0"), "{args}");
        assert!(out.join("lib/elephant-tracks/libet_runtime.so").is_file());
        let names = fs::read(out.join("lib/elephant-tracks/names.etn")).unwrap();
        assert!(et_names::NamesTable::decode(&names).unwrap().classes.len() > 5000);
        assert_eq!(fs::metadata(home.join("lib/modules")).unwrap().modified().unwrap(), before.modified().unwrap());
        assert!(!out.join("lib/server/classes.jsa").exists());

        let verdict = report(folder.path(), &["verify", "my jdk"]);
        assert!(
            verdict["classes"].as_u64().unwrap() > 5000 && verdict["findings"] == serde_json::json!([]),
            "{verdict}"
        );
        let notes = said["notes"].to_string();
        assert!(notes.contains("run with: '") && notes.contains("-Det.traceFile=app.ettrace"), "{notes}");
        assert_eq!(notes.contains("jlink"), home.join("bin/jlink").is_file(), "{notes}");

        let again = run(folder.path(), &["jdk", "--java-home", "my jdk", "-o", "x", "--runtime-dir", runtime]);
        assert_eq!(again.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&again.stderr).contains("already instrumented"));
        assert_eq!(run(folder.path(), &arguments).status.code(), Some(1), "it exists");
        assert!(leftovers(folder.path()).is_empty());
    }
}

fn leftovers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|item| item.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn a_patch_holds_the_modules_asked_for() {
    for home in jdks().iter().take(1) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = runtime_dir(folder.path());
        let (home, runtime) = (home.to_str().unwrap(), runtime.to_str().unwrap());
        let arguments = ["patch", "--java-home", home, "-o", "p", "--runtime-dir", runtime, "--module", "java.xml"];
        report(folder.path(), &arguments);
        let jar = fs::read(folder.path().join("p/java.base.jar")).unwrap();
        assert!(common::entry(&jar, "java/lang/HeapProxy.class").is_some());
        assert!(common::entry(&jar, "module-info.class").is_none());
        assert!(folder.path().join("p/java.xml.jar").is_file());
        let args = fs::read_to_string(folder.path().join("p/et.args")).unwrap();
        assert_eq!(args.lines().filter(|line| line.contains("--patch-module=java.")).count(), 2);
        let wrong = ["patch", "--java-home", home, "-o", "q", "--runtime-dir", runtime, "--module", "java.nope"];
        assert_eq!(run(folder.path(), &wrong).status.code(), Some(2));
    }
}

#[test]
fn a_jdk_8_gets_boot_jars() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime_dir(folder.path());
    let lib = folder.path().join("jdk8/jre/lib");
    fs::create_dir_all(&lib).unwrap();
    let rt = [("java/lang/Object.class", class("java/lang/Object"), true), ("r.txt", b"x".to_vec(), true)];
    fs::write(lib.join("rt.jar"), jar(&rt)).unwrap();
    fs::write(lib.join("jsse.jar"), jar(&[("s/S.class", class("s/S"), false)])).unwrap();
    for command in ["jdk", "patch"] {
        let arguments = [command, "--java-home", "jdk8", "-o", command, "--runtime-dir", runtime.to_str().unwrap()];
        let said = report(folder.path(), &arguments);
        assert_eq!(said["artifacts"][0]["classes"], 2);
        let out = folder.path().join(command);
        let rt = fs::read(out.join("rt-et.jar")).unwrap();
        assert!(common::entry(&rt, "java/lang/HeapProxy.class").is_some());
        assert!(common::entry(&rt, "r.txt").is_none(), "resources would be found twice");
        let args = fs::read_to_string(out.join("et.args")).unwrap();
        let boot = args.lines().find(|line| line.contains("-Xbootclasspath/p:")).unwrap();
        assert!(boot.contains("rt-et.jar:") && boot.contains("jsse-et.jar"), "{boot}");
        assert!(args.contains("-XX:-UseBiasedLocking"));
    }
}
