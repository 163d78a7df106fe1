//! The current time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since the Unix epoch.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Nanoseconds since 1970: until 2554.
pub fn nanos() -> u64 {
    now().as_nanos() as u64
}

/// Milliseconds since the Unix epoch.
pub fn millis() -> u64 {
    now().as_millis() as u64
}
