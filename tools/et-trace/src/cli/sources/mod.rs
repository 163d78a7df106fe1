//! Lines of the program's source, from folders and archives that the user names.

mod lines;
mod roots;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use et_analysis::Excerpt;
use et_analysis::report::Report;
use et_reader::source::Source;
use et_report::Excerpts;
use rustc_hash::FxHashMap;
use thiserror::Error;

pub(super) use lines::{SiteLine, site_lines, table};

use roots::{ENDINGS, Root};

/// The option for both commands that show lines.
#[derive(Debug, Default, Args)]
pub struct SourceArgs {
    /// Folder or sources jar of the program: lines of source are shown at sites, with those around them. May be repeated; the first that has a file counts
    #[arg(long = "source", value_name = "PATH")]
    pub sources: Vec<PathBuf>,
}

impl SourceArgs {
    /// Opens the folders and archives.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn open(&self) -> Result<Sources, SourcesError> {
        Sources::open(&self.sources)
    }
}

/// A folder or archive of sources cannot be used.
#[derive(Debug, Error)]
#[error("cannot read the sources in {path}: {source} (name a folder or a sources jar)", path = path.display())]
pub struct SourcesError {
    path: PathBuf,
    source: io::Error,
}

/// Longer lines are cut.
const MOST_CHARS: usize = 240;
/// Lines before and after that of the site.
const AROUND: usize = 5;
/// Files of the same name that are looked into, in each root, for one that is of the package.
const MOST_NAMESAKES: usize = 200;
/// Files whose lines are kept; then all are forgotten.
const MOST_KEPT: usize = 64;

type Lines = Arc<[String]>;

/// Where sources are looked for, in this order.
pub struct Sources {
    roots: Vec<Root>,
    /// Files that were looked for: their paths, as found, and their lines.
    kept: FxHashMap<String, Option<(String, Lines)>>,
}

/// Source files of classes, as [`et_reader::naming::Naming::source_files`] tells them.
pub type SourceFiles = FxHashMap<String, String>;

impl Sources {
    fn open(paths: &[PathBuf]) -> Result<Self, SourcesError> {
        let open = |path: &PathBuf| Root::open(path).map_err(|source| SourcesError { path: path.clone(), source });
        Ok(Self { roots: paths.iter().map(open).collect::<Result<_, _>>()?, kept: FxHashMap::default() })
    }

    /// Whether there is any place to look in.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The lines of all sites that a report names.
    pub fn of_report(&mut self, report: &Report, source: &Source) -> Excerpts {
        match self.is_empty() {
            true => Excerpts::default(),
            false => lines::excerpts(report, &source.naming().source_files(), self),
        }
    }

    /// The line of a site, or of a frame with a line, and those around it; `files` are the source files of the trace's classes.
    pub fn excerpt(&mut self, files: &SourceFiles, site: &str) -> Option<Excerpt> {
        let (class, number) = place(site)?;
        let wanted = match files.get(class) {
            Some(file) => vec![file.clone()],
            None => guesses(class)?,
        };
        let (file, lines) = wanted.iter().find_map(|path| self.file(path))?;
        let at = (number as usize).checked_sub(1).filter(|&at| at < lines.len())?;
        let (first, end) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(lines.len()));
        let found = Excerpt { file, line: number, first: first as u32 + 1, lines: lines[first..end].to_vec() };
        // A blank line allocates nothing: the source is another than that of the classes.
        (!found.text().is_empty()).then_some(found)
    }

    /// A file by its package and name: `shop/Cart.java`.
    fn file(&mut self, wanted: &str) -> Option<(String, Lines)> {
        if let Some(known) = self.kept.get(wanted) {
            return known.clone();
        }
        let found = self.find(wanted);
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        self.kept.insert(wanted.to_owned(), found.clone());
        found
    }

    /// The file whose path ends with the package; otherwise one that says that it is of the package: Kotlin and Scala leave out of
    /// paths what all packages begin with, or all of it.
    fn find(&mut self, wanted: &str) -> Option<(String, Lines)> {
        let (package, name) = wanted.rsplit_once('/').unwrap_or(("", wanted));
        let (below, package) = (format!("/{wanted}"), package.replace('/', "."));
        for root in &mut self.roots {
            let named = root.named(name).iter().take(MOST_NAMESAKES);
            let (mut likely, others): (Vec<_>, Vec<_>) =
                named.cloned().partition(|found| found.path == wanted || found.path.ends_with(&below));
            likely.extend(others);
            for found in likely {
                let Some(text) = root.read(&found) else { continue };
                if found.path == wanted && !package.is_empty() || declared(&text) == package {
                    return Some((found.path, text.lines().map(shown).collect()));
                }
            }
        }
        None
    }
}

