//! The Debian packages required by a program, according to the symbol versions that it is linked with.
//!
//! `dpkg-shlibdeps` does the same, but is not installed everywhere; for the few libraries here, `objdump` is enough.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// Libraries: their Debian package, and the prefix of their symbol versions.
const PACKAGES: [(&str, &str, &str); 5] = [
    ("libc.so.6", "libc6", "GLIBC_"),
    ("libm.so.6", "libc6", "GLIBC_"),
    ("ld-linux-x86-64.so.2", "libc6", "GLIBC_"),
    ("ld-linux-aarch64.so.1", "libc6", "GLIBC_"),
    ("libgcc_s.so.1", "libgcc-s1", "GCC_"),
];

/// A version as a list of numbers, for comparison.
pub(super) type Version = Vec<u32>;

/// The value of `Depends`.
pub(super) fn of(files: &[PathBuf]) -> Result<String> {
    let needed = all(files)?;
    let packages = needed.iter().map(|(package, version)| {
        let numbers: Vec<String> = version.iter().map(u32::to_string).collect();
        if numbers.is_empty() { (*package).to_owned() } else { format!("{package} (>= {})", numbers.join(".")) }
    });
    Ok(packages.collect::<Vec<_>>().join(", "))
}

/// The oldest version of the C library that has all symbols, as in `[2, 34]`.
pub(super) fn c_library(files: &[PathBuf]) -> Result<Version> {
    all(files)?.remove("libc6").filter(|version| version.len() > 1).context("no program needs the C library")
}

fn all(files: &[PathBuf]) -> Result<BTreeMap<&'static str, Version>> {
    let mut needed = BTreeMap::new();
    for file in files {
        let mut objdump = Command::new("objdump");
        let text = command::read(objdump.env("LC_ALL", "C").arg("--private-headers").arg(file))?;
        add(&mut needed, &text).with_context(|| format!("{}", file.display()))?;
    }
    Ok(needed)
}

fn add(needed: &mut BTreeMap<&'static str, Version>, headers: &str) -> Result<()> {
    let mut current = None;
    for line in headers.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["NEEDED", library] => _ = needed.entry(package(library)?.0).or_default(),
            ["required", "from", library] => current = Some(package(library.trim_end_matches(':'))?),
            [_hash, _flags, _index, symbols] => {
                let Some((package, prefix)) = current else { continue };
                let version = symbols.strip_prefix(prefix).and_then(parsed);
                let newest = needed.entry(package).or_default();
                *newest = newest.clone().max(version.unwrap_or_default());
            }
            _ => current = None,
        }
    }
    Ok(())
}

fn package(library: &str) -> Result<(&'static str, &'static str)> {
    let found = PACKAGES.iter().find(|(name, ..)| *name == library);
    let (_, package, prefix) =
        found.with_context(|| format!("it needs {library}, for which xtask/src/dist/needs.rs has no package"))?;
    Ok((package, prefix))
}

fn parsed(version: &str) -> Option<Version> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: &str = "
Dynamic Section:
  NEEDED               libgcc_s.so.1
  NEEDED               libm.so.6
  NEEDED               libc.so.6

Version References:
  required from libgcc_s.so.1:
    0x0b792653 0x00 24 GCC_3.3
    0x09276060 0x00 25 GCC_4.2.0
  required from libm.so.6:
    0x06969189 0x00 09 GLIBC_2.29
  required from libc.so.6:
    0x0d696919 0x00 15 GLIBC_2.9
    0x069691b4 0x00 02 GLIBC_2.34
    0x0963cf85 0x00 03 GLIBC_PRIVATE
";

    #[test]
    fn the_newest_symbol_decides() {
        let mut needed = BTreeMap::new();
        add(&mut needed, HEADERS).unwrap();
        assert_eq!(needed, BTreeMap::from([("libc6", vec![2, 34]), ("libgcc-s1", vec![4, 2, 0])]));
    }

    #[test]
    fn an_unknown_library_is_not_passed_over() {
        let error = add(&mut BTreeMap::new(), "  NEEDED               libssl.so.3\n").unwrap_err().to_string();
        assert!(error.contains("libssl.so.3"), "{error}");
    }
}
