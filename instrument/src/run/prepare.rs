//! The instrumented JDK for a run: the given one, or one from the cache.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use et_rewriter::filter::Filter;
use walkdir::WalkDir;

use super::argfile;
use super::error::RunError;
use crate::artifact::Settings;
use crate::cache::entry::{About, CacheEntry};
use crate::cache::seals::{Look, Seals};
use crate::cache::stamp::{Digest, Digester};
use crate::cache::{Cache, Kind};
use crate::files::{FileError, remove_any};
use crate::jdk::{self, JdkHome, JdkJob, Layout, RuntimeDir};

/// A JDK to run on.
#[derive(Debug)]
pub struct Prepared {
    /// The folder that contains `bin`.
    pub home: PathBuf,
    /// Options for the JVM: the words of `et.args`.
    pub options: Vec<String>,
    /// Keeps it from being removed.
    _entry: Option<CacheEntry>,
}

/// Files of a JDK that no run reads. Class data archives are made anew.
fn is_idle(path: &Path) -> bool {
    let ends = ["src.zip", "ct.sym"].iter().any(|name| path.ends_with(name));
    ends || path.starts_with("jmods") || path.starts_with("man") || path.extension().is_some_and(|end| end == "jsa")
}

/// What all preparation needs.
#[derive(Debug)]
pub struct Workplace {
    pub cache: Cache,
    /// Digest of this program and the runtime; see [`tool`].
    pub tool: Digest,
    runtime: RuntimeDir,
}

impl Workplace {
    /// Opens the cache, which is created if necessary, and finds the runtime; both in the given folders, if any.
    pub fn find(cache_dir: Option<&Path>, runtime_dir: Option<&Path>) -> Result<Self, RunError> {
        let cache = Cache::find(cache_dir)?;
        cache.create()?;
        let runtime = RuntimeDir::find(runtime_dir)?;
        Ok(Self { tool: tool(&cache, &runtime)?, cache, runtime })
    }

    /// A JDK to run on: this one if it is instrumented already, else its instrumented copy.
    pub fn jdk(&self, home: &JdkHome, settings: &Settings, say: &dyn Fn(&str)) -> Result<Prepared, RunError> {
        match at_hand(home)? {
            Some(prepared) => Ok(prepared),
            None => prepare(&self.cache, home, self.runtime.folder(), self.tool, settings, say),
        }
    }
}

/// This program and the runtime: whatever decides how classes are rewritten.
fn tool(cache: &Cache, runtime: &RuntimeDir) -> Result<Digest, RunError> {
    let program = std::env::current_exe().map_err(FileError::at("find", Path::new("this program")))?;
    let mut digests = cache.digests(runtime.folder());
    let mut digester = Digester::default();
    for file in std::iter::once(program).chain(runtime.files()?) {
        digester.add(digests.of(&file)?.to_string());
    }
    digests.save()?;
    Ok(digester.digest())
}

/// Digest of a JDK's content.
fn content(cache: &Cache, home: &JdkHome) -> Result<Digest, RunError> {
    let mut digests = cache.digests(&home.path);
    let mut digester = Digester::default();
    let files = WalkDir::new(&home.path).follow_links(true).sort_by_file_name().into_iter().flatten();
    let readers = |path: &Path| fs::metadata(path).map_or(0, |found| found.mode() & 0o044);
    let (Layout::Image(classes) | Layout::Jars(classes)) = &home.layout;
    let readers_of_all = readers(classes);
    for file in files.filter(|item| item.file_type().is_file()) {
        let name = file.path().strip_prefix(&home.path).unwrap_or(file.path());
        if is_idle(name) {
            continue;
        }
        digester.add(name.as_os_str().as_encoded_bytes());
        // Files with restricted permissions, such as passwords, do not affect classes; the digest must not depend on
        // who may read them.
        if readers(file.path()) & readers_of_all != readers_of_all {
            continue;
        }
        // Unreadable files are not copied either.
        if let Ok(digest) = digests.of(file.path()) {
            digester.add(digest.to_string());
        }
    }
    digests.save()?;
    Ok(digester.digest())
}

/// Finds the instrumented copy of a JDK in the cache, or creates it. If several runs start at the same time, one
/// creates it and the others wait.
fn prepare(
    cache: &Cache,
    home: &JdkHome,
    runtime: &Path,
    tool: Digest,
    settings: &Settings,
    say: &dyn Fn(&str),
) -> Result<Prepared, RunError> {
    let mut key = Digester::default();
    key.add(tool.to_string()).add([settings.events.bits()]).add(content(cache, home)?.to_string());
    let key = key.digest().to_string();
    let entry = cache.entry(Kind::Jdk, &format!("{}-{}", home.name(), &key[..16]), say)?;
    entry.note(&About::new(Some(&home.path), settings))?;
    let folder = entry.folder().to_owned();
    let look = Seals::look(&folder);
    if let Look::Moved(renewed) = &look
        && let Some(_update) = entry.update_now()
    {
        // Ignored, since it only saves time.
        let _ = renewed.save(&folder);
    }
    if let Look::Broken(_) = look {
        if entry.is_read_only() {
            let options = About::new(None, settings).options.join(" ");
            let with = if options.is_empty() { String::new() } else { format!(" with {options}") };
            return Err(cache.not_there(format!("the JDK {}{with}", home.path.display())).into());
        }
        let _update = entry.update(|| say("waiting for another run that prepares the same JDK"))?;
        if let Look::Broken(broken) = Seals::look(&folder) {
            cache.remove_unused();
            let is_ours = jdk::is_instrumented(&folder);
            if is_ours && broken != folder {
                say(&format!("{} is damaged or was changed: making the copy of the JDK again", broken.display()));
            } else {
                say(&format!("preparing an instrumented copy of {}, once", home.path.display()));
            }
            if !is_ours {
                // Anything else with that name is not a JDK.
                remove_any(&folder)?;
            }
            let job = JdkJob {
                home: home.path.clone(),
                output: folder.clone(),
                runtime_dir: Some(runtime.to_owned()),
                force: true,
                id_base: None,
                cds: true,
                children: true,
            };
            // The whole JDK is instrumented: without that, what happens to a program's objects is unknown.
            let report =
                job.copy(&Settings { filter: Filter::default(), progress: settings.progress.clone(), ..*settings })?;
            report.cautions().for_each(|line| say(&line));
            Seals::note(&folder)?;
        }
    }
    let options = options(&folder)?;
    // Of a JDK 8 only boot jars are made, to be used with its own launcher.
    let home = if matches!(home.layout, Layout::Jars(_)) { home.path.clone() } else { folder };
    Ok(Prepared { home, options, _entry: Some(entry) })
}

/// A JDK that is instrumented already.
fn at_hand(home: &JdkHome) -> Result<Option<Prepared>, RunError> {
    if !jdk::is_instrumented(&home.path) {
        return Ok(None);
    }
    let options = options(&home.path)?;
    Ok(Some(Prepared { home: home.path.clone(), options, _entry: None }))
}

fn options(home: &Path) -> Result<Vec<String>, RunError> {
    let text = fs::read_to_string(home.join(jdk::ARGS_FILE));
    let text = text.map_err(|_| RunError::NoArguments { home: home.to_owned() })?;
    Ok(argfile::words(&text))
}
