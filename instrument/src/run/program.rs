//! Rewritten copies in place of what a command line of `java` names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::RunError;
use super::java_line::{JavaLine, JavaOption, Main, Role};
use super::left_out::LeftOut;
use super::{argfile, paths};
use crate::artifact::Settings;
use crate::cache::entry::{About, CacheEntry};
use crate::cache::program::{Done, Programs};
use crate::cache::stamp::{Digest, Digester};
use crate::cache::{Cache, CacheError, Kind};

/// A command line of `java` and what comes before it.
#[derive(Clone, Debug)]
pub struct Line {
    pub java: JavaLine,
    /// Options of `JAVA_TOOL_OPTIONS` and `JDK_JAVA_OPTIONS`: the JVM reads them from there.
    pub inherited: Vec<JavaOption>,
    /// Value of `CLASSPATH`.
    variable: Option<String>,
}

impl Line {
    /// Expands argument files and takes the line apart.
    pub fn of(arguments: &[OsString], inherited: Vec<JavaOption>) -> Result<Self, RunError> {
        let java = JavaLine::parse(argfile::expand(arguments.to_vec())?);
        Ok(Self { java, inherited, variable: std::env::var("CLASSPATH").ok() })
    }

    /// The same without what is left out.
    pub fn without(mut self, left_out: &mut LeftOut<'_>) -> Result<Self, RunError> {
        left_out.of_java(&mut self.java.options)?;
        Ok(self)
    }

    /// The value that counts of an option that may be given several times.
    fn last(&self, role: Role) -> Option<String> {
        let all = self.inherited.iter().chain(&self.java.options);
        all.filter(|option| option.role() == role).filter_map(|option| option.value.clone()).next_back()
    }

    /// The class path of a program that is not a jar.
    fn class_path(&self) -> Option<String> {
        let default = match self.java.main {
            Main::Class(_) => Some("."),
            // Modules have no class path.
            Main::Module(_) | Main::None | Main::Jar(_) => None,
        };
        let variable = self.variable.as_deref().filter(|list| !list.is_empty());
        self.last(Role::ClassPath).or_else(|| variable.or(default).map(str::to_owned))
    }
}

/// Puts copies in place of all that is named; makes those that are missing or old. Where they cannot be made, all stays as it is.
pub fn rewrite(
    line: &mut Line,
    cache: &Cache,
    tool: Digest,
    settings: &Settings,
    say: &dyn Fn(&str),
) -> Result<(CacheEntry, Done), CacheError> {
    let entry = entry(cache, tool, settings, say)?;
    let mut work = Work { programs: Programs::new(&entry, cache.root(), settings, say), names: Vec::new() };
    let mut rewritten = line.clone();
    work.line(&mut rewritten)?;
    let done = work.programs.finish()?;
    if done.missing.is_empty() {
        *line = rewritten;
    }
    Ok((entry, done))
}

/// The entry of the cache for what is rewritten with this tool and these settings.
pub fn entry(cache: &Cache, tool: Digest, settings: &Settings, say: &dyn Fn(&str)) -> Result<CacheEntry, CacheError> {
    let mut key = Digester::default();
    key.add(tool.to_string()).add([settings.events.bits()]).add(settings.filter.describe());
    let entry = cache.entry(Kind::Program, &key.digest().to_string()[..16], say)?;
    entry.note(&About::new(None, settings))?;
    Ok(entry)
}

struct Work<'a> {
    programs: Programs<'a>,
    /// Copies whose names tables the runtime does not find by itself.
    names: Vec<PathBuf>,
}

