//! Documentation that is generated from the definitions of options, so that it cannot contradict them: man pages, shell
//! completions, and the tables of options in `docs/`.

pub mod completions;
pub mod docs;
mod events;
pub mod man;
mod markdown;
mod plugins;
mod runtime;

use clap::Command;

/// The tools with all subcommands, except those that clap adds.
pub fn tools() -> [Command; 5] {
    let all = [
        et_instrument::cli::command(),
        et_trace::cli::command(),
        et_replay::cli::command(),
        et_monitor_cli::cli::command(),
        et_jvmpi_cli::cli::command(),
    ];
    all.map(|tool| {
        let mut tool = tool.disable_help_subcommand(true);
        tool.build();
        tool
    })
}

/// A command and all its subcommands, recursively.
fn with_subcommands(command: &Command) -> Vec<&Command> {
    let mut all = vec![command];
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        all.extend(with_subcommands(subcommand));
    }
    all
}

/// The command as typed: `et-instrument cache list`.
fn full_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// A part of the text after a command's options.
#[derive(Debug, PartialEq, Eq)]
struct Paragraph<'a> {
    /// If there is one, the lines are examples and must not be joined.
    heading: Option<&'a str>,
    lines: &'a str,
}

impl<'a> Paragraph<'a> {
    /// Splits a text into paragraphs. A first line that ends with a colon is a heading.
    fn all(text: &'a str) -> Vec<Self> {
        let paragraphs = text.split("\n\n");
        let split = |paragraph: &'a str| match paragraph.split_once('\n') {
            Some((first, rest)) if first.ends_with(':') => {
                Self { heading: Some(first.trim_end_matches(':')), lines: rest }
            }
            _ => Self { heading: None, lines: paragraph },
        };
        paragraphs.map(split).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_distinguished_from_prose() {
        let paragraphs = Paragraph::all("Examples:\n  a\n  b\n\nCodes: 0 well;\n1 bad.");
        let expected = [
            Paragraph { heading: Some("Examples"), lines: "  a\n  b" },
            Paragraph { heading: None, lines: "Codes: 0 well;\n1 bad." },
        ];
        assert_eq!(paragraphs, expected);
    }

    #[test]
    fn every_command_of_all_tools_is_there() {
        let tools = tools();
        let names: Vec<&str> = tools.iter().flat_map(with_subcommands).map(full_name).collect();
        for name in [
            "et-instrument",
            "et-instrument run",
            "et-instrument cache clear",
            "et-trace",
            "et-trace text",
            "et-replay simulate",
            "et-monitor attach",
            "et-replay collect",
            "et-jvmpi replay",
        ] {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
        assert!(!names.iter().any(|name| name.ends_with(" help")), "{names:?}");
    }
}
