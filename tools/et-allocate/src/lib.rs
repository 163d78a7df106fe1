//! `et-allocate`: replays an operations file with one of the allocators linked into it and prints the result as JSON.
//! `et-replay allocate` and `et-replay cache` start it once per allocator.

mod raw;

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use et_cli::Program;
use et_simulate::allocate::{AllocateError, Allocator, allocate};
use et_simulate::cache::{CacheSpec, under};
use et_simulate::ops::OpsReader;
use raw::{Jemalloc, Linked, Mimalloc, Snmalloc};
use serde_json::Value;

/// Plays the operations file on standard input to an allocator. Started by et-replay.
#[derive(Debug, Parser)]
#[command(name = "et-allocate", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
    /// The allocator
    #[arg(long, global = true, default_value = "jemalloc")]
    allocator: Name,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measures time and memory
    Allocate,
    /// Simulates caches
    Cache(Caches),
}

#[derive(Debug, Args)]
struct Caches {
    /// A level
    #[arg(long = "cache", value_name = "NAME=BYTES,WAYS,LINE")]
    caches: Vec<CacheSpec>,
    /// Entries of a TLB
    #[arg(long)]
    tlb: Option<u64>,
    /// How many classes and sites to list
    #[arg(long, default_value_t = 10)]
    top: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Jemalloc,
    Mimalloc,
    Snmalloc,
}

/// Runs the command.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return et_cli::refuse::<Cli>(error),
    };
    match run(&cli) {
        Ok(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            Program("et-allocate").say(format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<Value, AllocateError> {
    match cli.allocator {
        Name::Jemalloc => on::<Linked<Jemalloc>>("jemalloc", &cli.task),
        Name::Mimalloc => on::<Linked<Mimalloc>>("mimalloc", &cli.task),
        Name::Snmalloc => on::<Linked<Snmalloc>>("snmalloc", &cli.task),
    }
}

fn on<A: Allocator>(name: &str, task: &Task) -> Result<Value, AllocateError> {
    let mut ops = OpsReader::open(Path::new("/dev/stdin"))?;
    // Strings, numbers and lists: their conversion to JSON cannot fail.
    Ok(match task {
        Task::Allocate => serde_json::to_value([allocate::<A>(&mut ops, name)?]),
        Task::Cache(caches) => {
            serde_json::to_value(under::<A>(&mut ops, name, &caches.caches, caches.tlb, caches.top)?)
        }
    }
    .unwrap_or_default())
}
