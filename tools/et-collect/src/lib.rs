//! `et-collect`: replays an operations file under one of MMTk's collectors in one heap and prints the result as JSON.
//! `et-replay collect` starts it once per plan and heap, because MMTk's state is global.

mod binding;
mod check;
mod counters;
mod door;
mod error;
mod log;
mod object;
mod program;
mod table;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use et_simulate::mmtk::{CHECK_FAILED, MmtkOption, Plan, TOO_SMALL};
use et_simulate::ops::OpsReader;

use error::CollectError;

/// Plays the operations file on standard input to one of MMTk's collectors. Started by et-replay collect.
#[derive(Debug, Parser)]
#[command(name = "et-collect", version)]
struct Cli {
    /// The collector
    #[arg(long)]
    plan: Plan,
    /// Bytes of the heap
    #[arg(long)]
    heap: u64,
    /// Size of the nursery of generational plans
    #[arg(long)]
    nursery: Option<u64>,
    /// Number of collector threads
    #[arg(long, default_value_t = 1)]
    gc_threads: usize,
    /// Collect each time this many bytes have been allocated
    #[arg(long)]
    stress: Option<u64>,
    /// Check the whole heap after each collection
    #[arg(long)]
    check: bool,
    /// Options of MMTk
    #[arg(long)]
    mmtk: Vec<MmtkOption>,
    /// Tell nothing of old objects that young ones are stored into
    #[cfg(feature = "faults")]
    #[arg(long)]
    forget_stores: bool,
}

/// Runs the command. The exit code distinguishes a heap that is too small and a failed check.
pub fn main() -> ExitCode {
    // If a thread of MMTk panicked without ending the process, the others would wait for it forever.
    std::panic::set_hook(Box::new(|panic| {
        // NoGC reports a full heap only by a panic.
        if let Some(world) = binding::world::get().filter(|world| world.options.plan == Plan::NoGC) {
            world.too_small();
        }
        error::exit(1, &format!("MMTk gave up: {}; another heap size may work", error::of_panic(panic)));
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return et_cli::refuse::<Cli>(error),
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = match error {
                CollectError::TooSmall { .. } => TOO_SMALL,
                CollectError::Lost(_) | CollectError::Final { .. } => CHECK_FAILED,
                _ => 1,
            };
            error::exit(code, &error.to_string())
        }
    }
}

fn run(cli: &Cli) -> Result<(), CollectError> {
    let mut ops = OpsReader::open(Path::new("/dev/stdin"))?;
    let options = binding::world::Options {
        plan: cli.plan,
        heap: cli.heap,
        nursery: cli.nursery,
        gc_threads: cli.gc_threads.max(1),
        stress: cli.stress,
        is_checking: cli.check,
        #[cfg(feature = "faults")]
        forgets_stores: cli.forget_stores,
        #[cfg(not(feature = "faults"))]
        forgets_stores: false,
    };
    let report = program::run(&mut ops, options, &cli.mmtk)?;
    println!("{}", serde_json::to_string(&report).unwrap_or_default());
    Ok(())
}
