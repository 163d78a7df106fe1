//! `format=text`: the runtime has its trace written as text at once.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use et_tests::compiled;
use et_tests::lab::{self, Lab};
use et_tests::program;
use libtest_mimic::Trial;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let cases: [(&str, lab::Case); 3] =
        [("text_in_a_file", to_a_file), ("text_to_a_command", to_a_command), ("text_of_a_killed_program", killed)];
    let cases = cases.into_iter().flat_map(|(name, case)| lab::on_one_jdk(name, case));
    let once = lab::on_jdk_unless(17, "no_program_to_make_the_text", |_, _| None, no_tool);
    lab::run(cases.chain([once]).collect::<Vec<Trial>>()).exit_code()
}

/// A folder, and the program that runs in it.
struct Bench<'a> {
    lab: &'a Lab,
    folder: PathBuf,
    java: PathBuf,
    options: Vec<String>,
    classes: PathBuf,
}

impl<'a> Bench<'a> {
    fn set_up(lab: &'a Lab, jdk: &Jdk, test: &str) -> Result<Self> {
        let folder = lab.folder(jdk, test)?;
        let source = program::programs(lab).join("endings/Busy.java");
        let classes = compiled::classes(lab, &source, 11)?;
        let traced = lab.instrumented(jdk)?;
        let options = traced.options(&folder.join("unused"));
        Ok(Self { lab, folder, java: traced.java(), options, classes })
    }

    /// Later options override earlier ones.
    fn run(&self, options: &[&str]) -> Command {
        let mut command = Command::new(&self.java);
        command.args(&self.options).arg("-Det.format=text").args(options).arg("-cp").arg(&self.classes);
        command.arg("Busy").arg("2000").current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn et_trace(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.lab.tools.et_trace());
        command.args(arguments).current_dir(&self.folder).output().context("cannot start et-trace")
    }

    fn clean(&self) -> Result<()> {
        if !lab::keep_traces() {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(())
    }
}

/// The program did as ever, and nothing is said.
fn unharmed(output: &Output) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.stdout == b"ready\ndone true\n" && output.status.code() == Some(7), "{}: {said}", output.status);
    ensure!(said.is_empty(), "{said}");
    Ok(())
}

/// The text is whole, has deaths, and keeps its invariants.
fn sound(bench: &Bench<'_>, text: &Path, more: &[&str]) -> Result<()> {
    let read = fs::read_to_string(text)?;
    ensure!(read.lines().last() == Some("# lost 0"), "{:?}", read.lines().last());
    let deaths = read.lines().filter(|line| line.starts_with("D ")).count();
    ensure!(deaths > 4000, "{deaths} deaths");
    let path = text.display().to_string();
    let output = bench.et_trace(&[&["validate", &path][..], more].concat())?;
    ensure!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn to_a_file(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "text_in_a_file")?;
    let text = bench.folder.join("t.txt");
    let options = ["-Det.traceFile=t.txt", "-Det.namesFile=t.names"];
    unharmed(&bench.run(&options).output()?)?;
    sound(&bench, &text, &["--with-names", "t.names"])?;
    // The next run writes over it.
    unharmed(&bench.run(&options).output()?)?;
    sound(&bench, &text, &["--with-names", "t.names"])?;
    // But not over a file that is not the text of a trace.
    fs::write(&text, "all my passwords")?;
    let output = bench.run(&options).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && said.contains("t.txt exists and is not a text of a trace"), "{said}");
    ensure!(fs::read(&text)? == b"all my passwords");
    bench.clean()
}

fn to_a_command(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "text_to_a_command")?;
    unharmed(&bench.run(&["-Det.traceFile=>(gzip > t-%p.gz)", "-Det.dialect=replayer"]).output()?)?;
    let mut files = fs::read_dir(&bench.folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let packed = files.find(|path| path.extension().is_some_and(|extension| extension == "gz")).context("no file")?;
    let text = bench.folder.join("t.txt");
    let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output()?;
    ensure!(unpacked.status.success(), "{}", unpacked.status);
    fs::write(&text, unpacked.stdout)?;
    sound(&bench, &text, &[])?;
    ensure!(fs::read_to_string(&text)?.starts_with("# Elephant Tracks, dialect replayer\n"));
    bench.clean()
}

/// The pipe is closed, and the text is made of what there is, the buffers' content included.
fn killed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "text_of_a_killed_program")?;
    let text = bench.folder.join("t.txt");
    let mut run = bench.run(&["-Det.traceFile=t.txt"]);
    let mut child = run.arg("wait").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut line)?;
    ensure!(line == "ready\n", "{line:?}");
    sleep(Duration::from_millis(1500));
    child.kill()?;
    // Standard error ends when the maker of the text does.
    let said = child.wait_with_output()?.stderr;
    let said = String::from_utf8_lossy(&said);
    ensure!(said.lines().count() == 1 && said.contains("cut off") && said.contains("chunk"), "{said}");
    let text = fs::read_to_string(&text)?;
    ensure!(text.lines().any(|line| line.starts_with("# trace is cut off")), "the text says nothing of it");
    ensure!(text.lines().last() == Some("# lost 0"), "{:?}", text.lines().last());
    // 2000 turns before it waited.
    let nodes = text.lines().filter(|line| line.starts_with("N ") && line.contains("LBusy$Node;")).count();
    ensure!(nodes == 2000, "{nodes} nodes");
    bench.clean()
}

fn no_tool(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "no_program_to_make_the_text")?;
    let output = bench.run(&["-Det.traceFile=t.txt", "-Det.traceTool=/no/such/tool"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && said.lines().count() == 1 && said.contains("traceTool"), "{said}");
    ensure!(!bench.folder.join("t.txt").exists(), "an empty file is left behind");
    bench.clean()
}
