//! What the packages contain, as a CycloneDX list for tools that look for known weaknesses and for licences.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use cyclonedx_bom::external_models::uri::{Purl, Uri};
use cyclonedx_bom::models::bom::{Bom, SpecVersion};
use cyclonedx_bom::models::component::{Classification, Component, Components};
use cyclonedx_bom::models::external_reference::{ExternalReference, ExternalReferenceType, ExternalReferences};
use cyclonedx_bom::models::license::{LicenseChoice, Licenses};
use cyclonedx_bom::models::metadata::Metadata;
use cyclonedx_bom::validation::Validate;

use super::{NAME, VERSION};

/// Name of the file.
pub(super) const FILE: &str = "elephant-tracks.cdx.json";

/// A package with its license.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: String,
    pub(super) authors: String,
    pub(super) repository: String,
    pub(super) folder: PathBuf,
}

/// The list: Rust crates, the Rust standard library, and the libraries of report pages (`name version (licence)`, one a line up to an
/// empty one).
pub(super) fn text(crates: &BTreeSet<Package>, rust: &str, of_pages: &str) -> Result<String> {
    let mut all = vec![component("rust-std", rust, "MIT OR Apache-2.0", "https://github.com/rust-lang/rust", None)?];
    for package in crates {
        // An old way to write OR.
        let licence = package.licence.replace('/', " OR ");
        all.push(component(&package.name, &package.version, &licence, &package.repository, Some("cargo"))?);
    }
    for line in of_pages.lines().take_while(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next(), words.next());
        let licence = line.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let (Some(name), Some(version), Some(licence)) = (name, version, licence) else {
            anyhow::bail!("not a library with its version and licence: {line}");
        };
        all.push(component(name, version, licence, "", Some("npm"))?);
    }
    let mut product = Component::new(Classification::Application, NAME, VERSION, Some(NAME.to_owned()));
    product.licenses = Some(Licenses(vec![LicenseChoice::expression("Apache-2.0")]));
    let metadata = Metadata { component: Some(product), ..Metadata::default() };
    // The same content gives the same file: no time and no random number.
    let bom =
        Bom { serial_number: None, metadata: Some(metadata), components: Some(Components(all)), ..Bom::default() };
    let problems = bom.validate_version(SpecVersion::V1_5);
    ensure!(problems.passed(), "the list of components is not valid: {problems:?}");
    let mut json = Vec::new();
    bom.output_as_json_v1_5(&mut json).context("cannot write the list of components")?;
    Ok(String::from_utf8(json)? + "\n")
}

fn component(name: &str, version: &str, licence: &str, source: &str, registry: Option<&str>) -> Result<Component> {
    let purl = registry.map(|kind| Purl::new(kind, name, version)).transpose();
    let purl = purl.with_context(|| format!("{name} {version} has no package URL"))?;
    let reference = registry.map_or_else(|| name.to_owned(), |kind| format!("{kind}:{name}@{version}"));
    let mut component = Component::new(Classification::Library, name, version, Some(reference));
    component.purl = purl;
    if !licence.is_empty() {
        component.licenses = Some(Licenses(vec![LicenseChoice::expression(licence)]));
    }
    if !source.is_empty() {
        let reference = ExternalReference::new(ExternalReferenceType::Vcs, Uri::new(source));
        component.external_references = Some(ExternalReferences(vec![reference]));
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_libraries_are_listed_with_version_and_licence() {
        let package = Package {
            name: "zip".into(),
            version: "9.4.1".into(),
            licence: "MIT/Apache-2.0".into(),
            authors: String::new(),
            repository: "https://example.org/zip".into(),
            folder: "/x".into(),
        };
        let packages = BTreeSet::from([package]);
        let made = || text(&packages, "1.95.0", "d3-array 3.2.5 (ISC)\n\ntexts").unwrap();
        let list = made();
        assert_eq!(list, made(), "it can be made again");
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        assert_eq!((&list["bomFormat"], &list["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
        assert_eq!(list["metadata"]["component"]["version"], VERSION);
        let urls: Vec<&str> =
            list["components"].as_array().unwrap().iter().filter_map(|one| one["purl"].as_str()).collect();
        assert_eq!(urls, ["pkg:cargo/zip@9.4.1", "pkg:npm/d3-array@3.2.5"]);
        assert_eq!(list["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert!(text(&packages, "1.95.0", "d3-array").is_err());
    }
}
