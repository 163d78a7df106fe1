//! `et-instrument verify`: checks outputs with independent code.
//!
//! Classes are checked against JVMS §4 ([`class`]), archives against their own headers, and artifacts against their
//! names tables. Neither the reader that the rewriter uses nor the writer of archives is used here.

mod archive;
mod artifact;
pub mod class;
mod finding;

use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use et_names::{ENTRY_IN_JAR, NamesTable, PATH_IN_JDK};
use rayon::prelude::*;
use thiserror::Error;
use walkdir::WalkDir;

pub use finding::{Finding, LISTED, Verdict};

use crate::container::class_file;
use crate::container::jar::{is_archive, is_names_table};
use crate::container::jimage::{Image, Resource};
use crate::files::FileError;
use crate::input::{Input, InputError};
use crate::interrupt::Interrupted;
use crate::memory::Budget;
use crate::progress::Progress;

use artifact::Artifact;

/// Nested archives, as deep as the rewriter goes.
const MAX_DEPTH: usize = 3;
/// The same words whatever its size, so that a fault of the input is known again in the output.
const TOO_LARGE: &str = "it is not checked: unpacked, it exceeds the memory limit";

/// Why nothing was verified.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// There are no classes to check.
    #[error("{path}: it contains no classes")]
    NoClasses {
        /// Path as given by the user.
        path: PathBuf,
    },
    /// Nor is there, unless all classes are to be checked.
    #[error("{path}: nothing in it is instrumented, so there is nothing to verify; --all checks it anyway")]
    NotInstrumented {
        /// Path as given by the user.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A folder could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Interrupted by Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Options for verification.
#[derive(Clone, Debug)]
pub struct Options {
    /// Check classes, too, that the rewriter has not made.
    pub all: bool,
    /// Memory budget for unpacked content.
    pub memory: Budget,
    pub progress: Progress,
}

/// Verifies jars, folders, class files, JDKs, images, jmods.
pub fn run(inputs: &[PathBuf], options: &Options) -> Result<Verdict, VerifyError> {
    let start = Instant::now();
    let mut job = Job { options, verdict: Verdict::default() };
    for input in inputs {
        job.path(input)?;
    }
    if job.verdict.classes == 0 && job.verdict.findings.is_empty() {
        let path = inputs.first().cloned().unwrap_or_default();
        return Err(match job.verdict.unmarked {
            0 => VerifyError::NoClasses { path },
            _ => VerifyError::NotInstrumented { path },
        });
    }
    let verdict = &mut job.verdict;
    verdict.seconds = start.elapsed().as_secs_f64();
    Ok(job.verdict)
}

struct Job<'o> {
    options: &'o Options,
    verdict: Verdict,
}

/// A class to check: its bytes are had when it is its turn, so that few are held at once.
struct Found<'a> {
    entry: String,
    size: u64,
    read: Box<dyn Fn() -> Result<Content<'a>, String> + Sync + 'a>,
}

/// The content of an entry whose name is that of a class.
enum Content<'a> {
    Class(Cow<'a, [u8]>),
    /// The first bytes of something that is not a class.
    NoClass(Vec<u8>),
    /// Legal, only not to be looked into: encrypted, for example.
    Unknown,
}

impl<'a> Content<'a> {
    fn of(bytes: Cow<'a, [u8]>) -> Self {
        if class_file::is_class(&bytes) { Self::Class(bytes) } else { Self::NoClass(start_of(&bytes)) }
    }
}

/// Enough bytes to recognize a class file.
fn start_of(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(class_file::MAGIC.len())].to_vec()
}

/// An artifact that is being checked.
struct Place<'p> {
    name: &'p str,
    table: Option<&'p Artifact<'p>>,
    any_marked: bool,
}