/// A line as it is shown.
fn shown(line: &str) -> String {
    let line = line.trim_end().replace('\t', "    ");
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_CHARS).collect()
}

/// The package that a source file says it is of; Scala may say so in several lines, which add up.
fn declared(text: &str) -> String {
    let mut package: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("package ") {
            let name = rest.split([';', '{', '/']).next().unwrap_or_default().trim();
            // `package object shop` is one with things in it, not a clause.
            if !name.starts_with("object ") {
                package.push(name.split('.').map(|part| part.trim().trim_matches('`')).collect::<Vec<_>>().join("."));
            }
        } else if ["import ", "class ", "public ", "object ", "def ", "fun "].iter().any(|word| line.starts_with(word))
        {
            break;
        }
    }
    package.join(".")
}

/// The class and the line of a site: `shop.Cart$Item`, 17 of `shop.Cart$Item.<init>:17`.
fn place(site: &str) -> Option<(&str, u32)> {
    let (method, line) = site.split(' ').next()?.rsplit_once(':')?;
    let (class, _) = method.rsplit_once('.')?;
    Some((class, line.parse().ok()?))
}

/// Where the source of a class may be if its class file does not say: in a file named after the outermost class; Kotlin's functions
/// outside classes are in one that is named after the file.
fn guesses(class: &str) -> Option<Vec<String>> {
    let mut parts: Vec<&str> = class.split('.').collect();
    let name = parts.pop()?;
    // Names may begin with a dollar sign.
    let end = name.char_indices().skip(1).find(|&(_, c)| c == '$').map_or(name.len(), |(at, _)| at);
    parts.push(&name[..end]);
    // Names are the program's: none may lead elsewhere.
    let is_plain = |part: &&str| !part.is_empty() && !part.contains(['/', '\\', '\0']);
    parts.iter().all(is_plain).then_some(())?;
    let stem = parts.join("/");
    let stems = [Some(&*stem), stem.strip_suffix("Kt")];
    Some(stems.into_iter().flatten().flat_map(|stem| ENDINGS.map(|ending| format!("{stem}{ending}"))).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn a_site_has_a_class_and_a_line() {
        assert_eq!(place("shop.Cart$Item.<init>:17"), Some(("shop.Cart$Item", 17)));
        assert_eq!(place("Main.main:3"), Some(("Main", 3)));
        assert_eq!(place("java.util.HashMap.newNode:1901 for shop.Cart.add"), Some(("java.util.HashMap", 1901)));
        for none in ["(by loading a class)", "shop.Cart.add", "shop.Cart.add:x", ""] {
            assert_eq!(place(none), None, "{none}");
        }
    }

    #[test]
    fn unknown_files_are_named_after_the_outermost_class() {
        let first = |class| guesses(class).map(|all| all[0].clone());
        assert_eq!(first("shop.Cart$Item").unwrap(), "shop/Cart.java");
        assert_eq!(first("$Proxy").unwrap(), "$Proxy.java");
        assert!(guesses("shop.MapsKt").unwrap().contains(&"shop/Maps.kt".to_owned()));
        assert_eq!(guesses("...x/../../etc/passwd"), None);
        assert_eq!(guesses("a/b.C"), None);
    }

    #[test]
    fn packages_are_read_as_each_language_writes_them() {
        for (text, package) in [
            ("// (c)\npackage shop.cart; // x\n\nimport java.util.List;\n", "shop.cart"),
            ("@file:JvmName(\"Carts\")\n\npackage shop.`in`.cart\n\nfun add() = 1\n", "shop.in.cart"),
            ("package shop\npackage cart\n\nclass Item\n", "shop.cart"),
            ("package shop.cart {\n", "shop.cart"),
            ("package shop\n\npackage object cart {\n", "shop"),
            ("public class Main {\n    String package = \"x\";\n", ""),
        ] {
            assert_eq!(declared(text), package, "{text}");
        }
    }

    fn write(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn line(sources: &mut Sources, files: &SourceFiles, site: &str) -> Option<String> {
        sources.excerpt(files, site).map(|found| format!("{}: {}", found.file, found.text()))
    }

    #[test]
    fn lines_come_from_folders_and_archives() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "shop/Cart.java", "package shop;\n\n\tnew Item(); // \u{7}\n");
        let jar = folder.path().join("src.zip");
        let mut zip = ZipWriter::new(File::create(&jar).unwrap());
        for (name, text) in
            [("java.base/java/util/Maps.kt", "package java.util\nsecond\n"), ("shop/Cart.java", "first\nsecond\n")]
        {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        let mut sources = Sources::open(&[folder.path().to_owned(), jar]).unwrap();
        let none = SourceFiles::default();
        assert_eq!(line(&mut sources, &none, "shop.Cart$1.run:3").unwrap(), "shop/Cart.java: new Item(); //");
        assert_eq!(line(&mut sources, &none, "java.util.MapsKt.of:2").unwrap(), "java.base/java/util/Maps.kt: second");
        assert_eq!(line(&mut sources, &none, "shop.Cart.run:2"), None, "an empty line");
        assert_eq!(line(&mut sources, &none, "shop.Cart.run:99"), None);
        assert_eq!(line(&mut sources, &none, "shop.Cart.run:0"), None);
        assert_eq!(line(&mut sources, &none, "shop.Other.run:1"), None);
        let gone = Sources::open(&[folder.path().join("gone")]).err().unwrap().to_string();
        assert!(gone.starts_with("cannot read the sources in ") && gone.ends_with("(name a folder or a sources jar)"));
    }

    #[test]
    fn the_class_file_says_which_file() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            "src/main/kotlin/cart/Things.kt",
            "package shop.cart\n\nclass Item\nfun item() = Item()\n",
        );
        write(folder.path(), "src/main/kotlin/till/Things.kt", "package shop.till\n\n\nfun open() = Till()\n");
        write(folder.path(), "other/Things.kt", "package other\n\n\nwrong\n");
        write(folder.path(), ".git/shop/cart/Things.kt", "package shop.cart\n\n\nwrong\n");
        write(folder.path(), "app/src/main/java/Main.java", "class Main {\n    int[] all = new int[3];\n}\n");
        write(folder.path(), "Main.java", "package elsewhere;\nwrong\n");
        let files = [
            ("shop.cart.Carts", "shop/cart/Things.kt"),
            ("shop.till.Tills", "shop/till/Things.kt"),
            ("Main", "Main.java"),
        ];
        let files: SourceFiles = files.into_iter().map(|(class, file)| (class.to_owned(), file.to_owned())).collect();
        let mut sources = Sources::open(&[folder.path().to_owned()]).unwrap();
        let found = sources.excerpt(&files, "shop.cart.Carts.item:4").unwrap();
        assert_eq!((found.file.as_str(), found.text()), ("src/main/kotlin/cart/Things.kt", "fun item() = Item()"));
        assert_eq!((found.first, found.lines.len()), (1, 4));
        assert_eq!(
            line(&mut sources, &files, "shop.till.Tills.open:4").unwrap(),
            "src/main/kotlin/till/Things.kt: fun open() = Till()"
        );
        // The one at the top has just the path, but is of a package.
        assert_eq!(
            line(&mut sources, &files, "Main.<init>:2").unwrap(),
            "app/src/main/java/Main.java: int[] all = new int[3];"
        );
    }

    #[test]
    fn few_lines_around_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (1..=40).map(|number| format!("  line {number} {}\n", "x".repeat(300))).collect();
        write(folder.path(), "Main.java", &text);
        let mut sources = Sources::open(&[folder.path().to_owned()]).unwrap();
        let found = sources.excerpt(&SourceFiles::default(), "Main.main:20").unwrap();
        assert_eq!((found.first, found.line, found.lines.len()), (15, 20, 11));
        assert!(found.text().starts_with("line 20 ") && found.lines.iter().all(|line| line.len() == MOST_CHARS));
    }
}
