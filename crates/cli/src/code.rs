//! Exit codes.

/// All went well.
pub const OK: u8 = 0;
/// Bad input, or something did not work; a line on standard error says what.
pub const FAILED: u8 = 1;
/// Wrong usage; clap's errors have it, too.
pub const USAGE: u8 = 2;
/// The trace is cut off; what there is was read.
pub const CUT_OFF: u8 = 3;
/// Events are missing in the midst of the trace; the others were read.
pub const DAMAGED: u8 = 4;
/// Whoever reads standard output closed it before all was written: what a shell says of a program that SIGPIPE ended.
pub const CLOSED: u8 = 141;

/// The exit code of a command that has read a trace: cut off or not, with so many events missing.
pub fn of_trace(is_cut_off: bool, lost: u64) -> u8 {
    match (is_cut_off, lost) {
        (false, 0) => OK,
        (true, 0) => CUT_OFF,
        _ => DAMAGED,
    }
}
