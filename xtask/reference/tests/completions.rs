//! Completions in real shells: requested as by the tab key, and not only parsed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Command as Tool;
use libtest_mimic::{Arguments, Failed, Trial};

/// Completes lines from standard input in bash, calling the registered function as readline does.
const BASH: &str = include_str!("completions/ask.bash");
/// The same in zsh: in a pseudo-terminal, with the completions of a line written to a file instead of displayed.
const ZSH: &str = include_str!("completions/ask.zsh");
const ZSHRC: &str = include_str!("completions/zshrc");

fn main() {
    let case = |shell: &'static str, case: fn(&Path) -> Result<()>| {
        let run = move || {
            let folder = tempfile::tempdir().map_err(|error| Failed::from(error.to_string()))?;
            let done = et_reference::completions::write(folder.path()).and_then(|()| case(folder.path()));
            done.map_err(|error| Failed::from(format!("{error:#}")))
        };
        // `cargo xtask test` reports it.
        Trial::test(shell, run).with_ignored_flag(!exists(shell))
    };
    libtest_mimic::run(&Arguments::from_args(), vec![case("bash", in_bash), case("zsh", in_zsh)]).exit();
}

fn exists(shell: &str) -> bool {
    Command::new(shell).arg("-c").arg(":").stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

/// An incomplete line, and the words that must be among its completions.
struct Question {
    line: String,
    wanted: String,
}

/// Typical input, and each long option of each subcommand without its last letter.
fn questions() -> Vec<Question> {
    let mut all = Vec::new();
    for (line, wanted) in [
        ("et-trace su", "summary"),
        ("et-trace compare-deaths --js", "--json"),
        ("et-trace text --dialect repl", "replayer"),
        ("et-instrument pre", "prepare"),
        ("et-instrument cache li", "list"),
        ("et-instrument verify --report j", "json"),
        ("et-instrument jdk -o out --java-home home --rep", "--report"),
    ] {
        all.push(Question { line: line.into(), wanted: wanted.into() });
    }
    for tool in et_reference::tools() {
        options(&tool, tool.get_name(), &mut all);
    }
    assert!(all.len() > 80, "{} questions", all.len());
    all
}

fn options(tool: &Tool, typed: &str, all: &mut Vec<Question>) {
    let shown = tool.get_arguments().filter(|argument| !argument.is_hide_set());
    for option in shown.filter_map(clap::Arg::get_long) {
        let (most, _) = option.split_at(option.len() - 1);
        all.push(Question { line: format!("{typed} --{most}"), wanted: format!("--{option}") });
    }
    for subcommand in tool.get_subcommands() {
        options(subcommand, &format!("{typed} {}", subcommand.get_name()), all);
    }
}

/// Answers are in the order of the questions, one per line.
fn compare(shell: &str, output: &Output, questions: &[Question]) -> Result<()> {
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success() && errors.is_empty(), "{shell}: {}\n{said}{errors}", output.status);
    let answers: Vec<&str> = said.lines().collect();
    ensure!(answers.len() == questions.len(), "{} answers to {} questions\n{said}", answers.len(), questions.len());
    let pairs = questions.iter().zip(&answers);
    let wrong = pairs.filter(|(question, answer)| !answer.split(' ').any(|word| word == question.wanted));
    let wrong: Vec<String> =
        wrong.map(|(question, answer)| format!("{}: [{answer}], not {}", question.line, question.wanted)).collect();
    ensure!(wrong.is_empty(), "{} of {} are wrong\n{}", wrong.len(), questions.len(), wrong.join("\n"));
    Ok(())
}

/// The output of a shell that runs a script with the questions on standard input.
fn ask(shell: &mut Command, questions: &[Question]) -> Result<Output> {
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let lines: String = questions.iter().map(|question| format!("{}\n", question.line)).collect();
    child.stdin.take().context("no way to the shell")?.write_all(lines.as_bytes())?;
    Ok(child.wait_with_output()?)
}

fn in_bash(share: &Path) -> Result<()> {
    let questions = questions();
    let scripts = share.join("bash-completion/completions");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", BASH, "bash"]).arg(scripts);
    compare("bash", &ask(&mut bash, &questions)?, &questions)
}

fn in_zsh(share: &Path) -> Result<()> {
    let questions = questions();
    let home = share.join("home");
    fs::create_dir(&home)?;
    fs::write(home.join(".zshrc"), ZSHRC)?;
    let mut zsh = Command::new("zsh");
    zsh.args(["-f", "-c", ZSH]).env("ZDOTDIR", &home).env("HOME", &home).env("TERM", "dumb");
    zsh.env("ANSWERS", home.join("answers")).env("FUNCTIONS", share.join("zsh/site-functions"));
    compare("zsh", &ask(&mut zsh, &questions)?, &questions)
}
