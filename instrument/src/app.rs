//! `et-instrument INPUT… -o OUT`: jars, folders and class files.
//!
//! Each jar is an artifact with its own names table, also in a folder of jars, so that it can be moved and used on its
//! own. The loose classes of a folder are one artifact; a single class file is one.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use et_names::{ArtifactKind, ENTRY_IN_JAR};
use thiserror::Error;

use crate::artifact::{AlreadyInstrumented, ArtifactError, Blocks, ClassInput, ClassOutcome, Settings, instrument};
use crate::class_path::ClassPath;
use crate::container::class_file;
use crate::container::folder::{self, Folder};
use crate::container::jar::{Findings, Jar, JarError};
use crate::container::zip::Packed;
use crate::files::{FileError, absolute, create_folder, write_file};
use crate::input::{Input, InputError};
use crate::interrupt::{Interrupted, Unfinished};
use crate::memory::Budget;
use crate::report::{ArtifactReport, Report, Skip};
use crate::staging::{MARKS, Staging, StagingError, refuse_entangled};

/// Why inputs were not instrumented.
#[derive(Debug, Error)]
pub enum AppError {
    /// No inputs were given.
    #[error("no input: give a jar, a class file or a folder")]
    NoInput,
    /// One would take the place of the other.
    #[error("two inputs are named {name}: instrument them one by one")]
    SameName {
        /// File name that the outputs would share.
        name: String,
    },
    /// An input that is not a class file, jar or folder of these.
    #[error("{path}: {why}")]
    Unusable {
        /// Path of the input.
        path: PathBuf,
        why: String,
    },
    /// The input has already been instrumented.
    #[error(transparent)]
    AlreadyInstrumented(#[from] AlreadyInstrumented),
    /// A jar that is not rewritten.
    #[error(transparent)]
    Jar(#[from] JarError),
    /// Classes that are not rewritten.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The output cannot be put in its place.
    #[error(transparent)]
    Staging(#[from] StagingError),
    /// An input could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something that is read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Interrupted by Ctrl-C.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl AppError {
    /// Whether what was asked for makes no sense.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoInput | Self::SameName { .. })
    }

    fn explained(self, staging: &Staging) -> Self {
        match self {
            Self::File(error) => Self::File(staging.explain(error)),
            other => other,
        }
    }
}

/// Instruments the inputs. A single input becomes `output`, or goes into it if that is an existing folder; several
/// inputs go into a new folder of that name.
pub fn run(
    inputs: &[PathBuf],
    output: &Path,
    force: bool,
    id_base: Option<u32>,
    settings: &Settings,
) -> Result<Report, AppError> {
    if inputs.is_empty() {
        return Err(AppError::NoInput);
    }
    for input in inputs {
        fs::metadata(input).map_err(FileError::at("read", input))?;
    }
    let output = destination(inputs, output)?;
    for input in inputs {
        refuse_entangled(input, &output)?;
    }
    let mut job = Job { settings, blocks: Blocks::new(id_base), report: Report::default(), class_paths: Vec::new() };
    let staging = Staging::new(&output, force)?;
    // It is beside the output, and has to be removed as well if the process ends early.
    let table = Unfinished::new(beside(staging.path()));
    let done = job.all(inputs, staging.path()).map_err(|error| error.explained(&staging)).and_then(|()| {
        job.report.checked(staging.check(settings, inputs)?.map(|verdict| verdict.summary()));
        for class_path in &job.class_paths {
            job.report.warnings.extend(class_path.note(&staging));
        }
        let target = beside(staging.target());
        Ok(staging.commit_with(table.path().is_file().then_some((table.path(), target.as_path())))?)
    });
    if let Err(error) = done {
        let _ = fs::remove_file(table.path());
        return Err(error);
    }
    if job.report.artifacts.iter().all(|artifact| artifact.classes == 0) {
        job.report.warnings.push("no class was rewritten: the input has no class that can be".into());
    }
    job.report.warnings.extend(settings.filter.unused());
    job.report.output = absolute(&output)?.display().to_string();
    Ok(job.report)
}

/// Where the names table of a single class file goes: `Foo.class.etn`.
fn beside(class: &Path) -> PathBuf {
    let mut name = class.as_os_str().to_owned();
    name.push(".etn");
    name.into()
}

/// The name as given: a link's own, not that of what it leads to, since class paths speak of the link.
fn file_name(path: &Path) -> Result<OsString, AppError> {
    let given = std::path::absolute(path).map_err(FileError::at("find", path))?;
    // `..` has no file name.
    let named = if given.file_name().is_some() { given } else { absolute(path)? };
    named
        .file_name()
        .map(OsString::from)
        .ok_or_else(|| AppError::Unusable { path: named.clone(), why: "has no name".into() })
}

/// A single file goes into an existing folder under its own name, as with `cp`.
fn destination(inputs: &[PathBuf], output: &Path) -> Result<PathBuf, AppError> {
    match inputs {
        [input] if input.is_file() && output.is_dir() => Ok(output.join(file_name(input)?)),
        _ => Ok(output.to_owned()),
    }
}

struct Job<'a> {
    settings: &'a Settings,
    blocks: Blocks,
    report: Report,
    class_paths: Vec<ClassPath>,
}

impl Job<'_> {
    fn all(&mut self, inputs: &[PathBuf], output: &Path) -> Result<(), AppError> {
        if let [input] = inputs {
            return self.any(input, output);
        }
        create_folder(output)?;
        let mut names: Vec<OsString> = Vec::new();
        for input in inputs {
            let name = file_name(input)?;
            if names.contains(&name) {
                return Err(AppError::SameName { name: name.to_string_lossy().into_owned() });
            }
            self.any(input, &output.join(&name))?;
            names.push(name);
        }
        Ok(create_folder(&output.join(MARKS[0]))?)
    }

