//! JDK 8: instrumented copies of the boot jars, which precede the originals on the boot class path.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use et_names::{ArtifactKind, EventSet, PATH_IN_JDK};
use rayon::prelude::*;

use super::runtime_dir::RuntimeClass;
use super::{ARGS_FILE, JdkError, JdkHome, JdkJob, OWN_FOLDER, RUNTIME_PACKAGE, RuntimeDir, args_file, home, quoted};
use crate::artifact::{Blocks, ClassInput, ClassOutcome, Settings, instrument};
use crate::container::class_file;
use crate::container::zip::{Archive, Entry, Packed, STORED, Writer};
use crate::files::{FileError, create_folder, write_file};
use crate::input::Input;
use crate::report::Report;
use crate::staging::Staging;

/// The jars with classes on the boot class path of JDK 8. Not `jce.jar`: it is signed, and some builds verify that at
/// run time.
const BOOT_JARS: [&str; 6] = ["rt", "sunrsasign", "jsse", "charsets", "jfr", "management-agent"];

struct BootJar {
    name: &'static str,
    bytes: Input,
    archive: Archive,
}

impl BootJar {
    fn classes(&self) -> impl Iterator<Item = &Entry> {
        self.archive.entries.iter().filter(|entry| class_file::has_class_name(entry.name.as_ref()))
    }

    /// Writes the instrumented classes and those of the runtime; returns the number of bytes. Only classes: resources
    /// and services would be found twice.
    fn write<'o>(
        &self,
        file: BufWriter<File>,
        outcomes: &mut impl Iterator<Item = &'o ClassOutcome<Packed>>,
        proxies: &[RuntimeClass],
    ) -> io::Result<u64> {
        let mut writer = Writer::new(file);
        for (entry, outcome) in self.classes().zip(outcomes) {
            if let ClassOutcome::New(packed) = outcome {
                writer.replace(entry, &self.bytes, packed)?;
            }
        }
        for (class, bytes) in proxies {
            writer.add(&format!("{RUNTIME_PACKAGE}/{class}.class"), &Packed::new(bytes.clone(), STORED))?;
        }
        let (mut file, size) = writer.finish(&[])?;
        file.flush().map(|()| size)
    }
}

/// The boot jars that the JDK has.
fn boot_jars(lib: &Path) -> Result<Vec<BootJar>, JdkError> {
    let mut jars = Vec::new();
    for name in BOOT_JARS {
        let path = lib.join(format!("{name}.jar"));
        if path.is_file() {
            let bytes = Input::open(&path)?;
            let archive = Archive::read(&bytes).map_err(|source| JdkError::Zip { path: path.clone(), source })?;
            jars.push(BootJar { name, bytes, archive });
        }
    }
    Ok(jars)
}

pub(super) fn prepend(
    job: &JdkJob,
    home: &JdkHome,
    lib: &Path,
    runtime: &RuntimeDir,
    staging: &Staging,
    settings: &Settings,
) -> Result<Report, JdkError> {
    if settings.events.has(EventSet::STACKS) {
        return Err(JdkError::NoStacks { home: job.home.clone() });
    }
    let jars = boot_jars(lib)?;
    let feature = release(&jars).ok_or_else(|| JdkError::Home {
        home: job.home.clone(),
        why: "its rt.jar contains no readable java/lang/Object.class".into(),
    })?;
    let proxies = runtime.classes(feature)?;

    let entries: Vec<(&BootJar, &Entry)> =
        jars.iter().flat_map(|jar| jar.classes().map(move |entry| (jar, entry))).collect();
    let inputs: Vec<ClassInput<'_>> = entries
        .par_iter()
        .map(|(jar, entry)| ClassInput {
            label: format!("{}.jar!/{}", jar.name, entry.name),
            bytes: entry.content(&jar.bytes).map_err(|error| error.to_string()),
        })
        .collect();
    let done =
        instrument(&inputs, &home.name(), ArtifactKind::Jdk, settings, &mut Blocks::new(job.id_base), |_, bytes| {
            // Stored, as rt.jar is in most builds: every start of the JVM reads it.
            Packed::new(bytes, STORED)
        })?;

    let out = staging.path();
    create_folder(&out.join(OWN_FOLDER))?;
    let mut report = Report::default();
    let mut outcomes = done.outcomes.iter();
    let mut boot = String::from("-Xbootclasspath/p");
    for jar in &jars {
        let file_name = format!("{}-et.jar", jar.name);
        let path = out.join(&file_name);
        let file = File::create(&path).map_err(FileError::at("create", &path))?;
        report.bytes_in += jar.bytes.len() as u64;
        let proxies = if jar.name == "rt" { proxies.as_slice() } else { &[] };
        let written = jar.write(BufWriter::new(file), &mut outcomes, proxies);
        report.bytes_out += written.map_err(FileError::at("write", &path))?;
        boot.push(':');
        boot.push_str(&staging.target().join(&file_name).display().to_string());
    }
    let names = done.names.encode();
    write_file(&out.join(PATH_IN_JDK), &names)?;
    report.bytes_out += names.len() as u64 + runtime.copy_native(&out.join(OWN_FOLDER))?;
    let args = args_file::text(staging.target(), feature, &[boot]);
    write_file(&out.join(ARGS_FILE), args.as_bytes())?;
    report.artifacts.push(done.report);
    let args = staging.target().join(ARGS_FILE);
    let args = quoted(&args.display().to_string());
    report.notes.push(format!("run with: java $(cat {args}) -Det.traceFile=app.ettrace -jar app-et.jar"));
    report.notes.push("(JDK 8 does not read @files; et.args contains plain options)".into());
    if lib.join("jce.jar").is_file() {
        report.notes.push("jce.jar is left unchanged: it is signed".into());
    }
    Ok(report)
}

fn release(jars: &[BootJar]) -> Option<u16> {
    let rt = jars.iter().find(|jar| jar.name == "rt")?;
    let object = rt.classes().find(|entry| entry.name == "java/lang/Object.class")?;
    home::feature_release(&object.content(&rt.bytes).ok()?)
}
