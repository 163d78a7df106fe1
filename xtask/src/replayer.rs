//! `cargo xtask replayer`: et-replay as one static program, for machine simulators.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::layout::Layout;

/// Symbols that mark the measured region; see docs/replay.md.
const REGION: [&str; 2] = ["et_replay_region_begin", "et_replay_region_end"];
/// The type of an ELF segment that names a dynamic loader.
const PT_INTERP: u32 = 3;

/// Builds it statically linked, and returns its path.
pub fn run(layout: &Layout) -> Result<PathBuf> {
    let version = command::read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let mut cargo = command::cargo(&layout.repo);
    // With an explicit target, the flags do not apply to build scripts and macros, which cannot be static.
    cargo.args(["build", "--release", "--locked", "-p", "et-replay", "--target", host, "--config"]);
    cargo.arg(format!("target.{host}.rustflags=['-C', 'target-feature=+crt-static', '-C', 'relocation-model=static']"));
    // These would override the flags above.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command::run(cargo.arg("--target-dir").arg(&layout.target))
        .context("linking statically needs the C library as an archive (libc.a, on Debian in libc6-dev)")?;
    let (built, folder) = (layout.target.join(host).join("release/et-replay"), layout.target.join("et/static"));
    let program = folder.join("et-replay");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::copy(&built, &program).with_context(|| format!("cannot write {}", program.display()))?;
    check(&program)?;
    eprintln!("built {}", program.display());
    Ok(program)
}

/// Checks that the program runs, needs no loader, and has the symbols.
fn check(program: &Path) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let segments = segments(&bytes).context("et-replay is not a 64-bit ELF program")?;
    ensure!(!segments.contains(&PT_INTERP), "et-replay is not static: it names a loader");
    for name in REGION {
        let is_there = bytes.windows(name.len()).any(|part| part == name.as_bytes());
        ensure!(is_there, "et-replay has no symbol {name}");
    }
    command::quiet(Command::new(program).arg("--version")).map(drop)
}

/// The types of an ELF file's segments.
fn segments(bytes: &[u8]) -> Option<Vec<u32>> {
    let is_elf = bytes.starts_with(b"\x7fELF\x02\x01");
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let begin = usize::try_from(u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
    let (size, count) = (half(54)?, half(56)?);
    let segment = |number: usize| {
        let at = begin.checked_add(number * size)?;
        Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    };
    if is_elf { (0..count).map(segment).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test has a loader, like any program not built as above.
    #[test]
    fn a_loader_is_found() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(segments(&own).unwrap().contains(&PT_INTERP));
        assert_eq!(segments(b"#!/bin/sh\n"), None);
        assert_eq!(segments(&own[..70]), None);
        let said = check(&std::env::current_exe().unwrap()).unwrap_err().to_string();
        assert_eq!(said, "et-replay is not static: it names a loader");
    }
}
