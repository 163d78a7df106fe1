//! Lines of the program's source, from folders and archives that the user names.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use et_analysis::report::{Page, Report};
use et_report::{Cell, Column, Table};
use rustc_hash::FxHashMap;
use thiserror::Error;
use zip::ZipArchive;

/// A folder or archive of sources cannot be used.
#[derive(Debug, Error)]
#[error("cannot read the sources in {path}: {source} (name a folder or a sources jar)", path = path.display())]
pub struct SourcesError {
    path: PathBuf,
    source: io::Error,
}

/// Larger files are not read: generated code, or not source at all.
const MOST_BYTES: u64 = 8 << 20;
/// Longer lines are cut.
const MOST_CHARS: usize = 240;
const ENDINGS: [&str; 4] = ["java", "kt", "scala", "groovy"];

enum Root {
    Folder(PathBuf),
    /// With the number of each file by its path; the folder of a module, as in the JDK's `src.zip`, is left out.
    Archive(ZipArchive<File>, FxHashMap<String, usize>),
}

impl Root {
    fn open(path: &Path) -> io::Result<Self> {
        if std::fs::metadata(path)?.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        let archive = ZipArchive::new(File::open(path)?).map_err(io::Error::from)?;
        let mut files = FxHashMap::default();
        for number in 0..archive.len() {
            // A name that is no text is not that of a class.
            let Some(Ok(name)) = archive.name_for_index(number) else { continue };
            let path = match name.split_once('/') {
                Some((module, rest)) if module.contains('.') => rest,
                _ => &*name,
            };
            if ENDINGS.iter().any(|ending| path.strip_suffix(ending).is_some_and(|path| path.ends_with('.'))) {
                files.entry(path.to_owned()).or_insert(number);
            }
        }
        Ok(Self::Archive(archive, files))
    }

    /// The text of a file; `None`: it is not there, or not to be read.
    fn read(&mut self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        match self {
            Self::Folder(folder) => {
                let path = folder.join(path);
                // Pipes and devices could block.
                std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
                File::open(path).ok()?.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
            }
            Self::Archive(archive, files) => {
                let file = archive.by_index(*files.get(path)?).ok()?;
                file.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
            }
        }
        (bytes.len() as u64 <= MOST_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Where sources are looked for, in this order.
pub struct Sources {
    roots: Vec<Root>,
    /// The lines of the file that was asked for last: sites of a class often come together.
    last: Option<(String, Option<Vec<String>>)>,
}

impl Sources {
    /// Opens folders and archives.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn open(paths: &[PathBuf]) -> Result<Self, SourcesError> {
        let open = |path: &PathBuf| Root::open(path).map_err(|source| SourcesError { path: path.clone(), source });
        Ok(Self { roots: paths.iter().map(open).collect::<Result<_, _>>()?, last: None })
    }

    /// The line of a site, without its indentation.
    pub fn line(&mut self, site: &str) -> Option<String> {
        let (stem, number) = place(site)?;
        if self.last.as_ref().is_none_or(|(known, _)| *known != stem) {
            let lines = self.text(&stem).map(|text| text.lines().map(str::to_owned).collect());
            self.last = Some((stem, lines));
        }
        let lines = self.last.as_ref().and_then(|(_, lines)| lines.as_ref())?;
        let line = lines.get(number.checked_sub(1)?)?.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        let shown: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_CHARS).collect();
        (!shown.is_empty()).then_some(shown)
    }

    fn text(&mut self, stem: &str) -> Option<String> {
        // Kotlin's functions outside classes are in one that is named after the file.
        let stems = [Some(stem), stem.strip_suffix("Kt")];
        let paths = stems.into_iter().flatten().flat_map(|stem| ENDINGS.map(|ending| format!("{stem}.{ending}")));
        let paths: Vec<String> = paths.collect();
        self.roots.iter_mut().find_map(|root| paths.iter().find_map(|path| root.read(path)))
    }
}

/// Path of the source of a site without its ending, and the line: `shop/Cart`, 17 of `shop.Cart$Item.<init>:17`.
fn place(site: &str) -> Option<(String, usize)> {
    let (method, line) = site.split(' ').next()?.rsplit_once(':')?;
    let (class, _) = method.rsplit_once('.')?;
    let mut parts: Vec<&str> = class.split('.').collect();
    let name = parts.pop()?;
    // The outermost class; names may begin with a dollar sign.
    let end = name.char_indices().skip(1).find(|&(_, c)| c == '$').map_or(name.len(), |(at, _)| at);
    parts.push(&name[..end]);
    // Names are the program's: none may lead elsewhere.
    let is_plain = |part: &&str| !part.is_empty() && !part.contains(['/', '\\', '\0']);
    parts.iter().all(is_plain).then_some(())?;
    Some((parts.join("/"), line.parse().ok()?))
}

/// The sites of a report with their lines, and how many have none.
pub fn source_lines(report: &Report, sources: &mut Sources) -> (Table, usize) {
    let sites = &report.lifetimes.sites;
    let mut row = |name: &String| Some(vec![Cell::Name(name.clone()), Cell::Text(sources.line(name)?)]);
    let rows: Vec<Vec<Cell>> = sites.iter().filter_map(|site| row(&site.name)).collect();
    let missing = sites.len() - rows.len();
    let note = "The lines of the sites above, from the sources given with --source.";
    let table = Table {
        page: Page::Allocation.id(),
        name: "source",
        title: "Source".into(),
        note: note.into(),
        columns: ["Site", "Line"].map(|title| Column { title, help: "", is_number: false }).into(),
        rows,
    };
    (table, missing)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn a_site_has_the_file_of_its_outermost_class() {
        let of = |site| place(site).map(|(stem, line)| format!("{stem} {line}"));
        assert_eq!(of("shop.Cart$Item.<init>:17").unwrap(), "shop/Cart 17");
        assert_eq!(of("Main.main:3").unwrap(), "Main 3");
        assert_eq!(of("java.util.HashMap.newNode:1901 for shop.Cart.add").unwrap(), "java/util/HashMap 1901");
        assert_eq!(of("$Proxy.run:1").unwrap(), "$Proxy 1");
        for none in ["(by loading a class)", "shop.Cart.add", "...x/../../etc/passwd.m:1", "a/b.C.m:1", ""] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn lines_come_from_folders_and_archives() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("shop");
        std::fs::create_dir(&package).unwrap();
        std::fs::write(package.join("Cart.java"), "package shop;\n\n    new Item(); // \u{7}\n").unwrap();
        let jar = folder.path().join("src.zip");
        let mut zip = ZipWriter::new(File::create(&jar).unwrap());
        for name in ["java.base/java/util/Maps.kt", "shop/Cart.java"] {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(b"first\nsecond\n").unwrap();
        }
        zip.finish().unwrap();
        let mut sources = Sources::open(&[folder.path().to_owned(), jar]).unwrap();
        assert_eq!(sources.line("shop.Cart$1.run:3").unwrap(), "new Item(); //");
        assert_eq!(sources.line("java.util.MapsKt.of:2").unwrap(), "second");
        assert_eq!(sources.line("shop.Cart.run:2"), None, "an empty line");
        assert_eq!(sources.line("shop.Cart.run:99"), None);
        assert_eq!(sources.line("shop.Other.run:1"), None);
        let gone = Sources::open(&[folder.path().join("gone")]).err().unwrap().to_string();
        assert!(gone.starts_with("cannot read the sources in ") && gone.ends_with("(name a folder or a sources jar)"));
    }
}
