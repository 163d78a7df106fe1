//! A command of the user without what it says of archives ([`crate::archives`]), on every way on which options come to a JVM:
//! the command line, `-J` of the other launchers, variables, and the files that options name.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::argfile;
use super::error::RunError;
use super::java_line::JavaOption;
use super::scratch::Scratch;
use crate::archives::{self, Verdict, Word, verdict};
use crate::files::FileError;
use crate::jdk;

/// Variables that a JVM takes options from; only the last one has argument files, since `java` reads it.
const VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", JAVA_ONLY];
const JAVA_ONLY: &str = "JDK_JAVA_OPTIONS";

/// Removes options that a traced run cannot use.
#[derive(Debug)]
pub struct LeftOut<'a> {
    /// Folder for reduced copies of option files.
    scratch: &'a Scratch,
    options: Vec<String>,
    copies: usize,
}

impl<'a> LeftOut<'a> {
    pub fn new(scratch: &'a Scratch) -> Self {
        Self { scratch, options: Vec::new(), copies: 0 }
    }

    /// Goes through the command line of `java`, argument files expanded.
    pub fn of_java(&mut self, options: &mut Vec<JavaOption>) -> Result<(), RunError> {
        let all = std::mem::take(options);
        for mut option in all {
            // A known option with a value is not about archives.
            let kept = match option.value {
                Some(_) => None,
                None => self.judge(&option.name, "")?,
            };
            match kept {
                Some(Change::Away) => continue,
                Some(Change::To(other)) => option.name = other,
                None => {}
            }
            options.push(option);
        }
        Ok(())
    }

    /// Filters the command line of another launcher, which passes arguments after `-J` on to the JVM.
    pub fn of_launcher(&mut self, arguments: &[OsString]) -> Result<Vec<OsString>, RunError> {
        let mut kept = Vec::new();
        for argument in arguments {
            let option = argument.to_str().and_then(|argument| argument.strip_prefix("-J"));
            match option.map(|option| self.judge(option, "")).transpose()?.flatten() {
                Some(Change::Away) => {}
                Some(Change::To(other)) => kept.push(format!("-J{other}").into()),
                None => kept.push(argument.clone()),
            }
        }
        Ok(kept)
    }

    /// Variables that are to say less than ours do.
    pub fn of_variables(&mut self) -> Result<Vec<(&'static str, String)>, RunError> {
        let mut changed = Vec::new();
        for name in VARIABLES {
            let Ok(text) = std::env::var(name) else { continue };
            let judge = |this: &mut Self, word: &str| match word.strip_prefix('@') {
                Some(file) if name == JAVA_ONLY && !file.is_empty() && !file.starts_with('@') => {
                    this.argument_file(file)
                }
                _ => this.judge(word, name),
            };
            if let Some(text) = self.text(&text, archives::words(&text), judge)? {
                changed.push((name, text));
            }
        }
        Ok(changed)
    }

    /// Sets the variables in a command; an empty one is removed instead, since the JVM prints a message about each that
    /// is set.
    pub fn set(variables: Vec<(&'static str, String)>, command: &mut Command) {
        for (name, text) in variables {
            match text.trim().is_empty() {
                true => command.env_remove(name),
                false => command.env(name, text),
            };
        }
    }

    /// All of it in one line, if there is anything.
    pub fn line(&self) -> Option<String> {
        (!self.options.is_empty()).then(|| {
            let options = self.options.join(", ");
            format!("left out, because archives and AOT caches do not work in a traced run: {options}")
        })
    }

    /// Decides what to do with an option; `None`: keep it.
    fn judge(&mut self, option: &str, place: &str) -> Result<Option<Change>, RunError> {
        match verdict(option) {
            Verdict::Refuse => {
                let why = format!(
                    "with {option} the JVM dumps an archive and does not run the program: use it without et-instrument"
                );
                Err(RunError::Usage(why))
            }
            Verdict::LeaveOut => {
                self.note(option, place);
                Ok(Some(Change::Away))
            }
            Verdict::Keep => {
                for (name, read) in FILES {
                    if let Some(file) = option.strip_prefix(name) {
                        return Ok(self.file(file, read)?.map(|copy| Change::To(format!("{name}{copy}"))));
                    }
                }
                Ok(None)
            }
        }
    }

    fn note(&mut self, option: &str, place: &str) {
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        self.options.push(format!("{}{place}", jdk::quoted(option)));
    }

    /// A text without some of its words; nothing if all are kept.
    fn text(
        &mut self,
        text: &str,
        words: Vec<Word>,
        mut judge: impl FnMut(&mut Self, &str) -> Result<Option<Change>, RunError>,
    ) -> Result<Option<String>, RunError> {
        let mut changes = Vec::new();
        for word in words {
            if let Some(change) = judge(self, &word.text)? {
                let instead = match change {
                    Change::Away => None,
                    Change::To(other) => Some(quoted(&other)),
                };
                changes.push((word.place, instead));
            }
        }
        Ok((!changes.is_empty()).then(|| archives::edited(text, &changes)))
    }

    /// A copy of a file of options, if that is to say less.
    fn file(&mut self, file: &str, read: Read) -> Result<Option<String>, RunError> {
        // The JVM says what is wrong with it.
        let Ok(text) = fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()) else {
            return Ok(None);
        };
        let less = match read {
            Read::Options => self.text(&text, archives::words(&text), |this, word| this.judge(word, file))?,
            Read::Flags => {
                self.text(&text, archives::flags(&text), |this, word| this.judge(&format!("-XX:{word}"), file))?
            }
        };
        Ok(less.map(|less| self.copy(&less)).transpose()?)
    }