    fn any(&mut self, input: &Path, output: &Path) -> Result<(), AppError> {
        if input.is_dir() {
            return self.folder(input, output);
        }
        let bytes = Input::open(input)?;
        if class_file::is_class(&bytes) || class_file::has_class_name(input) {
            return self.class(input, &bytes, output);
        }
        let artifact = self.jar(input, &bytes, &display_name(input), output)?;
        self.report.artifacts.push(artifact);
        Ok(())
    }

    /// Instruments a single class file. If it cannot be instrumented, that is an error, since there is nothing else to
    /// copy.
    fn class(&mut self, input: &Path, bytes: &[u8], output: &Path) -> Result<(), AppError> {
        let name = display_name(input);
        if bytes.is_empty() {
            return Err(AppError::Unusable { path: input.to_owned(), why: "the file is empty".into() });
        }
        let class = [ClassInput { label: name.clone(), bytes: Ok(Cow::Borrowed(bytes)) }];
        let done =
            instrument(&class, &name, ArtifactKind::Application, self.settings, &mut self.blocks, |_, bytes| bytes)?;
        let out = match &done.outcomes[0] {
            ClassOutcome::New(bytes) => bytes,
            ClassOutcome::Same => bytes,
            ClassOutcome::Skipped => {
                let why = done.report.skipped.first().map_or("not a class file", |skip| &skip.reason).to_owned();
                return Err(AppError::Unusable { path: input.to_owned(), why });
            }
        };
        write_file(output, out)?;
        folder::like(input, output);
        let names = done.names.encode();
        write_file(&beside(output), &names)?;
        self.report.bytes_in += bytes.len() as u64;
        self.report.bytes_out += (out.len() + names.len()) as u64;
        self.report.artifacts.push(done.report);
        Ok(())
    }

    fn jar(&mut self, input: &Path, bytes: &[u8], name: &str, output: &Path) -> Result<ArtifactReport, AppError> {
        let mut findings = Findings::new(self.settings.memory);
        let jar = Jar::scan(bytes, &input.display().to_string(), &mut findings)?;
        if let (true, Some(skip)) = (self.settings.strict, findings.skipped.first()) {
            let place = format!("{name}: {}", skip.entry);
            return Err(ArtifactError::Strict { place, why: skip.reason.clone() }.into());
        }
        let classes = jar.classes(&mut findings);
        let methods = jar.methods(findings.classes);
        let mut done =
            instrument(&classes, name, ArtifactKind::Application, self.settings, &mut self.blocks, |index, bytes| {
                Packed::new(bytes, methods[index])
            })?;
        self.report.bytes_in += bytes.len() as u64;
        if jar.touched(&done.outcomes) {
            let file = File::create(output).map_err(FileError::at("create", output))?;
            let entry = jar.names_entry(&display_name(input));
            let written = jar
                .write(BufWriter::with_capacity(1 << 20, file), &done.outcomes, Some((&entry, done.names.encode())))
                .and_then(|(mut out, size)| out.flush().map(|()| size));
            self.report.bytes_out += written.map_err(|source| unless_interrupted(output, source))?;
            done.report.signatures_removed = jar.signatures(&done.outcomes);
            folder::like(input, output);
        } else {
            self.report.bytes_out += folder::copy(input, output)?;
        }
        done.report.skipped.splice(0..0, findings.skipped);
        if !findings.class_path.is_empty() {
            self.class_paths.push(ClassPath {
                jar: name.to_owned(),
                from: input.to_owned(),
                to: output.to_owned(),
                names: findings.class_path,
            });
        }
        Ok(done.report)
    }

