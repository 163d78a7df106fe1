//! Where mistakes are made: a folder with a good jar, a good class, a good trace.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use xtask::command;
use xtask::jdks::Jdk;

use crate::row::Row;

const PROGRAM: &str = "
public class Good {
    Object held;
    public static void main(String[] arguments) throws Exception {
        new Good().held = arguments;
        if (arguments.length > 0) Thread.sleep(Long.parseLong(arguments[0]));
    }
}";

/// The initial content of each row's folder.
pub struct Place {
    folder: PathBuf,
    tools: PathBuf,
    jdk: PathBuf,
    /// The instrumented copy, for tables that run it.
    traced: Option<PathBuf>,
}

impl Place {
    /// The folder of each row initially contains `Good.java`, `Good.class`, `good.jar`, `done.jar` (instrumented) and,
    /// if requested, `good.ettrace`.
    pub fn set_up(lab: &Lab, jdk: &Jdk, table: &str, traced: bool) -> Result<Self> {
        let folder = fs::canonicalize(lab.folder(jdk, &format!("errors-{table}"))?)?;
        let tools = lab.tools.et_instrument().parent().context("a tool lies in a folder")?.to_owned();
        let traced = if traced { Some(lab.instrumented(jdk)?.home) } else { None };
        let place = Self { folder, tools, jdk: jdk.home.clone(), traced };
        let good = place.good();
        fs::create_dir(&good)?;
        fs::write(good.join("Good.java"), PROGRAM)?;
        command::quiet(lab.compiler.compile()?.current_dir(&good).args(["--release", "11", "Good.java"]))?;
        let jar = lab.compiler.home.join("bin/jar");
        let packed = ["--create", "--file", "good.jar", "--main-class=Good", "Good.class"];
        command::quiet(Command::new(jar).current_dir(&good).args(packed))?;
        for line in ["et-instrument -q good.jar -o done.jar", "$JAVA -Det.traceFile=good.ettrace -jar done.jar"] {
            if line.starts_with("$JAVA") && place.traced.is_none() {
                continue;
            }
            let output = place.shell(&good, line)?;
            ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(place)
    }

    fn good(&self) -> PathBuf {
        self.folder.join("good")
    }

    /// Runs a row in a new folder.
    pub fn check(&self, row: &Row) -> Result<()> {
        let here = self.folder.join("here");
        let _ = fs::remove_dir_all(&here);
        command::quiet(Command::new("cp").arg("-a").arg(self.good()).arg(&here))?;
        for line in &row.given {
            let output = self.shell(&here, line)?;
            ensure!(output.status.success(), "given: {line}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let before = listing(&here)?;
        let output = self.shell(&here, &row.run)?;
        let after = listing(&here)?;

        let said = self.shown(&String::from_utf8_lossy(&output.stderr), &here);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let code = output.status.code().with_context(|| format!("a signal ended it: {said}"))?;
        let as_it_is = || format!("run: {}\ncode: {code}\n{}", row.run, lines.join("\n"));
        ensure!(code == row.code, "code: {} was expected\n{}", row.code, as_it_is());
        ensure!(row.is_said(&lines), "{} was expected\n{}", row.says.join("\n"), as_it_is());
        // A life table is complete before the command goes on, and stays for the next one.
        let is_kept =
            |path: &Path| path.components().any(|part| part.as_os_str().to_string_lossy().ends_with(".lives"));
        let after: Vec<_> =
            after.into_iter().filter(|file| before.contains(file) || !is_kept(file.0.as_ref())).collect();
        // A successful command has written something.
        let changed: Vec<_> = after.iter().filter(|file| !before.contains(file)).collect();
        ensure!(code == 0 || before == after, "left behind, changed or gone: {changed:?}\n{}", as_it_is());
        Ok(())
    }

    /// Runs a shell command, with nothing of the user's.
    fn shell(&self, folder: &Path, line: &str) -> Result<Output> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder).env_clear().stdin(Stdio::null());
        let path = env::join_paths([self.tools.clone(), "/usr/bin".into(), "/bin".into()])?;
        command.env("PATH", path).env("TOOLS", &self.tools).env("JDK", &self.jdk);
        command.env("XDG_CACHE_HOME", self.folder.join("cache"));
        if let Some(traced) = &self.traced {
            let java = format!("{0}/bin/java @{0}/et.args", traced.display());
            command.env("JDK_ET", traced).env("JAVA", java);
        }
        command.output().with_context(|| format!("cannot run {line}"))
    }

    /// Without the places that differ from one machine to the next.
    fn shown(&self, text: &str, here: &Path) -> String {
        let mut text = text.to_owned();
        for (path, name) in [(Some(here), "HERE"), (self.traced.as_deref(), "JDK_ET"), (Some(&*self.jdk), "JDK")] {
            if let Some(path) = path {
                text = text.replace(&path.display().to_string(), name);
            }
        }
        text
    }

    pub fn clean(&self) -> Result<()> {
        if !lab::keep_traces() {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(())
    }
}

/// All files below a folder, with hashes of their content.
fn listing(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let about = path.symlink_metadata()?;
            if about.is_dir() {
                folders.push(path.clone());
            }
            let mut hasher = DefaultHasher::new();
            if about.is_file() {
                fs::read(&path)?.hash(&mut hasher);
            }
            found.push((path, hasher.finish()));
        }
    }
    found.sort();
    Ok(found)
}
