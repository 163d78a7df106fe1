//! Checks that no file in a folder shared by users has a predictable name: another user could create it first, as a
//! link to a file of the victim.

use std::fs;
use std::process::Command;

use xtask::command;
use xtask::layout::Layout;

/// Expressions for names in such folders: `temp_dir().join(…)`, `${TMPDIR:-/tmp}/name`.
const MAKES: [&str; 4] = ["temp_dir().join", "TMPDIR:-", "gettempdir()", "java.io.tmpdir"];

/// Exceptions, with the reason why they are harmless.
const ALLOWED: [(&str, &str); 3] = [
    ("crates/reader/src/file/buffer_file.rs", "the name has the 48 random bits of the run, and is only read"),
    ("tests/tests/endings.rs", "the same name, of a test's own run"),
    ("xtask/tests/shared_folders.rs", "looks for them"),
];

#[test]
fn no_name_in_a_shared_folder_can_be_known_beforehand() {
    let layout = Layout::find().unwrap();
    let listed = command::read(Command::new("git").args(["ls-files", "-z"]).current_dir(&layout.repo)).unwrap();
    let ends = [".rs", ".sh", ".py", ".mjs", ".js", ".java", ".kts", ".ci/run"];
    let sources: Vec<&str> = listed.split('\0').filter(|path| ends.iter().any(|end| path.ends_with(end))).collect();
    assert!(sources.len() > 500, "{}", sources.len());
    let found: Vec<&str> = sources
        .into_iter()
        .filter(|path| {
            // Files known to git may have been deleted from the folder.
            let text = fs::read_to_string(layout.repo.join(path)).unwrap_or_default();
            let text: String = text.split_whitespace().collect();
            MAKES.iter().any(|makes| text.contains(makes))
        })
        .collect();
    assert_eq!(
        found,
        ALLOWED
            .map(|(path, _)| path)
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
}
