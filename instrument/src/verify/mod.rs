//! `et-instrument verify`: reads what was written once more, with other eyes.
//!
//! Classes are checked against JVMS §4 ([`class`]), archives against their own headers, and artifacts against their
//! names tables. None of it uses the reader that rewrites classes, or the writer of archives.

mod archive;
mod artifact;
pub mod class;
mod finding;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use et_names::{ENTRY_IN_JAR, NamesTable, PATH_IN_JDK};
use rayon::prelude::*;
use walkdir::WalkDir;

pub use finding::{Finding, LISTED, Verdict};

use crate::container::class_file;
use crate::container::jar::{is_archive, is_names_table};
use crate::container::jimage::{Image, Resource};
use crate::error::Error;
use crate::input::Input;
use crate::progress::Progress;

use artifact::Artifact;

/// Nested archives, as deep as the rewriter goes.
const MAX_DEPTH: usize = 3;

/// How to verify.
#[derive(Clone, Debug)]
pub struct Options {
    /// Check classes, too, that the rewriter has not made.
    pub all: bool,
    /// Where to show progress.
    pub progress: Progress,
}

/// Verifies jars, folders, class files, JDKs, images, jmods.
pub fn run(inputs: &[PathBuf], options: &Options) -> Result<Verdict, Error> {
    let start = Instant::now();
    let mut job = Job { options, verdict: Verdict::default() };
    for input in inputs {
        job.path(input)?;
    }
    if job.verdict.classes == 0 && job.verdict.findings.is_empty() {
        let path = inputs.first().cloned().unwrap_or_default();
        let why = if job.verdict.unmarked > 0 {
            "nothing in it is instrumented, so there is nothing to verify; --all checks all the same".into()
        } else {
            "it holds no classes".into()
        };
        return Err(Error::Input { path, why });
    }
    let verdict = &mut job.verdict;
    verdict.seconds = start.elapsed().as_secs_f64();
    Ok(job.verdict)
}

struct Job<'o> {
    options: &'o Options,
    verdict: Verdict,
}

/// A class to check: its entry, and its bytes.
type Found<'a> = (String, Cow<'a, [u8]>);

impl Job<'_> {
    fn path(&mut self, path: &Path) -> Result<(), Error> {
        let metadata = fs::metadata(path).map_err(Error::io("read", path))?;
        if metadata.is_dir() {
            return self.folder(path);
        }
        let bytes = Input::open(path)?;
        let place = path.display().to_string();
        if bytes.starts_with(&[0xca, 0xfe, 0xda, 0xda]) || bytes.starts_with(&[0xda, 0xda, 0xfe, 0xca]) {
            return self.image(path, &bytes, None);
        }
        if class_file::is_class(&bytes) || class_file::has_class_name(path) {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".etn");
            let names = fs::read(PathBuf::from(beside)).ok();
            self.classes(&place, vec![(String::new(), Cow::Borrowed(&bytes))], names.as_deref(), true)?;
            return Ok(());
        }
        self.archive(&place, &bytes, None)
    }

    fn find(&mut self, place: &str, entry: &str, what: impl Into<String>) {
        self.verdict.findings.push(Finding {
            place: place.to_owned(),
            entry: entry.to_owned(),
            method: None,
            offset: None,
            what: what.into(),
        });
    }

    fn folder(&mut self, root: &Path) -> Result<(), Error> {
        let place = root.display().to_string();
        let jdk_names = fs::read(root.join(PATH_IN_JDK)).ok();
        let image = root.join("lib/modules");
        if image.is_file() {
            if jdk_names.is_none() {
                self.find(&place, PATH_IN_JDK, "the names table is missing");
            }
            let bytes = Input::open(&image)?;
            return self.image(&image, &bytes, jdk_names.as_deref());
        }
        // A patch, or the boot jars for a JDK 8, have no launchers.
        if jdk_names.is_some() && root.join("bin").is_dir() {
            self.find(&place, "lib/modules", "it is missing: make the copy of the JDK again");
            return Ok(());
        }
        let mut loose = Vec::new();
        let mut jars = Vec::new();
        for item in WalkDir::new(root).follow_links(true).sort_by_file_name().min_depth(1) {
            let item = item.map_err(|error| {
                let path = error.path().unwrap_or(root).to_owned();
                let why = error.into_io_error().unwrap_or_else(|| std::io::Error::other("links in a circle"));
                Error::io("read", &path)(why)
            })?;
            let path = item.into_path();
            if !path.is_file() {
                continue;
            }
            let relative = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if class_file::has_class_name(&path) {
                let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
                loose.push((relative, Cow::Owned(bytes)));
            } else if is_archive(&relative) {
                jars.push(path);
            }
        }
        // Of a patch or a JDK 8 the names table stands beside the jars, for all of them.
        if let Some(names) = jdk_names {
            for jar in jars {
                let bytes = Input::open(&jar)?;
                self.archive(&jar.display().to_string(), &bytes, Some(&names))?;
            }
            return Ok(());
        }
        if !loose.is_empty() {
            let names = fs::read(root.join(ENTRY_IN_JAR)).ok();
            self.classes(&place, loose, names.as_deref(), true)?;
        }
        for jar in jars {
            let bytes = Input::open(&jar)?;
            let place = jar.display().to_string();
            // What is no jar was copied as it is, and reported then.
            if self.options.all || archive::list(&bytes).is_ok() {
                self.archive(&place, &bytes, None)?;
            }
        }
        Ok(())
    }

    fn image(&mut self, path: &Path, bytes: &[u8], names: Option<&[u8]>) -> Result<(), Error> {
        let place = path.display().to_string();
        let read = Image::read(bytes).and_then(|image| {
            let resources = image.resources()?;
            image.refuse_cut_off(&resources).map(|()| (image, resources))
        });
        let (image, resources) = match read {
            Ok(read) => read,
            Err(error) => {
                self.find(&place, "", format!("{error}: make it again"));
                return Ok(());
            }
        };
        let faults: Vec<(String, String)> =
            resources.par_iter().filter_map(|resource| of_resource(&image, resource)).collect();
        for (entry, what) in faults {
            self.find(&place, &entry, what);
        }
        self.verdict.entries += resources.len() as u64;
        let classes: Vec<Found<'_>> = resources
            .par_iter()
            .filter(|resource| resource.is_class())
            .filter_map(|resource| Some((resource.name.clone(), image.content(resource).ok()?)))
            .collect();
        // An image by itself has no table to be compared with.
        self.classes(&place, classes, names, names.is_some())
    }

    /// An archive with what is nested in it. `names`: a table from elsewhere.
    fn archive(&mut self, place: &str, bytes: &[u8], names: Option<&[u8]>) -> Result<(), Error> {
        let mut content = Content::default();
        content.read(bytes, "", 0);
        for (entry, what) in content.faults {
            self.find(place, &entry, what);
        }
        self.verdict.entries += content.entries;
        let own = content.names;
        self.classes(place, content.classes, names.or(own.as_deref()), true)
    }

    fn classes(
        &mut self,
        place: &str,
        classes: Vec<Found<'_>>,
        names: Option<&[u8]>,
        wants_names: bool,
    ) -> Result<(), Error> {
        self.options.progress.stage(format!("verifying {place}"));
        self.options.progress.expect(classes.len());
        let all = self.options.all;
        let table = match names.map(NamesTable::decode) {
            None => None,
            Some(Ok(table)) => Some(table),
            Some(Err(error)) => {
                self.find(place, "", format!("the names table cannot be read: {error}"));
                None
            }
        };
        let artifact = table.as_ref().map(Artifact::new);
        let each = classes.par_iter().map(|(entry, bytes)| {
            crate::interrupt::check()?;
            let marked = class::is_marked(bytes);
            let result = (marked || all).then(|| {
                let mut checked = class::check(bytes);
                if let (Some(artifact), true) = (&artifact, marked) {
                    artifact.check(&mut checked);
                }
                (checked, entry, bytes.len() as u64)
            });
            self.options.progress.done();
            Ok(result)
        });
        let each: Vec<Option<_>> = each.collect::<Result<_, Error>>()?;
        let mut any_marked = false;
        let verdict = &mut self.verdict;
        verdict.artifacts += 1;
        for result in each {
            let Some((checked, entry, size)) = result else {
                verdict.unmarked += 1;
                continue;
            };
            any_marked |= checked.mark.is_some();
            verdict.classes += 1;
            verdict.methods += checked.methods.len() as u64;
            verdict.class_bytes += size;
            verdict.known_refusals +=
                u64::from(matches!(checked.opinion, class::Opinion::Third | class::Opinion::Neither));
            verdict.findings.extend(checked.faults.into_iter().map(|fault| Finding {
                place: place.to_owned(),
                entry: entry.clone(),
                method: fault.method,
                offset: fault.offset,
                what: fault.what,
            }));
        }
        if any_marked && wants_names && names.is_none() {
            self.find(place, "", "it holds instrumented classes and no names table");
        }
        Ok(())
    }
}

