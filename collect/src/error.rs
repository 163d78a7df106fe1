//! Why a replay ended early.

use et_replay::collect::Plan;
use et_replay::ops::OpsError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum CollectError {
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("a heap of {heap} is too small for {plan}: at operation {operation} an object of {wanted} has no room", heap = bytes(*heap), plan = plan.name(), wanted = bytes(*wanted))]
    TooSmall { plan: Plan, heap: u64, operation: u64, wanted: u64 },
    #[error("MMTk does not take {option} {value}")]
    Option { option: String, value: String },
    #[error("an object of {size} is larger than what can be replayed", size = bytes(*size))]
    TooLarge { size: u64 },
    /// A collection lost an object or a reference.
    #[error("{0}")]
    Lost(String),
    /// The last collection did not reach what is alive, to the object and byte.
    #[error(
        "{plan}: the last collection reached {objects} objects of {bytes} bytes, and {alive_objects} of {alive_bytes} bytes are alive", plan = plan.name()
    )]
    Final { plan: Plan, objects: u64, bytes: u64, alive_objects: u64, alive_bytes: u64 },
}

fn bytes(number: u64) -> String {
    et_replay::collect::bytes(number)
}

/// Ends the process from any thread, with one line.
pub fn exit(code: u8, said: &str) -> ! {
    eprintln!("et-collect: {said}");
    std::process::exit(code.into())
}
