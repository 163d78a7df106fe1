//! Stacks of the program's threads: they hold as many frames as without hooks, whatever size was given for them, and where.

use std::ffi::OsString;

use super::java_line::JavaOption;
use crate::jdk::stack_size::{self, StackSize};

/// Options for the stack sizes of a run, which override those in `et.args`: later options on a command line have
/// precedence.
/// `any` are given to all JVMs in a variable, `java` also to the launcher, which starts the main thread.
pub fn fit(options: &mut Vec<String>, any: &[JavaOption], java: &[JavaOption]) {
    options.retain(|option| StackSize::of(option).is_none());
    let sizes = |options: &[JavaOption]| -> Vec<StackSize> {
        options.iter().filter_map(|option| StackSize::of(&option.name)).collect()
    };
    let (any, java) = (sizes(any), sizes(java));
    let of_main = java.iter().rfind(|size| matches!(size, StackSize::OfAll(_))).copied().unwrap_or_default().scaled();
    let of_others = any.iter().chain(&java).next_back().copied().unwrap_or_default().scaled();
    options.push(of_main.option());
    if of_others.bytes() != of_main.bytes() {
        options.push(StackSize::OfOthers(of_others.bytes()).option());
    }
}

/// The sizes on a command line of `java`.
pub fn scale(options: &mut [JavaOption]) {
    for option in options.iter_mut().filter(|option| option.value.is_none()) {
        if let Some(scaled) = stack_size::scaled(&option.name) {
            option.name = scaled;
        }
    }
}

/// A word on the command line of another launcher.
pub fn scaled_word(word: &OsString) -> OsString {
    let scaled = word.to_str().and_then(|word| word.strip_prefix("-J")).and_then(stack_size::scaled);
    scaled.map_or_else(|| word.clone(), |option| format!("-J{option}").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::java_line::JavaLine;

    fn options(text: &str) -> Vec<JavaOption> {
        JavaLine::options_of(text.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn sizes_of_variables_are_scaled_for_the_threads_that_they_are_for() {
        let fitted = |any: &str, java: &str| {
            let mut found = vec!["-agentpath:x".to_owned(), "-Xss1234k".to_owned(), "-Xint".to_owned()];
            fit(&mut found, &options(any), &options(java));
            found.split_off(2).join(" ")
        };
        let default = StackSize::default().scaled().option();
        assert_eq!(fitted("", "-ea"), default);
        assert_eq!(fitted("", "-Xss512k -Xss2m"), "-Xss10240k");
        // The launcher, which starts the main thread, does not read it.
        assert_eq!(fitted("-Xss256k", ""), format!("{default} -XX:ThreadStackSize=1280"));
        assert_eq!(fitted("-Xss256k", "-Xss2m -XX:ThreadStackSize=512"), "-Xss10240k -XX:ThreadStackSize=2560");
    }

    #[test]
    fn sizes_on_command_lines_are_scaled() {
        let mut line = options("-Xss1m -cp x -XX:ThreadStackSize=300 -Dx=-Xss1m");
        scale(&mut line);
        let words: Vec<String> = line.into_iter().flat_map(JavaOption::arguments).collect();
        assert_eq!(words, ["-Xss5120k", "-cp", "x", "-XX:ThreadStackSize=1500", "-Dx=-Xss1m"]);
        let word = |word: &str| scaled_word(&word.into());
        assert_eq!([word("-J-Xss1m"), word("-Xss1m"), word("-J-ea")], ["-J-Xss5120k", "-Xss1m", "-J-ea"]);
    }
}
