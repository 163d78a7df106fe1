//! `et-instrument INPUT… -o OUT`: jars, folders and class files.
//!
//! Each jar is an artifact with its own names table, also in a folder of jars: it can then be moved and used by
//! itself. The loose classes of a folder are one artifact, a single class file is one.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use et_names::{ArtifactKind, ENTRY_IN_JAR};

use crate::artifact::{Blocks, ClassInput, Outcome, Settings, instrument};
use crate::class_path::ClassPath;
use crate::container::class_file;
use crate::container::folder::{self, Folder};
use crate::container::jar::{Findings, Jar};
use crate::container::zip::Packed;
use crate::error::Error;
use crate::input::Input;
use crate::memory::Budget;
use crate::report::{ArtifactReport, Report, Skip};
use crate::staging::{MARKS, Staging, absolute};

/// Instruments the inputs. One input makes `output`, or lands in it if that is an existing folder; several make
/// a folder of that name.
pub fn run(
    inputs: &[PathBuf],
    output: &Path,
    force: bool,
    id_base: Option<u32>,
    settings: &Settings,
) -> Result<Report, Error> {
    if inputs.is_empty() {
        return Err(Error::Usage("no input: give a jar, a class file or a folder".into()));
    }
    for input in inputs {
        fs::metadata(input).map_err(Error::io("read", input))?;
    }
    let output = destination(inputs, output)?;
    for input in inputs {
        refuse_entangled(input, &output)?;
    }
    let mut job = Job { settings, blocks: Blocks::new(id_base), report: Report::default(), class_paths: Vec::new() };
    let staging = Staging::new(&output, force)?;
    let table = beside(staging.path());
    let done = job.all(inputs, staging.path()).map_err(|error| staging.explain(error)).and_then(|()| {
        job.report.checked(staging.check(settings, inputs)?);
        for class_path in &job.class_paths {
            job.report.warnings.extend(class_path.note(&staging));
        }
        let target = beside(staging.target());
        staging.commit()?;
        if table.is_file() { fs::rename(&table, &target).map_err(Error::io("write", &target)) } else { Ok(()) }
    });
    if let Err(error) = done {
        let _ = fs::remove_file(&table);
        return Err(error);
    }
    if job.report.artifacts.iter().all(|artifact| artifact.classes == 0) {
        job.report.warnings.push("no class was rewritten: the input holds none that can be".into());
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
fn file_name(path: &Path) -> Result<OsString, Error> {
    let given = std::path::absolute(path).map_err(Error::io("find", path))?;
    // `..` has none.
    let named = if given.file_name().is_some() { given } else { absolute(path)? };
    named.file_name().map(OsString::from).ok_or_else(|| Error::Input { path: named.clone(), why: "has no name".into() })
}

/// A single file goes into an existing folder under its own name, as with `cp`.
fn destination(inputs: &[PathBuf], output: &Path) -> Result<PathBuf, Error> {
    match inputs {
        [input] if input.is_file() && output.is_dir() => Ok(output.join(file_name(input)?)),
        _ => Ok(output.to_owned()),
    }
}

fn refuse_entangled(input: &Path, output: &Path) -> Result<(), Error> {
    let (from, to) = (absolute(input)?, absolute(output)?);
    let how = if from == to {
        "is the same as"
    } else if to.starts_with(&from) {
        "lies inside"
    } else if from.starts_with(&to) {
        "contains"
    } else {
        return Ok(());
    };
    Err(Error::Entangled { output: output.to_owned(), how, input: input.to_owned() })
}

pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::io("create", path))
}

pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(Error::io("write", path))
}

struct Job<'a> {
    settings: &'a Settings,
    blocks: Blocks,
    report: Report,
    class_paths: Vec<ClassPath>,
}

