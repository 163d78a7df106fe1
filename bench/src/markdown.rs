//! Writes tables into the docs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Lines that mark the place of the tables in a file with other text.
const MARKS: [&str; 2] = ["<!-- tables: begin -->", "<!-- tables: end -->"];

/// Replaces the tables between the marks of a file, or the whole file if it has no marks.
pub fn write(path: &Path, tables: &str) -> Result<()> {
    let text = match fs::read_to_string(path) {
        Ok(old) if old.contains(MARKS[0]) => {
            let (before, rest) = old.split_once(MARKS[0]).unwrap_or_default();
            ensure!(rest.contains(MARKS[1]), "{} has no line {}", path.display(), MARKS[1]);
            let after = rest.split_once(MARKS[1]).unwrap_or_default().1;
            format!("{before}{}\n{}\n{}{after}", MARKS[0], tables.trim_end(), MARKS[1])
        }
        _ => tables.to_owned(),
    };
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_go_between_the_marks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.md");
        fs::write(&path, format!("# Title\n{}\nold\n{}\nend\n", MARKS[0], MARKS[1])).unwrap();
        write(&path, "new\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("# Title\n{}\nnew\n{}\nend\n", MARKS[0], MARKS[1]));
    }
}
