//! Class paths and module paths.

use std::fs;
use std::path::{Path, PathBuf};

/// The entries of a class path; wildcards like `lib/*` are expanded.
pub fn class_path(list: &str) -> Vec<PathBuf> {
    let mut entries = Vec::new();
    for entry in list.split(':') {
        // An empty entry is the current folder.
        let entry = if entry.is_empty() { "." } else { entry };
        match entry.strip_suffix('*') {
            Some(folder) if folder.is_empty() || folder.ends_with('/') => {
                let jars = jars(Path::new(if folder.is_empty() { "." } else { folder }));
                // Without any, the launcher leaves the entry as it is.
                if jars.is_empty() {
                    entries.push(entry.into());
                }
                entries.extend(jars);
            }
            _ => entries.push(entry.into()),
        }
    }
    entries
}

/// In the order of the folder, as the launcher takes them: it promises none, but programs come to depend on it.
fn jars(folder: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = items.map(|item| item.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "jar" || extension == "JAR")).collect()
}

/// The modules on a module path: jars, folders of one module, and all those in folders of modules.
pub fn module_path(list: &str) -> Vec<PathBuf> {
    let entries = list.split(':').filter(|entry| !entry.is_empty()).map(PathBuf::from);
    entries.flat_map(|entry| modules(&entry).unwrap_or_else(|| vec![entry])).collect()
}

/// The modules in a folder of modules; `None` for everything else.
fn modules(folder: &Path) -> Option<Vec<PathBuf>> {
    if !folder.is_dir() || is_module(folder) {
        return None;
    }
    let mut found: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|item| item.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "jar") || is_module(path));
    found.sort();
    (!found.is_empty()).then_some(found)
}

fn is_module(folder: &Path) -> bool {
    folder.join("module-info.class").is_file()
}

/// Joins entries to a list.
pub fn joined(entries: &[PathBuf]) -> String {
    entries.iter().map(|entry| entry.to_string_lossy()).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_jars() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a.jar", "b.JAR", "c.zip"] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("sub")).unwrap();
        let root = folder.path().display().to_string();
        let mut found = class_path(&format!("x:{root}/*:{root}/sub/*::y*"));
        found[1..3].sort();
        let expected = [PathBuf::from("x"), at("a.jar"), at("b.JAR"), at("sub/*"), ".".into(), "y*".into()];
        assert_eq!(found, expected);
    }

    #[test]
    fn folders_of_modules_are_taken_apart() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("mods/exploded")).unwrap();
        fs::create_dir_all(at("mods/other")).unwrap();
        for name in ["mods/a.jar", "mods/exploded/module-info.class", "mods/notes.txt", "single.jar"] {
            fs::write(at(name), "").unwrap();
        }
        let list = joined(&[at("mods"), at("mods/exploded"), at("single.jar"), at("none"), at("mods/other")]);
        let expected = ["mods/a.jar", "mods/exploded", "mods/exploded", "single.jar", "none", "mods/other"].map(at);
        assert_eq!(module_path(&list), expected);
    }
}
