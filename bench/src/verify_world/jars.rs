//! The jars of Debian packages, and their instrumented copies.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::Rewriting;
use xtask::command;
use xtask::layout::{Layout, Tools};

/// A jar and its copies.
#[derive(Clone, Debug)]
pub struct RewrittenJar {
    /// Its file name, made unique.
    pub name: String,
    /// A plain copy in a folder without other jars, as for the instrumented one.
    pub plain: PathBuf,
    /// The instrumented copy.
    pub rewritten: PathBuf,
    /// Figures from the report of et-instrument.
    pub rewriting: Rewriting,
    /// Wall time of instrumenting it.
    pub seconds: f64,
    /// Why it could not be instrumented.
    pub failure: Option<String>,
}

/// The packages in `tests/debian-packages.txt`: one per line, `#` starts a comment.
pub fn packages(layout: &Layout) -> Result<Vec<String>> {
    let path = layout.repo.join("tests/debian-packages.txt");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    Ok(lines.flat_map(str::split_whitespace).map(str::to_owned).collect())
}

/// All jars of the packages, each once: on Debian, most have several names through links, and some are copied.
pub fn of_packages(packages: &[String]) -> Result<Vec<PathBuf>> {
    let listed = command::read(Command::new("dpkg").arg("--listfiles").args(packages))?;
    let is_jar = |path: &&Path| path.extension().is_some_and(|extension| extension == "jar");
    let files = listed.lines().map(Path::new).filter(is_jar).filter_map(|path| fs::canonicalize(path).ok());
    let files: BTreeSet<PathBuf> = files.filter(|path| path.is_file()).collect();
    let mut seen = HashSet::new();
    let mut jars = Vec::new();
    for path in files {
        let mut hasher = DefaultHasher::new();
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?.hash(&mut hasher);
        if seen.insert(hasher.finish()) {
            jars.push(path);
        }
    }
    Ok(jars)
}

/// Instruments each jar separately, so that one failure does not stop the others. Leaves out jars without classes.
pub fn rewrite_all(
    tools: &Tools,
    originals: &[PathBuf],
    folder: &Path,
    notes: &mut Vec<String>,
) -> Result<Vec<RewrittenJar>> {
    let (plain, rewritten) = (folder.join("plain"), folder.join("rewritten"));
    for folder in [&plain, &rewritten] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut jars = Vec::new();
    let mut without_classes = 0;
    for original in originals {
        let file_name = original.file_name().context("a jar has a name")?.to_string_lossy().into_owned();
        let count = names.entry(file_name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { file_name } else { format!("{count}-{file_name}") };
        let mut jar = RewrittenJar {
            plain: plain.join(&name),
            rewritten: rewritten.join(&name),
            name,
            rewriting: Rewriting::default(),
            seconds: 0.0,
            failure: None,
        };
        fs::copy(original, &jar.plain).with_context(|| format!("cannot copy {}", original.display()))?;
        rewrite(tools, &mut jar)?;
        if jar.failure.is_none() && jar.rewriting.classes == 0 {
            without_classes += 1;
            continue;
        }
        for skipped in &jar.rewriting.skipped {
            notes.push(format!("`{}` left as it is: {skipped}", jar.name));
        }
        jars.push(jar);
    }
    notes.push(format!("{without_classes} jars hold no classes and are left out."));
    Ok(jars)
}

fn rewrite(tools: &Tools, jar: &mut RewrittenJar) -> Result<()> {
    let start = Instant::now();
    let mut instrument = Command::new(tools.et_instrument());
    instrument.arg(&jar.plain).arg("-o").arg(&jar.rewritten).args(["--report", "json", "--quiet"]);
    match command::quiet(&mut instrument) {
        Ok(output) => {
            let report = serde_json::from_slice(&output.stdout).context("et-instrument did not print JSON")?;
            jar.rewriting = Rewriting::of_report(&report);
        }
        Err(error) => jar.failure = Some(format!("{error:#}")),
    }
    jar.seconds = start.elapsed().as_secs_f64();
    Ok(())
}
