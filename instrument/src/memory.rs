//! Limits how much compressed content is unpacked at once.
//!
//! An archive of two megabytes can claim to contain gigabytes, and instrumented classes stay in memory until they are
//! written. So memory is claimed before unpacking, in the order of the entries: what fits does not depend on
//! scheduling.

use std::fs;

use et_names::units;

/// Maximum number of unpacked bytes of one artifact that all threads together hold. The largest known jars have half as
/// much in classes.
const MOST: u64 = 1 << 30;
/// Where memory is short it is this part of it: what is made of a class takes some times its size.
const SHARE: u64 = 8;
/// Less would leave out what people run.
const LEAST: u64 = 64 << 20;
/// More than any manifest: those of signed jars have some megabytes.
pub const MANIFEST: u64 = 16 << 20;

/// Memory that may still be used for unpacked content.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    total: u64,
    left: u64,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn of(bytes: u64) -> Self {
        Self { total: bytes, left: bytes }
    }

    /// A budget that depends on the machine's memory.
    pub fn of_machine() -> Self {
        Self::of(memory().map_or(MOST, |memory| (memory / SHARE).clamp(LEAST, MOST)))
    }

    /// The same, with nothing claimed yet.
    pub fn fresh(&self) -> Self {
        Self::of(self.total)
    }

    /// The initial budget in bytes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether this many bytes are left.
    pub fn holds(&self, bytes: u64) -> bool {
        bytes <= self.left
    }

    /// Claims memory. Fails with a message if not enough is left.
    pub fn claim(&mut self, bytes: u64) -> Result<(), String> {
        if !self.holds(bytes) {
            let [bytes, total, left] = [bytes, self.total, self.left].map(units::bytes);
            return Err(format!(
                "too large: {bytes} unpacked, with {left} left of the {total} that may be unpacked at once"
            ));
        }
        self.left -= bytes;
        Ok(())
    }

    /// Gives back what was claimed.
    pub fn release(&mut self, bytes: u64) {
        self.left = (self.left + bytes).min(self.total);
    }
}

/// Memory available to this process in bytes; `None` if unknown.
fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| in_meminfo(&text));
    // Of containers: the files are where they see the root of their group.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = limits.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    // `ulimit -v`.
    let space = rustix::process::getrlimit(rustix::process::Resource::As).current;
    machine.into_iter().chain(limits).chain(space).min()
}

fn in_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_is_gone_until_it_is_released() {
        let mut budget = Budget::of(10 << 20);
        assert_eq!(budget.claim(9 << 20), Ok(()));
        let error = budget.claim(2 << 20).unwrap_err();
        assert!(
            error.contains("2.0 MiB unpacked") && error.contains("1.0 MiB left") && error.contains("of the 10.0 MiB")
        );
        assert!(budget.holds(1 << 20) && budget.fresh().holds(10 << 20));
        budget.release(9 << 20);
        assert_eq!(budget.claim(10 << 20), Ok(()));
    }

    #[test]
    fn the_machine_s_memory_is_read() {
        assert_eq!(in_meminfo("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24576 << 10));
        assert_eq!(in_meminfo("none"), None);
        assert!((LEAST..=MOST).contains(&Budget::of_machine().total()));
    }
}
