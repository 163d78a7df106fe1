//! Android's own monitor, ddmlib, against our agent.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use libtest_mimic::Trial;
use xtask::command;
use xtask::jdks::Jdk;

use crate::client::Program;

/// Where Debian has them (`libandroid-ddms-java` and what it needs); `ET_DDMLIB` names another folder.
const FOLDER: &str = "/usr/share/java";
const JARS: [&str; 4] = ["com.android.tools.ddms.ddmlib.jar", "com.android.tools.common.jar", "guava.jar", "kxml2.jar"];

pub fn trials() -> Vec<Trial> {
    lab::on_one_jdk_unless("ddmlib", |_, _| obstacle(), ddmlib)
}

fn jars() -> Vec<PathBuf> {
    let folder = std::env::var_os("ET_DDMLIB").map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    JARS.iter().map(|name| folder.join(name)).collect()
}

fn obstacle() -> Option<String> {
    let missing = jars().into_iter().find(|jar| !jar.exists())?;
    Some(format!("there is no {} (Debian: libandroid-ddms-java)", missing.display()))
}

fn ddmlib(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "monitor_ddmlib")?;
    let java = ["-Xms96m", "-Xmx96m", "-XX:+UseSerialGC"];
    // It does not support tokens.
    let mut program = Program::start_in(lab, jdk, &folder, Some("quiet=on,trust=all"), &java, "Pattern", &[])?;
    program.expect("ready")?;
    let classes = folder.join("classes");
    fs::create_dir_all(&classes)?;
    let path = std::env::join_paths(jars())?;
    let mut javac = lab.compiler.compile()?;
    let source = lab.layout.repo.join("tests/java/ddmlib/Bridge.java");
    command::quiet(javac.args(["--release", "11", "-cp"]).arg(&path).arg("-d").arg(&classes).arg(source))?;
    let path = std::env::join_paths([classes].into_iter().chain(jars()))?;
    let mut bridge = Command::new(jdk.java());
    bridge.arg("-cp").arg(path).arg("com.android.ddmlib.Bridge").arg(program.published("port")?);
    let output = bridge.arg(program.pid().to_string()).output()?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}");
    let line = |start: &str| -> Result<Vec<&str>> {
        let found = said.lines().find_map(|line| line.strip_prefix(start));
        Ok(found.with_context(|| format!("no {start:?} in {said}"))?.split(' ').collect())
    };
    let number = |word: &str| word.parse::<u64>().with_context(|| format!("{word} in {said}"));
    let hello = line("hello ")?;
    ensure!(hello[0] == program.pid().to_string() && hello[1] == "Pattern" && said.contains("OpenJDK"), "{said}");
    ensure!(said.contains("aware true dumps true"), "{said}");
    let threads = line("threads ")?;
    ensure!(number(threads[0])? >= 5, "{said}");
    ensure!(line("stack ")?.contains(&"main"), "{said}");
    let heap = line("heap 1 ")?;
    let [most, size, used, objects] = heap[..] else { anyhow::bail!("{said}") };
    let (most, size, used, objects) = (number(most)?, number(size)?, number(used)?, number(objects)?);
    ensure!(used <= size && size <= most && most <= 96 << 20 && objects > 1000, "{said}");
    // All of the heap; and of the arrays of long those that the program has made, 10,016 bytes each.
    let map = line("map ")?;
    let (all, longs) = (number(map[0])?, number(map[2])?);
    ensure!(all == 96 << 20 && (400 * 10_016..400 * 10_016 + 400_000).contains(&longs), "{said}");
    // `kill` is an EXIT with status 1.
    ensure!(program.end()?.code() == Some(1) && program.said().is_empty(), "{}", program.said());
    Ok(())
}
