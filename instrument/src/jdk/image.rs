//! JDK 9 or later: a copy of the JDK whose `lib/modules` is completely instrumented.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use et_names::{ArtifactKind, PATH_IN_JDK};
use rayon::prelude::*;

use super::{
    ARGS_FILE, JdkError, JdkHome, JdkJob, OWN_FOLDER, RUNTIME_PACKAGE, RuntimeDir, args_file, cds, copy, home, quoted,
    usage,
};
use crate::archives;
use crate::artifact::{AlreadyInstrumented, Blocks, ClassInput, ClassOutcome, Settings, instrument};
use crate::container::jimage::{Image, ImageError, ImageWriter, Resource};
use crate::files::{FileError, create_folder, write_file};
use crate::input::Input;
use crate::report::Report;
use crate::staging::Staging;

/// Options that every JVM of an image begins with (`jlink --add-options`): module, package and name of the resource.
const OWN_OPTIONS: (&str, &str, &str) = ("java.base", "jdk/internal/vm", "options");

/// An image that may be rewritten, and which release it is of.
pub(super) fn open<'a>(bytes: &'a [u8], path: &Path) -> Result<(Image<'a>, u16), JdkError> {
    let fail = |source| JdkError::Image { path: path.to_owned(), source };
    let image = Image::read(bytes).map_err(fail)?;
    if image.find("/java.base/java/lang/HeapProxy.class").map_err(fail)?.is_some() {
        return Err(AlreadyInstrumented { place: path.display().to_string() }.into());
    }
    let object = image.find("/java.base/java/lang/Object.class").map_err(fail)?;
    let object = object.ok_or_else(|| fail(ImageError::Damaged("it contains no java.lang.Object")))?;
    let feature = home::feature_release(&image.content(&object).map_err(fail)?);
    Ok((image, feature.ok_or_else(|| fail(ImageError::Damaged("its java.lang.Object is not a class")))?))
}

/// The classes among `resources`, decompressed.
pub(super) fn classes<'a>(image: &Image<'a>, resources: &[&Resource]) -> Vec<ClassInput<'a>> {
    let read = |resource: &&Resource| ClassInput {
        label: resource.name.clone(),
        bytes: image.content(resource).map_err(|error| error.to_string()),
    };
    resources.par_iter().map(read).collect()
}

pub(super) fn copy(
    job: &JdkJob,
    home: &JdkHome,
    image_path: &Path,
    runtime: &RuntimeDir,
    staging: &Staging,
    settings: &Settings,
) -> Result<Report, JdkError> {
    let fail = |source| JdkError::Image { path: image_path.to_owned(), source };
    let bytes = Input::open(image_path)?;
    let (image, feature) = open(&bytes, image_path)?;
    let proxies = runtime.classes(feature)?;
    let resources = image.resources().map_err(fail)?;
    image.refuse_cut_off(&resources).map_err(fail)?;

    let out = staging.path();
    settings.progress.stage("copying the JDK");
    create_folder(&out.join(OWN_FOLDER))?;
    let copied = copy::copy_home(&home.path, out)?;

    let indexes: Vec<usize> = (0..resources.len()).filter(|index| resources[*index].is_class()).collect();
    let inputs = classes(&image, &indexes.iter().map(|index| &resources[*index]).collect::<Vec<_>>());
    let done =
        instrument(&inputs, &home.name(), ArtifactKind::Jdk, settings, &mut Blocks::new(job.id_base), |_, bytes| {
            bytes
        })?;
    drop(inputs);

    settings.progress.stage("writing lib/modules");
    let (module, package, name) = OWN_OPTIONS;
    let path = format!("/{module}/{package}/{name}");
    let given = resources.iter().position(|resource| resource.name == path);
    let given_text = given.map(|index| Ok(image.content(&resources[index])?.into_owned())).transpose().map_err(fail)?;
    let mut writer = ImageWriter::new(image, resources);
    let (own_options, left_out) = own_options(given_text, job.children.then_some(feature));
    match given {
        Some(index) => writer.replace(index, own_options),
        None if job.children => writer.add_file(module, package, name, own_options).map_err(fail)?,
        None => {}
    }
    for (index, outcome) in indexes.into_iter().zip(done.outcomes) {
        if let ClassOutcome::New(bytes) = outcome {
            writer.replace(index, bytes);
        }
    }
    let proxy_names: Vec<String> = proxies.iter().map(|(class, _)| format!("{RUNTIME_PACKAGE}/{class}")).collect();
    for (class, bytes) in proxies {
        writer.add_class("java.base", RUNTIME_PACKAGE, &class, bytes).map_err(fail)?;
    }
    let size = write_image(writer, &out.join("lib/modules"), fail)?;

    let names = done.names.encode();
    write_file(&out.join(PATH_IN_JDK), &names)?;
    let native = runtime.copy_native(&out.join(OWN_FOLDER))?;
    RuntimeDir::link_agent(out)?;
    write_file(&out.join(ARGS_FILE), args_file::text(staging.target(), feature, &[]).as_bytes())?;

    let mut report = Report {
        bytes_in: bytes.len() as u64,
        bytes_out: size + names.len() as u64 + native + copied.bytes,
        ..Report::default()
    };
    report.artifacts.push(done.report);
    report
        .notes
        .push(format!("JDK {feature}: {} files shared with the original, {} copied", copied.linked, copied.copied));
    if let Some(options) = left_out {
        report
            .notes
            .push(format!("{options} removed from the image's own options: archives do not work in a traced run"));
    }
    for skip in copied.skipped {
        report.notes.push(format!("left out: {}: {}", skip.entry, skip.reason));
    }
    if job.cds {
        settings.progress.stage("dumping the CDS archive");
        report.notes.push(dump_archive(out, feature, &proxy_names)?);
    }
    if job.children {
        enter_agent(&out.join("lib/modules"))?;
    }
    let java = staging.target().join("bin/java");
    if out.join("bin/java").is_file() {
        report.notes.push(usage(&java, staging));
    } else {
        let args = quoted(&staging.target().join(ARGS_FILE).display().to_string());
        let advice = "it has no bin/java: put it in place of the application's runtime, and start the application with";
        report
            .notes
            .push(format!("{advice} JAVA_TOOL_OPTIONS=\"$(tr '\\n' ' ' < {args}) -Det.traceFile=app.ettrace\""));
    }
    report.notes.push("runs without et.args are not traced".into());
    if home.path.join("bin/jlink").is_file() {
        let advice =
            "jlink with the copy makes an image without hooks: link with the original, then instrument the image";
        report.notes.push(advice.into());
    }
    Ok(report)
}

