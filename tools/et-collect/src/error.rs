//! Why a replay failed.

use std::panic::PanicHookInfo;
use std::path::Path;

use et_cli::Program;
use et_simulate::mmtk::Plan;
use et_simulate::ops::OpsError;
use thiserror::Error;

const PROGRAM: Program = Program("et-collect");

#[derive(Debug, Error)]
pub enum CollectError {
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("a heap of {heap}{nursery} is too small for {plan}: at operation {operation} there is no room for an object of {wanted}", heap = bytes(*heap), nursery = with_nursery(*nursery), plan = plan.name(), wanted = bytes(*wanted))]
    TooSmall { plan: Plan, heap: u64, nursery: Option<u64>, operation: u64, wanted: u64 },
    #[error("a heap of {heap} is larger than the {most} available", heap = bytes(*heap), most = bytes(*most))]
    TooLargeHeap { heap: u64, most: u64 },
    #[error("MMTk rejects {option} {value}")]
    Option { option: String, value: String },
    #[error("an object of {size} is larger than what can be replayed", size = bytes(*size))]
    TooLarge { size: u64 },
    /// A collection lost an object or a reference.
    #[error("{0}")]
    Lost(String),
    /// The final collection did not reach exactly the live objects and bytes.
    #[error(
        "{plan}: the last collection reached {objects} objects of {bytes} bytes, and {alive_objects} of {alive_bytes} bytes are alive", plan = plan.name()
    )]
    Final { plan: Plan, objects: u64, bytes: u64, alive_objects: u64, alive_bytes: u64 },
}

fn with_nursery(nursery: Option<u64>) -> String {
    nursery.map_or(String::new(), |nursery| format!(" with a nursery of {}", bytes(nursery)))
}

fn bytes(number: u64) -> String {
    et_names::units::bytes(number)
}

/// Message and location of a panic, without directories of the build machine.
pub fn of_panic(panic: &PanicHookInfo<'_>) -> String {
    let said = panic.payload_as_str().unwrap_or("it does not say why").replace('\n', " ");
    match panic.location() {
        Some(at) => {
            let file = Path::new(at.file()).file_name().map_or("".into(), |name| name.to_string_lossy());
            format!("{said} ({file}, line {})", at.line())
        }
        None => said,
    }
}

/// Ends the process from any thread, with a one-line message.
pub fn exit(code: u8, said: &str) -> ! {
    PROGRAM.say(format_args!("{said}"));
    std::process::exit(code.into())
}
