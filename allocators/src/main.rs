//! `et-allocate`: plays an operations file to one of the allocators that are linked into it, and prints what it came to as JSON. `et-replay
//! allocate` starts it once for each.

mod raw;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use et_replay::allocate::{AllocateError, AllocateReport, allocate};
use et_replay::ops::OpsReader;
use raw::{Jemalloc, Linked, Mimalloc, Snmalloc};

/// Plays the operations file on standard input to an allocator. Started by et-replay allocate.
#[derive(Debug, Parser)]
#[command(name = "et-allocate", version)]
struct Cli {
    /// The allocator
    #[arg(long)]
    allocator: Name,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Jemalloc,
    Mimalloc,
    Snmalloc,
}

fn main() -> ExitCode {
    match run(Cli::parse().allocator) {
        Ok(report) => {
            println!("{}", serde_json::to_string(&[report]).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("et-allocate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: Name) -> Result<AllocateReport, AllocateError> {
    let mut ops = OpsReader::open(Path::new("/dev/stdin"))?;
    match name {
        Name::Jemalloc => allocate::<Linked<Jemalloc>>(&mut ops, "jemalloc"),
        Name::Mimalloc => allocate::<Linked<Mimalloc>>(&mut ops, "mimalloc"),
        Name::Snmalloc => allocate::<Linked<Snmalloc>>(&mut ops, "snmalloc"),
    }
}
