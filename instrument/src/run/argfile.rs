//! `@argfiles` of the java launcher: how it expands `@file` before it parses anything else.
//!
//! The syntax is defined in the JDK's guide ("java Command-Line Argument Files"): words are separated by white space,
//! `#` starts a comment up to the end of the line, quotes of either kind group words, and within quotes a backslash
//! escapes a character or continues the line.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use super::error::RunError;
use super::java_line::takes_next;

/// The words of an argument file.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => {
                let word = word.get_or_insert_default();
                match characters.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some('f') => word.push('\x0c'),
                    Some('\n' | '\r') => {
                        // The line continues after the leading white space of the next one.
                        while characters.next_if(|next| matches!(next, ' ' | '\t' | '\n' | '\r' | '\x0c')).is_some() {}
                    }
                    Some(other) => word.push(other),
                    None => {}
                }
            }
            (Some(open), _) if open == character => quote = None,
            // An open quote ends with its line.
            (_, '\n' | '\r') => {
                quote = None;
                words.extend(word.take());
            }
            (Some(_), other) => word.get_or_insert_default().push(other),
            (None, ' ' | '\t' | '\x0c') => words.extend(word.take()),
            // A word that runs into a comment is lost with it.
            (None, '#') => {
                word = None;
                while characters.next_if(|next| !matches!(next, '\n' | '\r')).is_some() {}
            }
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, other) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// The arguments with the argument files among them replaced by their words, as the launcher does it: not behind the
/// main class, not within another argument file, not behind `--disable-@files`.
pub fn expand(arguments: Vec<OsString>) -> Result<Vec<OsString>, RunError> {
    let mut expanded = Vec::with_capacity(arguments.len());
    let mut state = Expansion::default();
    for argument in arguments {
        let file = argument.to_str().and_then(|text| text.strip_prefix('@')).filter(|_| !state.over);
        match file {
            Some(file) if file.starts_with('@') => {
                state.look_at(file.as_ref());
                expanded.push(file.into());
            }
            Some(file) if !file.is_empty() => {
                for word in read(file.as_ref())? {
                    state.look_at(word.as_ref());
                    expanded.push(word.into());
                }
            }
            _ => {
                state.look_at(&argument);
                expanded.push(argument);
            }
        }
    }
    Ok(expanded)
}

/// Reads the words of a file.
pub fn read(file: &Path) -> Result<Vec<String>, RunError> {
    let bytes = fs::read(file).map_err(|source| RunError::ArgumentFile { file: file.to_owned(), source })?;
    Ok(words(&String::from_utf8_lossy(&bytes)))
}

/// Whether the main class, or what forbids it, has been passed.
#[derive(Default)]
struct Expansion {
    over: bool,
    wants_value: bool,
}

impl Expansion {
    fn look_at(&mut self, argument: &OsStr) {
        let is_option = argument.as_encoded_bytes().starts_with(b"-");
        if is_option {
            // The next argument is the main class, or replaces it.
            let is_main = ["-jar", "-m", "--module"].iter().any(|main| argument == *main);
            self.wants_value = !is_main && argument.to_str().is_some_and(takes_next);
            self.over |= argument == "--disable-@files" || argument.as_encoded_bytes().starts_with(b"--module=");
        } else {
            self.over |= !self.wants_value;
            self.wants_value = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(arguments: &[&str]) -> Vec<String> {
        let done = expand(arguments.iter().map(OsString::from).collect()).unwrap();
        done.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn quotes_comments_and_continuations() {
        let text = "# a comment\n-cp \"a b\\\\c:\\\n    d\"  'x y'z\t-Dq=\"1\" p#rest\n\"open\nend \"\" back\\slash";
        let expected = ["-cp", "a b\\c:d", "x yz", "-Dq=1", "open", "end", "", "back\\slash"];
        assert_eq!(words(text), expected);
        assert_eq!(words("  \n#only\n"), Vec::<String>::new());
        assert_eq!(words("\"a\\tb\\nc\\q\""), ["a\tb\ncq"]);
    }

    #[test]
    fn files_are_expanded_up_to_the_main_class() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("args");
        fs::write(&file, "-cp lib @inner").unwrap();
        let at = format!("@{}", file.display());
        assert_eq!(expanded(&[&at, "Main", &at]), ["-cp", "lib", "@inner", "Main", at.as_str()]);
        assert_eq!(expanded(&["-cp", &at, "M"])[..3], ["-cp", "-cp", "lib"]);
        assert_eq!(expanded(&["@@x", "@", "M"]), ["@x", "@", "M"]);
        assert_eq!(expanded(&["--disable-@files", &at]), ["--disable-@files", at.as_str()]);
        // Also of a jar the name may come from a file.
        fs::write(&file, "app.jar").unwrap();
        assert_eq!(expanded(&["-jar", &at, &at]), ["-jar", "app.jar", at.as_str()]);
        assert_eq!(expanded(&["-p", "mods", "-m", "m/Main", &at]), ["-p", "mods", "-m", "m/Main", at.as_str()]);
    }

    #[test]
    fn a_missing_file_is_one_line() {
        let error = expand(vec!["@/nowhere/args".into()]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/args") && !error.contains('\n'), "{error}");
    }
}
