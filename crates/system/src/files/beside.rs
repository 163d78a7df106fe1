//! Paths of files beside a trace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Default folder of the life table of a trace.
pub fn lives_of(trace: &Path) -> PathBuf {
    let mut name = trace.file_name().unwrap_or(OsStr::new("trace")).to_owned();
    name.push(".lives");
    trace.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_life_table_lies_beside_the_trace() {
        assert_eq!(lives_of("runs/app.ettrace".as_ref()), Path::new("runs/app.ettrace.lives"));
        assert_eq!(lives_of("trace".as_ref()), Path::new("trace.lives"));
    }
}