/// What is wrong with a resource: its name must lead to it, and its content must be there.
fn of_resource(image: &Image<'_>, resource: &Resource) -> Option<(String, String)> {
    let fault = match image.find(&resource.name) {
        Ok(Some(found)) if found.is_same(resource) => match image.content(resource) {
            Ok(_) => return None,
            Err(error) => error.to_string(),
        },
        Ok(_) => "its name does not lead to it".into(),
        Err(error) => error.to_string(),
    };
    Some((resource.name.clone(), fault))
}

/// What an archive holds, nested ones included.
#[derive(Debug, Default)]
struct Content {
    classes: Vec<Found<'static>>,
    names: Option<Vec<u8>>,
    faults: Vec<(String, String)>,
    entries: u64,
}

impl Content {
    fn read(&mut self, bytes: &[u8], prefix: &str, depth: usize) {
        let listing = match archive::list(bytes) {
            Ok(listing) => listing,
            Err(what) => {
                // Data of the program may be called a jar and be none.
                if depth == 0 {
                    self.faults.push((String::new(), what));
                }
                return;
            }
        };
        let label = |name: &str| format!("{prefix}{name}");
        self.faults.extend(listing.faults.into_iter().map(|(name, what)| (label(&name), what)));
        // What is looked into is kept, all else only read.
        let is_wanted = |file: &archive::File| {
            let is_class = class_file::has_class_name(file.name.as_ref());
            is_class || is_names_table(&file.name) || is_archive(&file.name) && depth < MAX_DEPTH
        };
        let read =
            |file: &archive::File| if is_wanted(file) { file.content(bytes) } else { file.check(bytes).map(|()| None) };
        let read: Vec<_> = listing.files.par_iter().map(read).collect();
        for (file, content) in listing.files.iter().zip(read) {
            self.entries += 1;
            let content = match content {
                Ok(Some(content)) => content,
                // Legal, only not to be looked into.
                Ok(None) => continue,
                Err(what) => {
                    self.faults.push((label(&file.name), what));
                    continue;
                }
            };
            if file.is_folder() {
            } else if class_file::has_class_name(file.name.as_ref()) {
                self.classes.push((label(&file.name), Cow::Owned(content.into_owned())));
            } else if depth == 0 && is_names_table(&file.name) {
                self.names = Some(content.into_owned());
            } else if is_archive(&file.name) && depth < MAX_DEPTH {
                self.read(&content, &format!("{prefix}{}!/", file.name), depth + 1);
            }
        }
    }
}
