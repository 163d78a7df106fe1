//! `cargo xtask assets`: bundles the JavaScript libraries of pages: for reports into the one file that each of them contains, for the explorer
//! into the one that it serves. The bundles are in the repository, so that building the tools does not require Node; this rebuilds them from
//! npm packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;
use crate::layout::Layout;

/// Inputs of npm and esbuild.
const SOURCES: [&str; 3] = ["package.json", "package-lock.json", "libraries.mjs"];
/// The files of a bundle.
pub const BUNDLED: [&str; 3] = ["libraries.js", "libraries.css", "LICENSES"];

/// The libraries of a page.
#[derive(Clone, Copy, Debug)]
pub struct Libraries {
    /// What has the page.
    pub of: &'static str,
    /// The folder of the page's files in the repository.
    pub folder: &'static str,
}

/// All bundles.
pub const LIBRARIES: [Libraries; 2] = [
    Libraries { of: "report", folder: "crates/report/assets" },
    Libraries { of: "explorer", folder: "crates/explorer/assets" },
];

/// Builds the bundles and puts them into the repository.
pub fn run(layout: &Layout) -> Result<()> {
    for libraries in LIBRARIES {
        libraries.bundle(layout, &layout.target.join("assets").join(libraries.of), &libraries.vendor(layout))?;
    }
    Ok(())
}

impl Libraries {
    /// The folder of the bundle in the repository.
    pub fn vendor(&self, layout: &Layout) -> PathBuf {
        layout.repo.join(self.folder).join("vendor")
    }

    /// Builds the bundle in the folder `to`; npm works in `work`.
    pub fn bundle(&self, layout: &Layout, work: &Path, to: &Path) -> Result<()> {
        for folder in [work, to] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        for name in SOURCES {
            let source = layout.repo.join(self.folder).join(name);
            fs::copy(&source, work.join(name)).with_context(|| format!("cannot copy {}", source.display()))?;
        }
        install(work)?;
        let mut esbuild = Command::new("node_modules/.bin/esbuild");
        esbuild.args(["libraries.mjs", "--bundle", "--minify", "--format=iife", "--global-name=libraries"]);
        esbuild.args(["--legal-comments=none", "--charset=ascii", "--target=es2020", "--log-level=warning"]);
        command::quiet(esbuild.arg("--outfile=libraries.js").current_dir(work))?;
        let licences = licences(work)?;
        let bundle = fs::read_to_string(work.join("libraries.js"))?;
        // Each page contains the licenses beside the code.
        fs::write(to.join("libraries.js"), format!("/*\n{}\n*/\n{bundle}", licences.replace("*/", "* /")))?;
        fs::copy(work.join("libraries.css"), to.join("libraries.css"))?;
        fs::write(to.join("LICENSES"), licences)?;
        Ok(())
    }
}

/// Installs the packages of a lock file without running their scripts.
pub fn install(folder: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    command::quiet(npm.current_dir(folder)).map(drop)
}

/// The licenses of the libraries in the bundle, each text once.
fn licences(work: &Path) -> Result<String> {
    let lock = fs::read_to_string(work.join("package-lock.json"))?;
    let lock: Value = serde_json::from_str(&lock).context("package-lock.json is not JSON")?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let packages = lock["packages"].as_object().context("package-lock.json names no packages")?;
    for (path, package) in packages.iter().filter(|(path, package)| !path.is_empty() && package["dev"] != true) {
        let folder = work.join(path);
        let file = fs::read_dir(&folder)?
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().to_uppercase().starts_with("LICEN"));
        let file = file.with_context(|| format!("{path} has no license file"))?;
        let title = format!(
            "{} {} ({})",
            path.trim_start_matches("node_modules/"),
            package["version"].as_str().unwrap_or_default(),
            package["license"].as_str().unwrap_or_default()
        );
        texts.entry(fs::read_to_string(file.path())?.trim().to_owned()).or_default().push(title);
    }
    let mut parts: Vec<String> =
        texts.into_iter().map(|(text, titles)| format!("{}\n\n{text}\n", titles.join("\n"))).collect();
    parts.sort();
    Ok(parts.join("\n----\n\n"))
}
