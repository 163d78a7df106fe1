//! The verifier's word: every class of the JDKs and of the workloads' jars links after it was rewritten.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use xtask::command;
use xtask::jdks::Jdk;
use xtask::linking::{Comparison, Linker};
use xtask::workloads;

fn main() -> ExitCode {
    let mut trials = lab::on_each_jdk("every_class_of_the_jdk", |lab, jdk| every_class_of_the_jdk(lab, jdk, &[]));
    // On one JDK: the class files of another hold the same instructions.
    trials.push(lab::on_jdk_unless(
        17,
        "every_class_of_the_jdk_with_witnesses",
        |_, _| lab::unless_all_jdks(),
        |lab, jdk| every_class_of_the_jdk(lab, jdk, &["--witness", "all"]),
    ));
    let no_jars =
        |lab: &Lab, _: &Jdk| jars(lab).is_empty().then(|| "the workloads' packages are not installed".to_owned());
    // What is rewritten is the same for all, and so nearly is what verifies it.
    trials.extend(lab::on_one_jdk_unless("every_class_of_the_jars", no_jars, every_class_of_the_jars));
    lab::run_in_turn(trials).exit_code()
}

fn every_class_of_the_jdk(lab: &Lab, jdk: &Jdk, options: &[&str]) -> Result<()> {
    let folder = lab.folder(jdk, &format!("link_jdk{}", options.concat()))?;
    let linker = Linker::new(&lab.layout, &lab.compiler, &folder)?;
    let comparison = linker.jdk(&jdk.java())?.compare(&linker.jdk(&lab.instrumented_with(jdk, options)?.java())?);
    check(&comparison)?;
    // JDKs that only run have fewer modules.
    let least = if jdk.javac().is_some() { 20_000 } else { 5_000 };
    ensure!(comparison.all_linked() > least, "only {} classes were linked", comparison.all_linked());
    Ok(())
}

fn check(comparison: &Comparison) -> Result<()> {
    let failures = &comparison.failures;
    ensure!(failures.is_empty(), "{} classes were refused, such as {:#?}", failures.len(), failures.first());
    Ok(())
}

/// All jars of the packages that the workloads need, those that no workload runs included.
fn jars(lab: &Lab) -> Vec<PathBuf> {
    let packages = workloads::packages(&lab.layout).unwrap_or_default();
    let listed = Command::new("dpkg").arg("--listfiles").args(packages).output().map(|output| output.stdout);
    let listed = String::from_utf8(listed.unwrap_or_default()).unwrap_or_default();
    let is_jar = |path: &PathBuf| {
        path.starts_with(workloads::SHARE_JAVA) && path.extension().is_some_and(|e| e == "jar") && !path.is_symlink()
    };
    let mut jars: Vec<PathBuf> = listed.lines().map(PathBuf::from).filter(is_jar).filter(|jar| jar.is_file()).collect();
    jars.sort();
    jars.dedup();
    jars
}

fn every_class_of_the_jars(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "link_jars")?;
    let linker = Linker::new(&lab.layout, &lab.compiler, &folder)?;
    let jars = jars(lab);
    let rewritten = folder.join("rewritten");
    command::quiet(Command::new(lab.tools.et_instrument()).args(&jars).arg("-o").arg(&rewritten))?;
    // Where they are installed, manifests refer to jars beside them; neither side may use those.
    let plain = folder.join("plain");
    fs::create_dir(&plain)?;
    for jar in &jars {
        fs::copy(jar, plain.join(jar.file_name().context("a jar has a name")?))?;
    }
    let in_folder = |folder: &Path| -> Vec<PathBuf> {
        jars.iter().filter_map(|jar| jar.file_name()).map(|name| folder.join(name)).collect()
    };
    let (plain, rewritten) = (in_folder(&plain), in_folder(&rewritten));
    let before = linker.jars(&jdk.java(), &plain, &[])?;
    let after = linker.jars(&lab.instrumented(jdk)?.java(), &rewritten, &[])?;
    let comparison = before.compare(&after);
    check(&comparison)?;
    ensure!(comparison.all_linked() > 5_000, "only {} classes were linked", comparison.all_linked());
    fs::remove_dir_all(&folder)?;
    Ok(())
}