/// What the image's own options become: those that it has, if any, without those about archives (which are returned, too), and
/// those with which the JVMs of this release are traced that a traced program starts.
fn own_options(given: Option<Vec<u8>>, children: Option<u16>) -> (Vec<u8>, Option<String>) {
    let mut options = given.unwrap_or_default();
    let less = str::from_utf8(&options).ok().and_then(archives::without);
    let left_out = less.map(|(text, left_out)| {
        options = text.into_bytes();
        left_out.join(" ")
    });
    if let Some(feature) = children {
        options.extend_from_slice(args_file::for_children(feature, &room_for_agent()).as_bytes());
    }
    (options, left_out)
}

/// Keeps the place of the agent in the image's own options: no archive can be dumped by a JVM with a native agent, and an archive is
/// only good for an image of the same size.
fn room_for_agent() -> String {
    format!("{:-<width$}", "-Det.", width = args_file::agent_of_children().len())
}

/// Puts the agent into its place, when the archive has been dumped.
fn enter_agent(path: &Path) -> Result<(), JdkError> {
    let fail = |source| JdkError::Image { path: path.to_owned(), source };
    let bytes = Input::open(path)?;
    let image = Image::read(&bytes).map_err(fail)?;
    let (module, package, name) = OWN_OPTIONS;
    let resource = image.find(&format!("/{module}/{package}/{name}")).map_err(fail)?;
    let resource = resource.ok_or_else(|| fail(ImageError::Damaged("it has no options of its own")))?;
    let content = image.content(&resource).map_err(fail)?;
    let room = memchr::memmem::find(&content, room_for_agent().as_bytes());
    let room = room.ok_or_else(|| fail(ImageError::Damaged("its own options have no place for the agent")))?;
    // What has been written is not compressed, so the content is part of the file.
    let at = content[room..].as_ptr().addr() - bytes.as_ptr().addr();
    drop(content);
    drop(bytes);
    let file = File::options().write(true).open(path).map_err(FileError::at("open", path))?;
    file.write_all_at(args_file::agent_of_children().as_bytes(), at as u64).map_err(FileError::at("write", path))?;
    Ok(())
}

fn write_image(
    writer: ImageWriter<'_>,
    path: &Path,
    fail: impl FnOnce(ImageError) -> JdkError,
) -> Result<u64, JdkError> {
    let file = File::create(path).map_err(FileError::at("create", path))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let written = writer.write(&mut file).map_err(fail)?.and_then(|size| file.flush().map(|()| size));
    crate::interrupt::check()?;
    Ok(written.map_err(FileError::at("write", path))?)
}

/// Dumps the class data sharing archive, if there can be one; what there is to say of it.
fn dump_archive(out: &Path, feature: u16, proxies: &[String]) -> Result<String, JdkError> {
    let Some(starter) = cds::Starter::of(out) else {
        let why = "no CDS archive: the image has no launcher to dump it with, so programs start more slowly";
        return Ok(format!("{why}; copy bin/java of a JDK {feature} into the original's bin to get one"));
    };
    Ok(match cds::dump(out, &starter, feature, proxies)? {
        Some(archive) => {
            let name = archive.path.strip_prefix(out).unwrap_or(&archive.path).display();
            let serves = if archive.for_default_collector { "" } else { "; it serves runs with -XX:+UseZGC only" };
            format!("dumped {name} in {:.1} s{serves}", archive.time.as_secs_f64())
        }
        None => "no CDS archive: this JDK cannot dump one without heap objects, whose ids would not be unique".into(),
    })
}
