//! Exit codes of the commands.

/// Success.
pub const OK: u8 = 0;
/// Bad input, or an operation failed; a message on standard error says what.
pub const FAILED: u8 = 1;
/// Usage error, the same as clap's.
pub const USAGE: u8 = 2;
/// The trace is cut off; the rest was read.
pub const CUT_OFF: u8 = 3;
/// Events are missing in the middle of the trace; the others were read.
pub const DAMAGED: u8 = 4;
/// The reader of standard output closed it before everything was written: the code that shells report after SIGPIPE.
pub const CLOSED: u8 = 141;

/// Exit code of a command that has read a trace, depending on whether it is cut off and on the number of lost events.
pub fn of_trace(is_cut_off: bool, lost: u64) -> u8 {
    match (is_cut_off, lost) {
        (false, 0) => OK,
        (true, 0) => CUT_OFF,
        _ => DAMAGED,
    }
}
