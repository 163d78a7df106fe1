//! Documentation of command options in Markdown.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::{Paragraph, full_name};

/// A table; cells are Markdown.
pub(crate) fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| {
        let cells = cells.iter().map(|cell| match cell.as_str() {
            "" => " |".to_owned(),
            text => format!(" {} |", text.replace('|', "\\|")),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let mut text = line(&heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>());
    let _ = writeln!(text, "|{}", "---|".repeat(heads.len()));
    rows.into_iter().for_each(|row| text.push_str(&line(&row)));
    text
}

/// The section of a command.
pub(crate) fn command(command: &Command, heading: &str) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    // Clap removes the full stop of the first paragraph.
    let (first, more) = about.split_once("\n\n").unwrap_or((&about, ""));
    let stop = if first.ends_with(['.', '…']) { "" } else { "." };
    let mut text = format!("{heading} {}\n\n", full_name(command));
    let _ = writeln!(text, "{}\n", plain(&format!("{first}{stop}\n\n{more}")).trim_end());
    let _ = writeln!(text, "```\n{}\n```\n", usage(command));
    let rows = command.get_arguments().filter(|argument| is_worth_telling(argument)).map(row);
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        let _ = writeln!(text, "{}", table(&["option", "meaning", "default"], rows));
    }
    if let Some(more) = command.get_after_help() {
        for paragraph in Paragraph::all(&more.to_string()) {
            let _ = match paragraph.heading {
                Some(heading) => writeln!(text, "{heading}:\n\n```\n{}\n```\n", unindented(paragraph.lines)),
                None => writeln!(text, "{}\n", plain(paragraph.lines)),
            };
        }
    }
    text
}

fn unindented(lines: &str) -> String {
    let indent = lines.lines().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    lines.lines().map(|line| &line[indent..]).collect::<Vec<_>>().join("\n")
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    usage.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Whether an argument is specific to the command; all commands have the others.
fn is_worth_telling(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
}

fn row(argument: &Arg) -> Vec<String> {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    // Computed defaults are described in the text.
    let (meaning, default) = match help.split_once(" [default: ") {
        Some((meaning, default)) => (plain(meaning), plain(default.trim_end_matches(']'))),
        None => (plain(&help), written_default(argument)),
    };
    vec![format!("`{}`", signature(argument)), meaning + &values(argument), default]
}

/// `-o`, `--output <OUT>`
fn signature(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    if argument.is_positional() {
        let many = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
        return value + if many { "..." } else { "" };
    }
    let short = argument.get_short().map(|short| format!("-{short}"));
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let long = argument.get_long().into_iter().chain(aliases).map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    names.join(", ") + &if takes_value { format!(" {value}") } else { String::new() }
}

fn written_default(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let values = argument.get_default_values().iter();
    values.map(|value| format!("`{}`", value.to_string_lossy())).collect::<Vec<_>>().join(", ")
}

/// The possible values, if they are a list.
fn values(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let values = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let values = values.map(|value| {
        let help = value.get_help().map(|help| format!(": {}", plain(&help.to_string())));
        format!("`{}`{}", value.get_name(), help.unwrap_or_default())
    });
    let values = values.collect::<Vec<_>>().join("; ");
    if values.is_empty() { values } else { format!(". {values}") }
}

/// Text in which only backquotes have a special meaning.
fn plain(text: &str) -> String {
    let mut written = String::new();
    let mut in_code = false;
    for c in text.chars() {
        in_code ^= c == '`';
        if !in_code && matches!(c, '*' | '_' | '<' | '[' | '\\') {
            written.push('\\');
        }
        written.push(c);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_no_emphasis() {
        assert_eq!(plain("com.acme.** or *Service, `a_*`"), "com.acme.\\*\\* or \\*Service, `a_*`");
    }

    #[test]
    fn a_row_has_all_that_help_has() {
        let mut example = Command::new("x").arg(
            clap::arg!(-d --deaths <WHERE> "How deaths are determined")
                .value_parser(["trace", "none"])
                .default_value("trace"),
        );
        example = example.arg(clap::arg!(-j --jobs <N> "Threads [default: one per processor]").required(false));
        example.build();
        let text = command(&example, "##");
        assert!(
            text.contains("| `-d, --deaths <WHERE>` | How deaths are determined. `trace`; `none` | `trace` |\n"),
            "{text}"
        );
        assert!(text.contains("| `-j, --jobs <N>` | Threads | one per processor |\n"), "{text}");
        assert!(text.contains("```\nx --deaths") || text.contains("```\nx [OPTIONS]"), "{text}");
    }
}
