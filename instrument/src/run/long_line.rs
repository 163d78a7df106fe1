//! Command lines that are too long for the system: paths into the cache are longer than what they replace.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::RunError;
use super::java_line::JavaLine;
use crate::files::FileError;
use crate::jdk;

/// Linux takes 128 KB for one argument, and 2 MB for all and the environment.
const LONGEST: usize = 120_000;
const LONGEST_TOGETHER: usize = 1_000_000;

/// An argument file for one run, removed after it.
#[derive(Debug)]
pub struct ArgumentFile(PathBuf);

impl Drop for ArgumentFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The arguments of a line; those of the launcher in a file in `folder` if they are too long.
pub fn arguments(line: JavaLine, folder: &Path) -> Result<(Vec<OsString>, Option<ArgumentFile>), RunError> {
    let lengths = || line.options.iter().map(|option| option.value.as_ref().map_or(0, String::len));
    if lengths().all(|length| length < LONGEST) && lengths().sum::<usize>() < LONGEST_TOGETHER {
        return Ok((line.arguments(), None));
    }
    let options = line.options.iter().cloned().flat_map(|option| option.arguments());
    let text: String = options.flat_map(|word| [jdk::argument_quoted(&word), "\n".into()]).collect();
    let path = folder.join(format!("args-{}", std::process::id()));
    fs::write(&path, text).map_err(FileError::at("write", &path))?;
    let mut at = OsString::from("@");
    at.push(&path);
    let rest = JavaLine { options: Vec::new(), ..line }.arguments();
    Ok((std::iter::once(at).chain(rest).collect(), Some(ArgumentFile(path))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::argfile::words;

    fn line(class_path: &str) -> JavaLine {
        JavaLine::parse(["-cp", class_path, "-Dx=#", "Main", "@y"].map(OsString::from).to_vec())
    }

    #[test]
    fn long_options_go_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (short, file) = arguments(line("a b"), folder.path()).unwrap();
        assert!(file.is_none() && short == ["-cp", "a b", "-Dx=#", "Main", "@y"]);
        let long = "@a b:".repeat(LONGEST / 4);
        let (words_of, file) = arguments(line(&long), folder.path()).unwrap();
        let path = file.as_ref().unwrap().0.clone();
        assert_eq!(words_of[1..], ["Main", "@y"]);
        assert_eq!(words_of[0], format!("@{}", path.display()).as_str());
        assert_eq!(words(&fs::read_to_string(&path).unwrap()), ["-cp", long.as_str(), "-Dx=#"]);
        drop(file);
        assert!(!path.exists());
    }
}