impl Work<'_> {
    fn line(&mut self, line: &mut Line) -> Result<(), CacheError> {
        if let Main::Jar(jar) = &line.java.main {
            if let Some(copy) = self.programs.place(&real(Path::new(jar)))? {
                line.java.main = Main::Jar(copy.into());
            }
        } else if let Some(list) = line.class_path() {
            let entries: Vec<PathBuf> = paths::class_path(&list).iter().map(|entry| real(entry)).collect();
            if let Some(copies) = self.copies(&entries)? {
                set(&mut line.java.options, Role::ClassPath, "-cp", paths::joined(&copies));
            }
        }
        for (role, name) in [(Role::ModulePath, "-p"), (Role::UpgradeModulePath, "--upgrade-module-path")] {
            if let Some(list) = line.last(role)
                && let Some(copies) = self.copies(&paths::module_path(&list))?
            {
                set(&mut line.java.options, role, name, paths::joined(&copies));
            }
        }
        for option in &mut line.java.options {
            self.option(option)?;
        }
        if !self.names.is_empty() {
            let given = line.java.options.iter().rev().find(|option| option.name == "-Det.names=");
            let given = given.and_then(|option| option.value.as_ref()).map(PathBuf::from);
            let names = paths::joined(&given.into_iter().chain(self.names.drain(..)).collect::<Vec<_>>());
            line.java.options.push(JavaOption::joined("-Det.names=", names));
        }
        Ok(())
    }

    /// Replaces entries by copies where these exist; `None` if there are none at all.
    fn copies(&mut self, entries: &[PathBuf]) -> Result<Option<Vec<PathBuf>>, CacheError> {
        let copies: Vec<Option<PathBuf>> =
            entries.iter().map(|entry| self.programs.place(entry)).collect::<Result<_, CacheError>>()?;
        if copies.iter().all(Option::is_none) {
            return Ok(None);
        }
        Ok(Some(copies.into_iter().zip(entries).map(|(copy, entry)| copy.unwrap_or_else(|| entry.clone())).collect()))
    }

    /// Handles options that may be repeated: each is processed separately.
    fn option(&mut self, option: &mut JavaOption) -> Result<(), CacheError> {
        let (role, Some(value)) = (option.role(), &option.value) else { return Ok(()) };
        let (before, list, after) = match role {
            Role::BootClassPath => ("", value.as_str(), ""),
            Role::Agent => match value.find('=') {
                Some(at) => ("", &value[..at], &value[at..]),
                None => ("", value.as_str(), ""),
            },
            // Classes of the JDK are hooked with it, and others in their place would need its ids.
            Role::PatchModule => match value.split_once('=') {
                Some((module, list)) if !module.starts_with("java.") && !module.starts_with("jdk.") => {
                    (&value[..=module.len()], list, "")
                }
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        let entries: Vec<PathBuf> = list.split(':').map(|entry| real(Path::new(entry))).collect();
        if let Some(copies) = self.copies(&entries)? {
            option.value = Some(format!("{before}{}{after}", paths::joined(&copies)));
            self.names.extend(copies);
        }
        Ok(())
    }
}

/// On class paths the JVM resolves links, and what a manifest refers to is beside the actual file. On module paths it
/// does not: the name of a link may be the name of a module.
pub fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Gives an option another value where it is given last, or adds it.
fn set(options: &mut Vec<JavaOption>, role: Role, name: &str, value: String) {
    match options.iter_mut().rev().find(|option| option.role() == role) {
        Some(option) => option.value = Some(value),
        None => options.push(JavaOption::apart(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, inherited: &str, variable: Option<&str>) -> Line {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let java = JavaLine::parse(words(text).into_iter().map(OsString::from).collect());
        let inherited = JavaLine::options_of(words(inherited));
        Line { java, inherited, variable: variable.map(str::to_owned) }
    }

    #[test]
    fn the_class_path_that_counts_is_found() {
        let of = |text, inherited, variable| line(text, inherited, variable).class_path();
        assert_eq!(of("-cp a -classpath b Main", "-cp c", Some("d")).as_deref(), Some("b"));
        assert_eq!(of("Main", "-cp c", Some("d")).as_deref(), Some("c"));
        assert_eq!(of("Main", "", Some("d")).as_deref(), Some("d"));
        assert_eq!(of("Main", "", Some("")).as_deref(), Some("."));
        assert_eq!(of("-m app", "", None), None);
        assert_eq!(of("-version", "", None), None);
    }

    #[test]
    fn an_option_is_set_where_it_counts() {
        let mut line = line("-cp a --class-path=b Main", "", None);
        set(&mut line.java.options, Role::ClassPath, "-cp", "c".into());
        set(&mut line.java.options, Role::ModulePath, "-p", "m".into());
        assert_eq!(line.java.arguments(), ["-cp", "a", "--class-path=c", "-p", "m", "Main"]);
    }
}
