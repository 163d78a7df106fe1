//! Detects common mistakes in command lines and suggests what was probably meant.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;

use super::Cli;
use crate::jdk::quoted;

/// Launchers of a JDK that `run` takes, as people type them.
const LAUNCHERS: [&str; 6] = ["java", "javac", "javadoc", "jshell", "jar", "javap"];
/// Options of `java` before the program.
const OF_JAVA: [&str; 8] = ["-jar", "-cp", "-classpath", "--class-path", "-p", "--module-path", "-m", "--module"];

/// A line that says what was meant, for arguments that were refused.
pub(super) fn meant(arguments: &[OsString]) -> Option<String> {
    let words: Vec<String> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let program = words.iter().position(|word| word != "--").map(|at| &words[at..])?;
    let first = program.first()?;
    let run = |java: &str| {
        let line: Vec<String> = program.iter().map(|word| quoted(word)).collect();
        format!("to trace a program, use run: et-instrument run -- {java}{}", line.join(" "))
    };
    let name = Path::new(first).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if LAUNCHERS.contains(&name.as_str()) {
        return Some(run(""));
    }
    if is_of_java(first) {
        return Some(run("java "));
    }
    let subcommand = misplaced(&words)?;
    Some(format!("options come after the subcommand: et-instrument {subcommand} …"))
}

/// Whether it is an option of `java` and not of ours.
pub(super) fn is_of_java(word: &str) -> bool {
    OF_JAVA.contains(&word) || ["-D", "-X", "-agent", "-javaagent:", "@"].iter().any(|start| word.starts_with(start))
}

/// A subcommand after options, where it would be parsed as an input.
fn misplaced(words: &[String]) -> Option<&str> {
    let (first, behind) = words.split_first()?;
    let command = Cli::command();
    let is_command = |word: &&String| command.get_subcommands().any(|command| command.get_name() == word.as_str());
    first.starts_with('-').then(|| behind.iter().find(is_command))?.map(String::as_str)
}

/// The option of `run` that a word resembles most: with a letter added, missing or changed, with two letters swapped,
/// or abbreviated.
pub(super) fn like_option(word: &str) -> Option<String> {
    let name = word.strip_prefix("--")?.split('=').next().filter(|name| name.len() > 2)?;
    let command = Cli::command();
    let run = command.find_subcommand("run")?;
    let options: Vec<&str> = run.get_arguments().filter_map(clap::Arg::get_long).collect();
    let shortened = options.iter().copied().find(|option| option.starts_with(name));
    let distances = options.iter().map(|option| (distance(name, option), *option));
    let nearest = || distances.min().filter(|(distance, _)| *distance <= 2);
    let option = shortened.or_else(|| nearest().map(|(_, option)| option))?;
    Some(format!("--{option}"))
}

/// How many letters must be put in, left out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        meant(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_program_without_run_is_recognized() {
        let said = |line: &str| format!("to trace a program, use run: et-instrument run -- {line}");
        assert_eq!(of("et-instrument java -jar x.jar"), Some(said("java -jar x.jar")));
        assert_eq!(of("et-instrument -- java -Dx=a;b Main"), Some(said("java '-Dx=a;b' Main")));
        assert_eq!(of("et-instrument /opt/jdk/bin/javac A.java"), Some(said("/opt/jdk/bin/javac A.java")));
        assert_eq!(of("et-instrument -jar x.jar"), Some(said("java -jar x.jar")));
        assert_eq!(of("et-instrument -Xmx1g -jar x.jar"), Some(said("java -Xmx1g -jar x.jar")));
        assert_eq!(of("et-instrument app.jar"), None);
        assert_eq!(of("et-instrument"), None);
    }

    #[test]
    fn a_misplaced_subcommand_is_named() {
        let said = of("et-instrument --force jdk").unwrap();
        assert_eq!(said, "options come after the subcommand: et-instrument jdk …");
        assert_eq!(of("et-instrument jdk --froce"), None);
    }

    #[test]
    fn options_are_known_by_what_they_look_like() {
        let like = |word: &str| like_option(word);
        assert_eq!(like("--event").as_deref(), Some("--events"));
        assert_eq!(like("--evnets=alloc").as_deref(), Some("--events"));
        assert_eq!(like("--wit").as_deref(), Some("--witness"));
        assert_eq!(like("--inplace").as_deref(), Some("--in-place"));
        assert_eq!(like("--module-path"), None);
        assert_eq!(like("-jar"), None);
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("", "abc"), 3);
    }
}
