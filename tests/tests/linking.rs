//! The verifier's word: every class of the JDKs and of the workloads' jars links after it was rewritten.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program;
use xtask::command;
use xtask::jdks::Jdk;
use xtask::workloads;

fn main() -> ExitCode {
    let mut trials = lab::on_each_jdk("every_class_of_the_jdk", every_class_of_the_jdk);
    let no_jars =
        |lab: &Lab, _: &Jdk| jars(lab).is_empty().then(|| "the workloads' packages are not installed".to_owned());
    trials.extend(lab::on_each_jdk_unless("every_class_of_the_jars", no_jars, every_class_of_the_jars));
    lab::run_in_turn(trials).exit_code()
}

/// The JVM trusts its boot classes; only these options have it verify them, and an archive of classes skips it.
const VERIFY: [&str; 6] = [
    "-Xshare:off",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+BytecodeVerificationLocal",
    "-XX:+BytecodeVerificationRemote",
    "--add-modules",
    "ALL-SYSTEM",
];

fn compiled(lab: &Lab, jdk: &Jdk, test: &str) -> Result<PathBuf> {
    let folder = lab.folder(jdk, test)?;
    let javac = lab.compiler.javac().context("the compiler has no javac")?;
    let source = program::programs(lab).join("facts/LinkAll.java");
    command::quiet(
        Command::new(javac)
            .args(["-nowarn", "--release", "11", "-encoding", "UTF-8", "-d"])
            .arg(folder.join("classes"))
            .arg(source),
    )?;
    Ok(folder)
}

fn every_class_of_the_jdk(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = compiled(lab, jdk, "link_jdk")?;
    // Without the stub: the hooks are there and do nothing.
    let mut java = Command::new(lab.instrumented(jdk)?.java());
    let output = command::quiet(java.args(VERIFY).arg("-cp").arg(folder.join("classes")).arg("LinkAll"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said.trim_end().ends_with(" 0 refused"), "{said}");
    let linked: usize = said.split_whitespace().next().and_then(|word| word.parse().ok()).context("no count")?;
    ensure!(linked > 10_000, "only {linked} classes were linked");
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
    let folder = compiled(lab, jdk, "link_jars")?;
    let (plain, rewritten) = (folder.join("plain"), folder.join("rewritten"));
    fs::create_dir(&plain)?;
    let jars = jars(lab);
    for jar in &jars {
        // Copies, because the originals have neighbours that the rewritten ones lack.
        fs::copy(jar, plain.join(jar.file_name().context("a jar has a name")?))?;
    }
    command::quiet(Command::new(lab.tools.et_instrument()).args(&jars).arg("-o").arg(&rewritten))?;
    let traced_jdk = lab.instrumented(jdk)?;
    for jar in &jars {
        let name = jar.file_name().context("a jar has a name")?;
        let link = |java: PathBuf, folder: &PathBuf| {
            let mut command = Command::new(java);
            command.arg("-cp").arg(plain.with_file_name("classes")).arg("LinkAll").arg(folder.join(name));
            command::quiet(&mut command).map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let (before, after) = (link(jdk.java(), &plain)?, link(traced_jdk.java(), &rewritten)?);
        ensure!(before == after, "{}\nplain: {before}\nrewritten: {after}", jar.display());
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}
