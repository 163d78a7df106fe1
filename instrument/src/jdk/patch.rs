//! The quick way for a JDK 9 or later: a jar per module for `--patch-module`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use et_names::{ArtifactKind, PATH_IN_JDK};

use super::{ARGS_FILE, JdkError, JdkHome, JdkJob, OWN_FOLDER, RUNTIME_PACKAGE, RuntimeDir, args_file, image, usage};
use crate::artifact::{Blocks, ClassOutcome, Settings, instrument};
use crate::container::jimage::Resource;
use crate::container::zip::{Packed, STORED, Writer};
use crate::files::{FileError, create_folder, write_file};
use crate::input::Input;
use crate::report::Report;
use crate::staging::Staging;

const BASE: &str = "java.base";

pub(super) fn patch(
    job: &JdkJob,
    home: &JdkHome,
    image_path: &Path,
    modules: &[String],
    runtime: &RuntimeDir,
    staging: &Staging,
    settings: &Settings,
) -> Result<Report, JdkError> {
    let bytes = Input::open(image_path)?;
    let (image, feature) = image::open(&bytes, image_path)?;
    let proxies = runtime.classes(feature)?;
    let fail = |source| JdkError::Image { path: image_path.to_owned(), source };
    let resources = image.resources().map_err(fail)?;
    image.refuse_cut_off(&resources).map_err(fail)?;

    // HeapProxy has to get into java.base whatever is asked for.
    let mut wanted = vec![BASE];
    for module in modules {
        if !resources.iter().any(|resource| resource.module == *module) {
            return Err(JdkError::NoModule { home: job.home.clone(), module: module.clone() });
        }
        if !wanted.contains(&module.as_str()) {
            wanted.push(module);
        }
    }
    // A patch cannot replace the module's descriptor.
    let selected: Vec<&Resource> = resources
        .iter()
        .filter(|resource| resource.is_class() && wanted.contains(&resource.module.as_str()))
        .filter(|resource| resource.path() != "module-info.class")
        .collect();
    let inputs = image::classes(&image, &selected);
    let name = format!("{} ({})", home.name(), wanted.join(", "));
    let done = instrument(&inputs, &name, ArtifactKind::Jdk, settings, &mut Blocks::new(job.id_base), |_, bytes| {
        Packed::new(bytes, STORED)
    })?;

    let out = staging.path();
    create_folder(&out.join(OWN_FOLDER))?;
    let mut report = Report { bytes_in: bytes.len() as u64, ..Report::default() };
    let mut options = Vec::new();
    for module in &wanted {
        let path = out.join(format!("{module}.jar"));
        let file = File::create(&path).map_err(FileError::at("create", &path))?;
        let write = || {
            let mut writer = Writer::new(BufWriter::new(file));
            for (resource, outcome) in selected.iter().zip(&done.outcomes) {
                if resource.module == *module
                    && let ClassOutcome::New(packed) = outcome
                {
                    writer.add(resource.path(), packed)?;
                }
            }
            if *module == BASE {
                for (class, bytes) in &proxies {
                    let entry = format!("{RUNTIME_PACKAGE}/{class}.class");
                    writer.add(&entry, &Packed::new(bytes.clone(), STORED))?;
                }
            }
            let (mut file, size) = writer.finish(&[])?;
            file.flush().map(|()| size)
        };
        report.bytes_out += write().map_err(FileError::at("write", &path))?;
        let target = staging.target().join(format!("{module}.jar"));
        options.push(format!("--patch-module={module}={}", target.display()));
    }
    let names = done.names.encode();
    write_file(&out.join(PATH_IN_JDK), &names)?;
    report.bytes_out += names.len() as u64 + runtime.copy_native(&out.join(OWN_FOLDER))?;
    write_file(&out.join(ARGS_FILE), args_file::text(staging.target(), feature, &options).as_bytes())?;
    report.artifacts.push(done.report);
    let java = home.path.join("bin/java");
    report.notes.push(usage(&java, staging));
    Ok(report)
}