impl Job<'_> {
    fn path(&mut self, path: &Path) -> Result<(), VerifyError> {
        let metadata = fs::metadata(path).map_err(FileError::at("read", path))?;
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
            let bytes: &[u8] = &bytes;
            let read = Box::new(move || Ok(Content::of(Cow::Borrowed(bytes))));
            let found = vec![Found { entry: String::new(), size: bytes.len() as u64, read }];
            return self.artifact(&place, names.as_deref(), true, |job, place| job.classes(place, found));
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

    fn folder(&mut self, root: &Path) -> Result<(), VerifyError> {
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
        let (loose, jars) = classes_and_jars(root)?;
        // The names table of a patch or of JDK 8 is beside the jars and applies to all of them.
        if let Some(names) = jdk_names {
            for jar in jars {
                let bytes = Input::open(&jar)?;
                self.archive(&jar.display().to_string(), &bytes, Some(&names))?;
            }
            return Ok(());
        }
        if !loose.is_empty() {
            let names = fs::read(root.join(ENTRY_IN_JAR)).ok();
            self.artifact(&place, names.as_deref(), true, |job, place| job.classes(place, loose))?;
        }
        for jar in jars {
            let bytes = Input::open(&jar)?;
            let place = jar.display().to_string();
            // A file that is not a valid jar was copied unchanged, with a message.
            if self.options.all || archive::list(&bytes).is_ok() {
                self.archive(&place, &bytes, None)?;
            }
        }
        Ok(())
    }

    fn image(&mut self, path: &Path, bytes: &[u8], names: Option<&[u8]>) -> Result<(), VerifyError> {
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
        let image = &image;
        let classes = resources.iter().filter(|resource| resource.is_class()).map(|resource| Found {
            entry: resource.name.clone(),
            size: image.size(resource),
            // Resources that cannot be read were reported above.
            read: Box::new(move || Ok(image.content(resource).map_or(Content::Unknown, Content::of))),
        });
        let classes = classes.collect();
        // A single image has no names table to compare with.
        self.artifact(&place, names, names.is_some(), |job, place| job.classes(place, classes))
    }

    /// An archive with what is nested in it. `names`: a table from elsewhere.
    fn archive(&mut self, place: &str, bytes: &[u8], names: Option<&[u8]>) -> Result<(), VerifyError> {
        let listing = match archive::list(bytes) {
            Ok(listing) => listing,
            Err(what) => {
                self.find(place, "", what);
                return self.artifact(place, names, true, |_, _| Ok(()));
            }
        };
        let own = listing.files.iter().find(|file| is_names_table(&file.name));
        let own = own.filter(|file| file.unpacked() <= self.options.memory.total());
        // Problems with it are found when the other entries are checked.
        let own = own.and_then(|file| file.content(bytes).ok().flatten());
        let mut budget = self.options.memory;
        self.artifact(place, names.or(own.as_deref()), true, |job, place| {
            job.entries(place, bytes, listing, "", 0, &mut budget)
        })
    }

    /// The content of an archive, including nested ones.
    fn entries(
        &mut self,
        place: &mut Place<'_>,
        bytes: &[u8],
        listing: archive::Listing,
        prefix: &str,
        depth: usize,
        budget: &mut Budget,
    ) -> Result<(), VerifyError> {
        let label = |name: &str| format!("{prefix}{name}");
        let is_class = |file: &archive::File| class_file::has_class_name(file.name.as_ref());
        for (name, what) in listing.faults {
            self.find(place.name, &label(&name), what);
        }
        // Classes are read below, when it is their turn.
        let others = listing.files.par_iter().filter(|file| !is_class(file));
        let faults = others.filter_map(|file| Some((file, file.check(bytes).err()?)));
        let faults: Vec<(&archive::File, String)> = faults.collect();
        for (file, what) in faults {
            self.find(place.name, &label(&file.name), what);
        }
        self.verdict.entries += listing.files.len() as u64;
        let classes = listing.files.iter().filter(|file| is_class(file)).map(|file| Found {
            entry: label(&file.name),
            size: if file.starts_as_class(bytes) { file.unpacked() } else { 0 },
            read: Box::new(move || file.class(bytes)),
        });
        self.classes(place, classes.collect())?;
        if depth == MAX_DEPTH {
            return Ok(());
        }
        for file in listing.files.iter().filter(|file| is_archive(&file.name) && !file.is_folder()) {
            let claimed = file.unpacked();
            if budget.claim(claimed).is_err() {
                // Data of the program may be called a jar and be none.
                if file.start(bytes, 2).is_ok_and(|start| start == b"PK") {
                    self.find(place.name, &label(&file.name), TOO_LARGE);
                }
                continue;
            }
            // Problems with it were reported above.
            if let Ok(Some(content)) = file.content(bytes)
                && let Ok(listing) = archive::list(&content)
            {
                self.entries(place, &content, listing, &format!("{prefix}{}!/", file.name), depth + 1, budget)?;
            }
            budget.release(claimed);
        }
        Ok(())
    }

    /// Checks classes against one names table.
    fn artifact(
        &mut self,
        place: &str,
        names: Option<&[u8]>,
        wants_names: bool,
        check: impl FnOnce(&mut Self, &mut Place<'_>) -> Result<(), VerifyError>,
    ) -> Result<(), VerifyError> {
        self.options.progress.stage(format!("verifying {place}"));
        self.verdict.artifacts += 1;
        let table = match names.map(NamesTable::decode) {
            None => None,
            Some(Ok(table)) => Some(table),
            Some(Err(error)) => {
                self.find(place, "", format!("the names table cannot be read: {error}"));
                None
            }
        };
        let table = table.as_ref().map(Artifact::new);
        let mut checked = Place { name: place, table: table.as_ref(), any_marked: false };
        check(self, &mut checked)?;
        if checked.any_marked && wants_names && names.is_none() {
            self.find(place, "", "it contains instrumented classes but no names table");
        }
        Ok(())
    }

    /// Checks classes, as many at once as may be held.
    fn classes(&mut self, place: &mut Place<'_>, classes: Vec<Found<'_>>) -> Result<(), VerifyError> {
        self.options.progress.expect(classes.len());
        let mut rest = classes.as_slice();
        while !rest.is_empty() {
            let mut budget = self.options.memory;
            let count = rest.iter().take_while(|found| budget.claim(found.size).is_ok()).count();
            if count == 0 {
                self.find(place.name, &rest[0].entry, TOO_LARGE);
            }
            self.some_classes(place, &rest[..count])?;
            rest = &rest[count.max(1)..];
        }
        Ok(())
    }

    fn some_classes(&mut self, place: &mut Place<'_>, classes: &[Found<'_>]) -> Result<(), VerifyError> {
        let all = self.options.all;
        let table = place.table;
        let each = classes.par_iter().map(|found| {
            crate::interrupt::check()?;
            let result = match (found.read)() {
                Ok(Content::Class(bytes)) => {
                    let marked = class::is_marked(&bytes);
                    (marked || all).then(|| {
                        let mut checked = class::check(&bytes);
                        if let (Some(table), true) = (table, marked) {
                            table.check(&mut checked);
                        }
                        Ok((checked, bytes.len() as u64))
                    })
                }
                Ok(Content::NoClass(start)) => all.then(|| Ok((class::check(&start), start.len() as u64))),
                Ok(Content::Unknown) => return Ok(None),
                Err(what) => Some(Err(what)),
            };
            self.options.progress.done();
            Ok(Some((result, found)))
        });
        let each: Vec<Option<_>> = each.collect::<Result<_, VerifyError>>()?;
        for (result, found) in each.into_iter().flatten() {
            let verdict = &mut self.verdict;
            let (checked, size) = match result {
                None => {
                    verdict.unmarked += 1;
                    continue;
                }
                Some(Err(what)) => {
                    self.find(place.name, &found.entry, what);
                    continue;
                }
                Some(Ok(checked)) => checked,
            };
            place.any_marked |= checked.mark.is_some();
            verdict.classes += 1;
            verdict.methods += checked.methods.len() as u64;
            verdict.class_bytes += size;
            verdict.known_refusals +=
                u64::from(matches!(checked.opinion, class::Opinion::Third | class::Opinion::Neither));
            verdict.findings.extend(checked.faults.into_iter().map(|fault| Finding {
                place: place.name.to_owned(),
                entry: found.entry.clone(),
                method: fault.method,
                offset: fault.offset,
                what: fault.what,
            }));
        }
        Ok(())
    }
}