impl Job<'_> {
    fn all(&mut self, inputs: &[PathBuf], output: &Path) -> Result<(), Error> {
        if let [input] = inputs {
            return self.any(input, output);
        }
        create_folder(output)?;
        let mut names: Vec<OsString> = Vec::new();
        for input in inputs {
            let name = file_name(input)?;
            if names.contains(&name) {
                let name = name.to_string_lossy();
                return Err(Error::Usage(format!("two inputs are named {name}: instrument them one by one")));
            }
            self.any(input, &output.join(&name))?;
            names.push(name);
        }
        create_folder(&output.join(MARKS[0]))
    }

    fn any(&mut self, input: &Path, output: &Path) -> Result<(), Error> {
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

    /// A class by itself: nothing is left to copy if it cannot be rewritten, so that is an error.
    fn class(&mut self, input: &Path, bytes: &[u8], output: &Path) -> Result<(), Error> {
        let name = display_name(input);
        if bytes.is_empty() {
            return Err(Error::Input { path: input.to_owned(), why: "the file is empty".into() });
        }
        let class = [ClassInput { label: name.clone(), bytes: Ok(Cow::Borrowed(bytes)) }];
        let done =
            instrument(&class, &name, ArtifactKind::Application, self.settings, &mut self.blocks, |_, bytes| bytes)?;
        let out = match &done.outcomes[0] {
            Outcome::New(bytes) => bytes,
            Outcome::Same => bytes,
            Outcome::Skipped => {
                let why = done.report.skipped.first().map_or("not a class file", |skip| &skip.reason).to_owned();
                return Err(Error::Input { path: input.to_owned(), why });
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

    fn jar(&mut self, input: &Path, bytes: &[u8], name: &str, output: &Path) -> Result<ArtifactReport, Error> {
        let mut findings = Findings::new(self.settings.memory);
        let jar = Jar::scan(bytes, &input.display().to_string(), &mut findings)?;
        if let (true, Some(skip)) = (self.settings.strict, findings.skipped.first()) {
            return Err(Error::Strict { place: format!("{name}: {}", skip.entry), why: skip.reason.clone() });
        }
        let classes = jar.classes(&mut findings);
        let methods = jar.methods(findings.classes);
        let mut done =
            instrument(&classes, name, ArtifactKind::Application, self.settings, &mut self.blocks, |index, bytes| {
                Packed::new(bytes, methods[index])
            })?;
        self.report.bytes_in += bytes.len() as u64;
        if jar.touched(&done.outcomes) {
            let file = File::create(output).map_err(Error::io("create", output))?;
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

    fn folder(&mut self, input: &Path, output: &Path) -> Result<(), Error> {
        if input.join(ENTRY_IN_JAR).exists() || MARKS.iter().any(|mark| input.join(mark).exists()) {
            return Err(Error::AlreadyInstrumented { place: input.display().to_string() });
        }
        let content = Folder::list(input)?;
        if let (true, Some(skip)) = (self.settings.strict, content.left_out.first()) {
            return Err(Error::Strict { place: skip.entry.clone(), why: skip.reason.clone() });
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
                // What is no jar, and a JDK's own java.base in the middle of an application.
                Err(error @ (Error::Zip { .. } | Error::Input { .. })) if !self.settings.strict => {
                    let size = folder::copy(&from, &to)?;
                    self.report.bytes_in += size;
                    self.report.bytes_out += size;
                    let reason = match error {
                        Error::Zip { source, .. } => source.to_string(),
                        Error::Input { why, .. } => why,
                        other => other.to_string(),
                    };
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

    fn loose_classes(&mut self, input: &Path, content: &Folder, output: &Path) -> Result<ArtifactReport, Error> {
        let name = display_name(input);
        if content.classes.is_empty() {
            return Ok(ArtifactReport { name, ..ArtifactReport::default() });
        }
        let mut budget = self.settings.memory;
        let read = |path: &PathBuf| {
            let from = input.join(path);
            let bytes = class_bytes(&from, &mut budget).map_err(Error::io("read", &from))?;
            Ok(ClassInput { label: path.display().to_string(), bytes: bytes.map(Cow::Owned) })
        };
        let classes = content.classes.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
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
                Outcome::New(bytes) => bytes,
                Outcome::Same | Outcome::Skipped => &**original,
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

/// The bytes of a class file, or why it is none. Read, not mapped: a project has more class files than a process may have
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

fn unless_interrupted(output: &Path, source: io::Error) -> Error {
    match crate::interrupt::check() {
        Err(interrupted) => interrupted,
        Ok(()) => Error::io("write", output)(source),
    }
}