    /// A copy of an argument file, if that is to say less.
    fn argument_file(&mut self, file: &str) -> Result<Option<Change>, RunError> {
        let Ok(words) = argfile::read(Path::new(file)) else { return Ok(None) };
        let (mut less, mut is_less) = (String::new(), false);
        for word in words {
            let word = match self.judge(&word, file)? {
                Some(Change::Away) => {
                    is_less = true;
                    continue;
                }
                Some(Change::To(other)) => {
                    is_less = true;
                    other
                }
                None => word,
            };
            less += &format!("{}\n", jdk::argument_quoted(&word));
        }
        is_less.then(|| Ok(Change::To(format!("@{}", self.copy(&less)?)))).transpose()
    }

    fn copy(&mut self, text: &str) -> Result<String, FileError> {
        self.copies += 1;
        let path = self.scratch.write(&format!("options-{}", self.copies), text)?;
        Ok(path.to_string_lossy().into_owned())
    }
}

/// A change to an option.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Away,
    To(String),
}

/// The content of a file that an option refers to.
#[derive(Clone, Copy, Debug)]
enum Read {
    Options,
    Flags,
}

/// Options that name files with more of them.
const FILES: [(&str, Read); 2] = [("-XX:VMOptionsFile=", Read::Options), ("-XX:Flags=", Read::Flags)];

/// A word as it is written where nothing escapes.
fn quoted(word: &str) -> String {
    match word.contains(char::is_whitespace) {
        false => word.to_owned(),
        true if word.contains('"') => format!("'{word}'"),
        true => format!("\"{word}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::java_line::JavaLine;

    fn with(check: impl FnOnce(&Path, &mut LeftOut<'_>)) {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(folder.path()).unwrap();
        check(folder.path(), &mut LeftOut::new(&scratch));
    }

    fn options(words: &[&str]) -> Vec<JavaOption> {
        JavaLine::options_of(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn arguments(options: Vec<JavaOption>) -> Vec<String> {
        options.into_iter().flat_map(JavaOption::arguments).collect()
    }

    #[test]
    fn archives_are_left_out_of_command_lines() {
        with(|_, out| {
            let mut line =
                options(&["-Xmx1g", "-XX:AOTCache=a b", "-XX:AOTMode=on", "-cp", "-XX:AOTCache=c", "-Xshare:on"]);
            out.of_java(&mut line).unwrap();
            assert_eq!(arguments(line), ["-Xmx1g", "-cp", "-XX:AOTCache=c"]);
            let words = ["-J-XX:SharedArchiveFile=a", "-d", "-XX:SharedArchiveFile=b", "-J-Xmx1g"].map(OsString::from);
            assert_eq!(out.of_launcher(&words).unwrap(), words[1..]);
            let expected = "'-XX:AOTCache=a b', -XX:AOTMode=on, -Xshare:on, -XX:SharedArchiveFile=a";
            assert!(out.line().unwrap().ends_with(&format!(": {expected}")), "{:?}", out.line());
        });
        with(|_, out| {
            out.of_java(&mut options(&["-Xshare:off", "-XX:VMOptionsFile=/none"])).unwrap();
            assert_eq!(out.line(), None);
        });
    }

    #[test]
    fn what_only_makes_an_archive_is_refused() {
        with(|_, out| {
            let error = out.of_java(&mut options(&["-XX:AOTMode=create"])).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains("-XX:AOTMode=create"), "{error}");
        });
    }

    #[test]
    fn files_that_options_name_are_read_and_stay_as_they_are() {
        with(|folder, out| {
            let (list, flags) = (folder.join("list"), folder.join("flags"));
            let texts = ["-Dx='a b'\n-XX:AOTCache=x\n-Xmx1g", "# AOTCache=no\n+UseZGC AOTCache='a b'\n"];
            fs::write(&list, texts[0]).unwrap();
            fs::write(&flags, texts[1]).unwrap();
            let named = [format!("-XX:VMOptionsFile={}", list.display()), format!("-XX:Flags={}", flags.display())];
            let mut line = options(&[&named[0], &named[1]]);
            out.of_java(&mut line).unwrap();
            let copies = arguments(line);
            let read = |option: &str| fs::read_to_string(option.split_once('=').unwrap().1).unwrap();
            assert_eq!(read(&copies[0]), "-Dx='a b'\n\n-Xmx1g");
            assert_eq!(read(&copies[1]), "# AOTCache=no\n+UseZGC \n");
            assert_eq!([&named[0], &named[1]].map(|option| read(option)), texts);
            let said = out.line().unwrap();
            assert!(said.contains(&format!("-XX:AOTCache=x ({})", list.display())), "{said}");
            // Nothing to leave out: the file itself.
            fs::write(&list, "-Xmx1g").unwrap();
            let mut line = options(&[&named[0]]);
            out.of_java(&mut line).unwrap();
            assert_eq!(arguments(line), [named[0].as_str()]);
        });
    }

    #[test]
    fn an_argument_file_of_a_variable_is_copied_without_them() {
        with(|folder, out| {
            let file = folder.join("args");
            fs::write(&file, "# comment\n-XX:AOTCache=x -Dy=\"a \\\"b\"").unwrap();
            let Some(Change::To(copy)) = out.argument_file(&file.display().to_string()).unwrap() else { panic!() };
            assert_eq!(argfile::read(Path::new(&copy[1..])).unwrap(), ["-Dy=a \"b"]);
            assert_eq!(out.argument_file("/none").unwrap(), None);
        });
    }

    #[test]
    fn words_are_quoted_where_nothing_escapes() {
        assert_eq!(["a", "a b", "a \"b"].map(quoted), ["a", "\"a b\"", "'a \"b'"]);
    }
}
