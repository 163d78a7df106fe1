//! Where a run puts its trace: the runtime decides, and `run` looks there afterwards.

use std::path::{Path, PathBuf};

/// What the runtime calls a trace that nobody has named.
pub const DEFAULT: &str = "et-%p.ettrace";

/// What `traceFile` says of a process: `%p` becomes its id.
pub fn of_process(given: &str, process: u32) -> String {
    given.replace("%p", &process.to_string())
}

/// Where a trace goes if another process is writing that one: `app.ettrace` becomes `app.4711.ettrace`.
pub fn beside_busy(path: &Path, process: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{process}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// So many bytes tell whether a file is the text of a trace.
pub const TEXT_START: usize = 32;

/// Whether this is how the text of a trace begins, in whatever dialect.
pub fn starts_text(start: &[u8]) -> bool {
    let comments: [&[u8]; 4] = [b"# events ", b"# kind ", b"# with holders", b"timestamp,event_type"];
    let record = |start: &[u8]| {
        let mut fields = start.split(|&byte| byte == b' ');
        let letter = fields.next().is_some_and(|field| field.len() == 1 && b"AINPVUMEXTHDRW".contains(&field[0]));
        let mut numbers = fields.take(2);
        let is_number = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_hexdigit);
        letter && numbers.next().is_some_and(is_number) && numbers.next().is_some_and(is_number)
    };
    comments.iter().any(|comment| start.starts_with(comment)) || record(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_names_of_its_own() {
        assert_eq!(of_process("/x/%p-%p.zst", 7), "/x/7-7.zst");
        assert_eq!(beside_busy(Path::new("a/b.ettrace"), 7), Path::new("a/b.7.ettrace"));
        assert_eq!(beside_busy(Path::new("b"), 7), Path::new("b.7"));
    }

    #[test]
    fn a_text_shows_in_its_first_bytes() {
        for text in ["I 1a2b 18 Ljava/lang/Object", "# kind I\nN 12 1", "timestamp,event_type,object_id", "M 3 1f 2\nE"]
        {
            assert!(starts_text(text.as_bytes()), "{text}");
        }
        for other in ["", "#!/bin/sh\n", "# Title", "A day in", "M", "PK\u{3}\u{4}", "I am 12", "127.0.0.1 localhost"] {
            assert!(!starts_text(other.as_bytes()), "{other}");
        }
    }
}
