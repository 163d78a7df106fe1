//! Different kinds of programs.

use std::fs;

use anyhow::{Result, ensure};
use xtask::command;
use xtask::jdks::Jdk;

use crate::Case;
use crate::bench::{Bench, feed, text};
use crate::java::{APP, BOOTED, LAUNCHER, MAIN, ONE, READER, TWO};

pub const CASES: &[(&str, Case)] = &[
    ("plain_class", plain_class),
    ("runnable_jar_with_class_path", runnable_jar_with_class_path),
    ("fat_jar", fat_jar),
    ("modular_app", modular_app),
    ("linked_image", linked_image),
    ("image_without_java", image_without_java),
    ("reads_and_exits_with_7", reads_and_exits_with_7),
    ("javac", javac),
    ("source_file", source_file),
    ("in_place", in_place),
];

fn plain_class(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    bench.write("classes/settings.txt", "x")?;
    let arguments = ["-cp", "classes", "Main", "a b", "", "@c"];
    let ran = bench.both(&arguments)?;
    ran.has(&["Main$Leaf"], 2)?;
    ensure!(ran.rewrote() == Some("2 class files"), "{}", ran.stderr);
    // Nothing to instrument.
    let again = bench.both(&arguments)?;
    again.has(&["Main$Leaf"], 2)?;
    ensure!(again.stderr.lines().count() == 2, "{}", again.stderr);
    let program = again.summary["program"]["command"].as_str().unwrap_or_default();
    ensure!(program.ends_with("/java -cp classes Main 'a b' '' @c"), "not as it was typed: {program}");
    // Only what changed, and what is gone is gone.
    bench.compile(&[("Main.java", &MAIN.replace("Leaf", "Twig"))], &[], "classes")?;
    fs::remove_file(bench.at("classes/Main$Leaf.class"))?;
    bench.write("classes/more.txt", "x")?;
    let changed = bench.both(&arguments)?;
    changed.has(&["Main$Twig"], 2)?;
    ensure!(changed.rewrote() == Some("2 class files"), "{}", changed.stderr);
    bench.compile(&[("Other.java", "class Other {}")], &[], "classes")?;
    let one = bench.both(&arguments)?;
    ensure!(one.rewrote() == Some("1 class file"), "{}", one.stderr);
    // The default class path is the current folder.
    fs::copy(bench.at("classes/Other.class"), bench.at("Other.class"))?;
    let missing = bench.plain("java", &["Main"]).output()?;
    let traced = bench.traced(&["-q"], "java", &["Main"]).output()?;
    ensure!((missing.status.code(), traced.status.code()) == (Some(1), Some(1)));
    ensure!(text(&missing.stderr) == text(&traced.stderr), "{}", text(&traced.stderr));
    Ok(())
}

fn runnable_jar_with_class_path(bench: &Bench) -> Result<()> {
    bench.compile(&[("One.java", ONE)], &[], "one")?;
    bench.compile(&[("Two.java", TWO)], &[], "two")?;
    bench.compile(&[("App.java", APP)], &["-cp", "one:two"], "app")?;
    bench.write("app/settings.txt", "of the jar\n")?;
    bench.write("dist/conf/settings.txt", "of the folder\n")?;
    bench.write("dist/lib/conf/settings.txt", "not on the class path\n")?;
    // One names the other; names are relative to each, and there is a circle.
    let manifest = |name: &str, class_path: &str| bench.write(name, &format!("Class-Path: {class_path}\n"));
    manifest("one.mf", "../more/two%20b.jar missing.jar ../app.jar")?;
    manifest("app.mf", "lib/one.jar conf/ lib/conf")?;
    bench.jar("dist/lib/one.jar", &["--manifest=one.mf"], "one")?;
    bench.jar("dist/more/two b.jar", &[], "two")?;
    bench.jar("dist/app.jar", &["--manifest=app.mf", "--main-class=App"], "app")?;
    for jar in ["dist/app.jar", "link.jar"] {
        let ran = bench.both(&["-Dx=y", "-jar", jar, "-cp", "none"])?;
        ran.has(&["App$Own", "one.One", "two.Two"], 4)?;
        if jar == "dist/app.jar" {
            ensure!(ran.rewrote() == Some("3 jars"), "{}", ran.stderr);
            std::os::unix::fs::symlink("dist/app.jar", bench.at("link.jar"))?;
        }
    }
    // A library changes: it alone is made again.
    bench.compile(&[("Two.java", &TWO.replace("\"two\"", "\"three\""))], &[], "two")?;
    bench.jar("dist/more/two b.jar", &[], "two")?;
    let changed = bench.both(&["-jar", "dist/app.jar"])?;
    ensure!(text(&changed.output.stdout).contains("three") && changed.rewrote() == Some("1 jar"), "{}", changed.stderr);
    Ok(())
}

