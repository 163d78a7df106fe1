//! How the runtime of a traced program hands what is allocated to the agent that speaks this protocol: both are libraries of one
//! process, and know each other by a symbol only.

use std::ffi::c_void;

/// The function of the agent's library that takes a source: [`TakeSource`].
pub const TAKE_SOURCE: &std::ffi::CStr = c"et_monitor_take_allocations";

/// Takes a number of bytes, which are gone afterwards.
pub type Put = extern "C" fn(to: *mut c_void, bytes: *const u8, count: usize);

/// Provider of allocation statistics.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocationSource {
    /// Enables (1) or disables (0) the statistics.
    pub switch: extern "C" fn(on: u8),
    /// Calls `put` once, with the data of a chunk `ETAL` of that many rows at the most: what was allocated since it was called last.
    pub report: extern "C" fn(rows: u32, to: *mut c_void, put: Put),
}

/// Called once, before the VM is up.
pub type TakeSource = extern "C" fn(source: AllocationSource);
