//! Allocations of a traced program, as counted by the runtime that traces it, if that has loaded this agent itself
//! (`-Det.ddm=on`).
#![allow(unsafe_code, reason = "an entry point from another library, and bytes that it lends")]

use std::ffi::c_void;
use std::sync::OnceLock;

use et_ddm::ours::AllocationSource;

static SOURCE: OnceLock<AllocationSource> = OnceLock::new();

/// Called by the runtime before it calls `Agent_OnLoad`: [`et_ddm::ours::TAKE_SOURCE`].
#[unsafe(no_mangle)]
pub extern "C" fn et_monitor_take_allocations(source: AllocationSource) {
    let _ = SOURCE.set(source);
}

/// Whether there is a provider of statistics.
pub fn are_known() -> bool {
    SOURCE.get().is_some()
}

/// Enables or disables the statistics.
pub fn switch(on: bool) {
    if let Some(source) = SOURCE.get() {
        (source.switch)(on.into());
    }
}

/// Data of a report with this number of rows about allocations since the last one.
pub fn report(rows: u32) -> Option<Vec<u8>> {
    let source = SOURCE.get()?;
    let mut data: Vec<u8> = Vec::new();
    (source.report)(rows, (&raw mut data).cast(), put);
    Some(data).filter(|data| !data.is_empty())
}

extern "C" fn put(to: *mut c_void, bytes: *const u8, count: usize) {
    if to.is_null() || bytes.is_null() {
        return;
    }
    // SAFETY: `to` is the vector of `report`, which waits for this call; the bytes are the caller's until it returns.
    let (data, bytes) = unsafe { (&mut *to.cast::<Vec<u8>>(), std::slice::from_raw_parts(bytes, count)) };
    data.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_ddm::ours::Put;

    extern "C" fn switch_nothing(_on: u8) {}

    extern "C" fn rows(rows: u32, to: *mut c_void, put: Put) {
        let bytes = rows.to_be_bytes();
        put(to, bytes.as_ptr(), bytes.len());
    }

    #[test]
    fn what_a_source_puts_is_reported() {
        assert!(!are_known() && report(1).is_none());
        et_monitor_take_allocations(AllocationSource { switch: switch_nothing, report: rows });
        switch(true);
        assert_eq!((are_known(), report(7)), (true, Some(vec![0, 0, 0, 7])));
    }
}