    fn folder(&mut self, input: &Path, output: &Path) -> Result<(), AppError> {
        if input.join(ENTRY_IN_JAR).exists() || MARKS.iter().any(|mark| input.join(mark).exists()) {
            return Err(AlreadyInstrumented { place: input.display().to_string() }.into());
        }
        let content = Folder::list(input)?;
        if let (true, Some(skip)) = (self.settings.strict, content.left_out.first()) {
            return Err(ArtifactError::Strict { place: skip.entry.clone(), why: skip.reason.clone() }.into());
        }
        create_folder(output)?;
        for folder in &content.folders {
            create_folder(&output.join(folder))?;
        }
        for other in &content.others {
            crate::interrupt::check()?;
            let size = folder::copy(&input.join(other), &output.join(other))?;
            self.report.bytes_in += size;
            self.report.bytes_out += size;
        }
        create_folder(&output.join(MARKS[0]))?;

        let mut loose = self.loose_classes(input, &content, output)?;
        loose.left_out = content.left_out;
        let mut jars = Vec::new();
        for jar in &content.jars {
            let (from, to) = (input.join(jar), output.join(jar));
            let bytes = Input::open(&from)?;
            match self.jar(&from, &bytes, &jar.display().to_string(), &to) {
                Ok(artifact) => jars.push(artifact),
                Err(AppError::Jar(error)) if !self.settings.strict => {
                    let reason = error.as_it_is().ok_or(error)?;
                    let size = folder::copy(&from, &to)?;
                    self.report.bytes_in += size;
                    self.report.bytes_out += size;
                    loose.skipped.push(Skip { entry: jar.display().to_string(), reason });
                }
                Err(error) => return Err(error),
            }
        }
        if !(content.classes.is_empty() && loose.skipped.is_empty() && loose.left_out.is_empty()) {
            self.report.artifacts.push(loose);
        }
        self.report.artifacts.extend(jars);
        Ok(())
    }

    fn loose_classes(&mut self, input: &Path, content: &Folder, output: &Path) -> Result<ArtifactReport, AppError> {
        let name = display_name(input);
        if content.classes.is_empty() {
            return Ok(ArtifactReport { name, ..ArtifactReport::default() });
        }
        let mut budget = self.settings.memory;
        let read = |path: &PathBuf| {
            let from = input.join(path);
            let bytes = class_bytes(&from, &mut budget).map_err(FileError::at("read", &from))?;
            Ok(ClassInput { label: path.display().to_string(), bytes: bytes.map(Cow::Owned) })
        };
        let classes = content.classes.iter().map(read).collect::<Result<Vec<_>, AppError>>()?;
        let done =
            instrument(&classes, &name, ArtifactKind::Application, self.settings, &mut self.blocks, |_, bytes| bytes)?;
        for ((path, class), outcome) in content.classes.iter().zip(&classes).zip(&done.outcomes) {
            crate::interrupt::check()?;
            let (from, to) = (input.join(path), output.join(path));
            let Ok(original) = &class.bytes else {
                let size = folder::copy(&from, &to)?;
                self.report.bytes_in += size;
                self.report.bytes_out += size;
                continue;
            };
            let bytes = match outcome {
                ClassOutcome::New(bytes) => bytes,
                ClassOutcome::Same | ClassOutcome::Skipped => &**original,
            };
            write_file(&to, bytes)?;
            folder::like(&from, &to);
            self.report.bytes_in += original.len() as u64;
            self.report.bytes_out += bytes.len() as u64;
        }
        let names = done.names.encode();
        write_file(&output.join(ENTRY_IN_JAR), &names)?;
        self.report.bytes_out += names.len() as u64;
        Ok(done.report)
    }
}

/// Reads a class file, or returns why it is not one. Not mapped: a project has more class files than a process may have
/// maps. And only if it starts as one: files with holes can be larger than memory.
fn class_bytes(path: &Path, budget: &mut Budget) -> io::Result<Result<Vec<u8>, String>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(class_file::MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(Err("the file is empty".into()));
    }
    if !class_file::is_class(&bytes) {
        return Ok(Err(class_file::NO_CLASS.into()));
    }
    let size = file.metadata()?.len();
    if let Err(why) = budget.claim(size) {
        return Ok(Err(why));
    }
    file.take(size).read_to_end(&mut bytes)?;
    Ok(Ok(bytes))
}

fn display_name(path: &Path) -> String {
    file_name(path).map_or_else(|_| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn unless_interrupted(output: &Path, source: io::Error) -> AppError {
    match crate::interrupt::check() {
        Err(interrupted) => interrupted.into(),
        Ok(()) => FileError::at("write", output)(source).into(),
    }
}
