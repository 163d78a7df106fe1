//! Command lines that are too long for the system: paths into the cache are longer than what they replace.

use std::ffi::OsString;

use super::java_line::JavaLine;
use super::scratch::Scratch;
use crate::files::FileError;
use crate::jdk;

/// Linux takes 128 KB for one argument, and 2 MB for all and the environment.
const LONGEST: usize = 120_000;
const LONGEST_TOGETHER: usize = 1_000_000;

/// The arguments of a line; those of the launcher in a file if they are too long.
pub fn arguments(line: JavaLine, scratch: &Scratch) -> Result<Vec<OsString>, FileError> {
    let lengths = || line.options.iter().map(|option| option.value.as_ref().map_or(0, String::len));
    if lengths().all(|length| length < LONGEST) && lengths().sum::<usize>() < LONGEST_TOGETHER {
        return Ok(line.arguments());
    }
    let options = line.options.iter().cloned().flat_map(|option| option.arguments());
    let text: String = options.flat_map(|word| [jdk::argument_quoted(&word), "\n".into()]).collect();
    let path = scratch.write("args", &text)?;
    let mut at = OsString::from("@");
    at.push(&path);
    let rest = JavaLine { options: Vec::new(), ..line }.arguments();
    Ok(std::iter::once(at).chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::argfile::words;
    use std::fs;

    fn line(class_path: &str) -> JavaLine {
        JavaLine::parse(["-cp", class_path, "-Dx=#", "Main", "@y"].map(OsString::from).to_vec())
    }

    #[test]
    fn long_options_go_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(folder.path()).unwrap();
        assert_eq!(arguments(line("a b"), &scratch).unwrap(), ["-cp", "a b", "-Dx=#", "Main", "@y"]);
        let long = "@a b:".repeat(LONGEST / 4);
        let words_of = arguments(line(&long), &scratch).unwrap();
        assert_eq!(words_of[1..], ["Main", "@y"]);
        let file = words_of[0].to_str().unwrap().strip_prefix('@').unwrap();
        assert_eq!(words(&fs::read_to_string(file).unwrap()), ["-cp", long.as_str(), "-Dx=#"]);
    }
}