fn fat_jar(bench: &Bench) -> Result<()> {
    for (name, source) in [("One", ONE), ("Two", TWO)] {
        let folder = name.to_lowercase();
        bench.compile(&[(&format!("{name}.java"), source)], &[], &folder)?;
        bench.jar(&format!("fat/BOOT-INF/lib/{folder}.jar"), &[], &folder)?;
    }
    bench.compile(&[("Booted.java", BOOTED)], &["-cp", "one:two"], "fat/BOOT-INF/classes")?;
    bench.compile(&[("Launcher.java", LAUNCHER)], &[], "fat")?;
    bench.write("boot.mf", "Main-Class: boot.Launcher\nStart-Class: Booted\n")?;
    bench.jar("app.jar", &["--manifest=boot.mf", "--no-compress"], "fat")?;
    bench.both(&["-jar", "app.jar", "x"])?.has(&["boot.Launcher", "one.One", "two.Two"], 4)
}

fn modular_app(bench: &Bench) -> Result<()> {
    let library = [("module-info.java", "module lib { exports one; }"), ("One.java", ONE)];
    bench.compile(&library, &[], "mods/lib")?;
    let app = "package app; public class Main { public static void main(String[] a) {
        System.out.println(new one.One() + \" \" + Main.class.getModule() + a.length); } }";
    let sources = [("module-info.java", "module app { requires lib; }"), ("Main.java", app)];
    bench.compile(&sources, &["-p", "mods"], "app")?;
    bench.jar("mods/app.jar", &["--main-class=app.Main"], "app")?;
    bench.both(&["--module-path", "mods", "--module", "app/app.Main", "x"])?.has(&["one.One"], 2)?;
    bench.both(&["-p", "mods/app.jar:mods/lib", "--add-modules=lib", "-m", "app", "x", "y"])?.has(&["one.One"], 2)
}

fn reads_and_exits_with_7(bench: &Bench) -> Result<()> {
    bench.compile(&[("Reader.java", READER)], &[], "classes")?;
    let ran = bench.both_with("one\nthree\n", &[], &["-cp", "classes", "Reader"])?;
    ensure!(ran.output.status.code() == Some(7) && text(&ran.output.stdout) == "3\n5\n");
    ensure!(ran.stderr.contains("on stderr\n"), "{}", ran.stderr);
    ran.has(&["Reader$Line"], 2)
}

fn javac(bench: &Bench) -> Result<()> {
    bench.write("Main.java", MAIN)?;
    let arguments = |to: &'static str| ["-d", to, "-J-Xmx200m", "--release", "11", "Main.java"];
    let plain = bench.plain("javac", &arguments("plain")).output()?;
    let ran = bench.ran(feed(&mut bench.traced(&[], "javac", &arguments("traced")), "")?)?;
    ensure!(plain.status.success() && ran.output.status.success(), "{}", ran.stderr);
    for class in ["Main.class", "Main$Leaf.class"] {
        ensure!(fs::read(bench.at("plain").join(class))? == fs::read(bench.at("traced").join(class))?, "{class}");
    }
    ran.made(&["com.sun.tools.javac.file.JavacFileManager"])?;
    // The compiler's messages and its exit code are its own.
    bench.write("Wrong.java", "class Wrong { int x = ; }")?;
    let wrong = bench.traced(&["-q"], "javac", &["Wrong.java"]).output()?;
    ensure!(wrong.status.code() == Some(1) && text(&wrong.stderr).starts_with("Wrong.java:1: error"));
    Ok(())
}

fn source_file(bench: &Bench) -> Result<()> {
    bench.write("Main.java", MAIN)?;
    bench.both(&["Main.java", "x"])?.made(&["Main$Leaf"])
}

fn in_place(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    let command = ["-cp", "classes", "Main"];
    bench.ran(bench.traced(&["--in-place"], "java", &command).output()?)?.has(&["Main$Leaf"], 0)
}

/// Why a case cannot be tried, if it cannot.
pub fn obstacle(name: &str, jdk: &Jdk) -> Option<String> {
    let cannot = ["linked_image", "image_without_java"].contains(&name) && jdk.jlink().is_none();
    cannot.then(|| format!("{} has no jlink that has something to link", jdk.home.display()))
}

/// An image that jlink made of the program and what it needs of the JDK.
fn linked_image(bench: &Bench) -> Result<()> {
    let main = format!("package app;{MAIN}");
    bench.compile(&[("module-info.java", "module app {}"), ("app/Main.java", &main)], &[], "module")?;
    let image = bench.at("image");
    let _ = fs::remove_dir_all(&image);
    let mut link = bench.plain("jlink", &["--module-path", "module", "--add-modules", "app", "--output"]);
    command::quiet(link.arg(&image))?;
    let on_image = Bench { jdk: Jdk { home: image, ..bench.jdk.clone() }, ..bench.clone() };
    on_image.both(&["-m", "app/app.Main", "x"])?.made(&["app.Main$Leaf"])
}

/// Without `java`, another launcher starts the JVM that makes the archive; without any, there is none, with a message.
fn image_without_java(bench: &Bench) -> Result<()> {
    let image = bench.at("image");
    let mut link = bench.plain("jlink", &["--add-modules", "java.base", "--add-options"]);
    command::quiet(link.arg("-XX:SharedArchiveFile=none.jsa -Dx=y").arg("--output").arg(&image))?;
    fs::remove_file(image.join("bin/java"))?;
    let made = |to: &str| -> Result<String> {
        let mut command = bench.tool();
        command.args(["jdk", "--report", "json", "-o", to, "--java-home"]).arg(&image);
        Ok(text(&command::quiet(&mut command)?.stdout))
    };
    let said = made("copy")?;
    ensure!(bench.at("copy/lib/server/classes.jsa").is_file(), "{said}");
    ensure!(said.contains("-XX:SharedArchiveFile=none.jsa removed from the image's own options"), "{said}");
    ensure!(said.contains("it has no bin/java: put it"), "{said}");
    // With the launcher back, the program runs on it, with the image's other option.
    bench.compile(
        &[(
            "Main.java",
            "public class Main { public static void main(String[] a) {
        System.out.println(System.getProperty(\"x\")); } }",
        )],
        &[],
        "classes",
    )?;
    fs::copy(bench.launcher("java"), bench.at("copy/bin/java"))?;
    let on_copy = Bench { jdk: Jdk { home: bench.at("copy"), ..bench.jdk.clone() }, ..bench.clone() };
    let ran = on_copy.ran(on_copy.traced(&[], "java", &["-Xshare:auto", "-cp", "classes", "Main"]).output()?)?;
    ensure!(text(&ran.output.stdout) == "y\n", "{}{}", text(&ran.output.stdout), ran.stderr);
    fs::remove_file(image.join("bin/keytool"))?;
    let said = made("bare")?;
    ensure!(said.contains("no CDS archive: the image has no launcher to dump it with"), "{said}");
    ensure!(!bench.at("bare/lib/server/classes.jsa").exists(), "{said}");
    Ok(())
}