/// The problem with a resource, if any: its name must lead to it, and its content must be readable.
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

/// The class files below a folder, and the paths of the archives.
fn classes_and_jars(root: &Path) -> Result<(Vec<Found<'static>>, Vec<PathBuf>), VerifyError> {
    let (mut loose, mut jars) = (Vec::new(), Vec::new());
    for item in WalkDir::new(root).follow_links(true).sort_by_file_name().min_depth(1) {
        let item = item.map_err(|error| {
            let path = error.path().unwrap_or(root).to_owned();
            let why = error.into_io_error().unwrap_or_else(|| std::io::Error::other("circular links"));
            FileError::at("read", &path)(why)
        })?;
        let path = item.into_path();
        let entry = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if !path.is_file() {
        } else if class_file::has_class_name(&path) {
            loose.push(class_in(path, entry)?);
        } else if is_archive(&entry) {
            jars.push(path);
        }
    }
    Ok((loose, jars))
}

/// A file with the name of a class; if it is not one, only the first bytes are read.
fn class_in(path: PathBuf, entry: String) -> Result<Found<'static>, VerifyError> {
    let size = fs::metadata(&path).map_err(FileError::at("read", &path))?.len();
    let mut start = Vec::new();
    let file = fs::File::open(&path);
    file.and_then(|file| file.take(class_file::MAGIC.len() as u64).read_to_end(&mut start))
        .map_err(FileError::at("read", &path))?;
    if !class_file::is_class(&start) {
        return Ok(Found { entry, size: 0, read: Box::new(move || Ok(Content::NoClass(start.clone()))) });
    }
    let read = Box::new(move || match fs::read(&path) {
        Ok(bytes) => Ok(Content::Class(Cow::Owned(bytes))),
        Err(error) => Err(format!("it cannot be read: {error}")),
    });
    Ok(Found { entry, size, read })
}
