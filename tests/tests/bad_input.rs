//! Bad input, through the command lines: one clear line, an exit code, and nothing half-made left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use anyhow::{Context, Result, ensure};
use et_tests::lab::{self, Lab};
use et_tests::program::Run;
use libtest_mimic::Trial;
use tempfile::TempDir;
use xtask::command;
use xtask::jdks::Jdk;

type Case = fn(&Bench) -> Result<()>;

fn main() -> ExitCode {
    let cases: [(&str, Case); 14] = [
        ("truncated_jar", truncated_jar),
        ("not_a_jar", not_a_jar),
        ("corrupt_class", corrupt_class),
        ("corrupt_class_in_a_jar", corrupt_class_in_a_jar),
        ("class_of_a_future_version", class_of_a_future_version),
        ("already_instrumented_jar", already_instrumented_jar),
        ("missing_input", missing_input),
        ("missing_jdk", missing_jdk),
        ("missing_runtime", missing_runtime),
        ("output_cannot_be_written", output_cannot_be_written),
        ("output_is_input", output_is_input),
        ("output_exists", output_exists),
        ("unknown_event", unknown_event),
        ("no_trace", no_trace),
    ];
    let mut trials: Vec<Trial> = cases
        .into_iter()
        .map(|(name, case)| Trial::test(name, move || lab::outcome(Bench::set_up().and_then(|bench| case(&bench)))))
        .collect();
    trials.extend(lab::on_each_jdk("trace_cut_in_the_middle", trace_cut_in_the_middle));
    lab::run(trials).exit_code()
}

/// A folder with a good jar and a good class in it.
struct Bench {
    lab: Lab,
    folder: TempDir,
    jar: PathBuf,
    class: PathBuf,
}

impl Bench {
    fn set_up() -> Result<Self> {
        let lab = Lab::open()?;
        let folder = tempfile::tempdir()?;
        let java = folder.path().join("Good.java");
        fs::write(&java, "public class Good { Object o; public static void main(String[] a) { new Good().o = a; } }")?;
        let javac = lab.compiler.javac().context("the compiler has no javac")?;
        command::quiet(
            Command::new(javac).args(["--release", "11", "-encoding", "UTF-8", "-d"]).arg(folder.path()).arg(&java),
        )?;
        let (jar, class) = (folder.path().join("good.jar"), folder.path().join("Good.class"));
        pack(&lab, &jar, folder.path())?;
        Ok(Self { lab, folder, jar, class })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn instrument(&self) -> Command {
        Command::new(self.lab.tools.et_instrument())
    }

    /// The command fails with one line that has all of `words`, and changes nothing in the folder.
    fn refused(&self, command: &mut Command, words: &[&str]) -> Result<()> {
        let before = listing(self.folder.path())?;
        refused(command, words)?;
        let after = listing(self.folder.path())?;
        ensure!(before == after, "something was left behind: {before:?} became {after:?}");
        Ok(())
    }
}

fn pack(lab: &Lab, jar: &Path, folder: &Path) -> Result<()> {
    let tool = lab.compiler.home.join("bin/jar");
    command::quiet(Command::new(tool).arg("--create").arg("--file").arg(jar).arg("-C").arg(folder).arg("Good.class"))
        .map(drop)
}

fn listing(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        entries.push((entry.path(), entry.metadata()?.len()));
    }
    entries.sort();
    Ok(entries)
}

fn run(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", command::shown(command)))
}

fn refused(command: &mut Command, words: &[&str]) -> Result<()> {
    let output = run(command)?;
    let shown = command::shown(command);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().with_context(|| format!("{shown} was killed by a signal\n{stderr}"))?;
    ensure!(code != 0, "{shown} succeeded\n{stderr}");
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    ensure!(lines.len() == 1, "{shown}: one line was expected on standard error, not\n{stderr}");
    ensure!(!stderr.contains("panicked"), "{shown}: {stderr}");
    for word in words {
        ensure!(stderr.contains(word), "{shown}: {word:?} is missing in {stderr}");
    }
    Ok(())
}

fn truncated_jar(bench: &Bench) -> Result<()> {
    let bytes = fs::read(&bench.jar)?;
    for kept in [bytes.len() - 1, bytes.len() / 2, 30, 4, 1, 0] {
        let cut = bench.path("cut.jar");
        fs::write(&cut, &bytes[..kept])?;
        bench.refused(bench.instrument().arg(&cut).arg("-o").arg(bench.path("out.jar")), &["cut.jar"])?;
    }
    Ok(())
}

fn not_a_jar(bench: &Bench) -> Result<()> {
    let text = bench.path("notes.jar");
    fs::write(&text, "just some text, long enough to hold an end record if it were one ".repeat(20))?;
    bench.refused(bench.instrument().arg(&text).arg("-o").arg(bench.path("out.jar")), &["notes.jar"])
}

fn corrupt_class(bench: &Bench) -> Result<()> {
    let bytes = fs::read(&bench.class)?;
    let corrupt = bench.path("Corrupt.class");
    let mut swapped = bytes.clone();
    // The constant pool is said to be larger than it is.
    swapped[8..10].copy_from_slice(&[0xff, 0xff]);
    for bytes in [&swapped[..], &bytes[..bytes.len() / 2], &bytes[..10], b"\xca\xfe\xba\xbe"] {
        fs::write(&corrupt, bytes)?;
        bench.refused(bench.instrument().arg(&corrupt).arg("-o").arg(bench.path("Out.class")), &["Corrupt.class"])?;
    }
    Ok(())
}

/// One bad class must not keep the rest of a jar from being rewritten; `--strict` says otherwise.
fn corrupt_class_in_a_jar(bench: &Bench) -> Result<()> {
    let bytes = fs::read(&bench.class)?;
    fs::write(&bench.class, &bytes[..bytes.len() / 2])?;
    let jar = bench.path("half.jar");
    pack(&bench.lab, &jar, bench.folder.path())?;
    let out = bench.path("out.jar");
    bench.refused(bench.instrument().arg("--strict").arg(&jar).arg("-o").arg(&out), &["half.jar", "Good.class"])?;
    let output = run(bench.instrument().arg(&jar).arg("-o").arg(&out))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    ensure!(output.status.success() && out.is_file(), "{said}");
    ensure!(said.contains("Good.class"), "the class that was skipped is not named: {said}");
    Ok(())
}

fn class_of_a_future_version(bench: &Bench) -> Result<()> {
    let mut bytes = fs::read(&bench.class)?;
    bytes[6..8].copy_from_slice(&199_u16.to_be_bytes());
    let future = bench.path("Future.class");
    fs::write(&future, bytes)?;
    bench.refused(bench.instrument().arg(&future).arg("-o").arg(bench.path("Out.class")), &["Future.class", "199"])
}

fn already_instrumented_jar(bench: &Bench) -> Result<()> {
    let once = bench.path("once.jar");
    command::quiet(bench.instrument().arg(&bench.jar).arg("-o").arg(&once))?;
    let out = bench.path("twice.jar");
    bench.refused(bench.instrument().arg(&once).arg("-o").arg(&out), &["once.jar", "already instrumented"])
}

fn missing_input(bench: &Bench) -> Result<()> {
    let (missing, out) = (bench.path("missing.jar"), bench.path("out.jar"));
    bench.refused(bench.instrument().arg(&missing).arg("-o").arg(&out), &["missing.jar"])?;
    // Nothing is written for the good ones either.
    bench.refused(bench.instrument().arg(&bench.jar).arg(&missing).arg("-o").arg(&out), &["missing.jar"])
}

fn missing_jdk(bench: &Bench) -> Result<()> {
    let out = bench.path("jdk-et");
    for home in [bench.path("no-jdk"), bench.folder.path().to_owned(), bench.jar.clone()] {
        let mut command = bench.instrument();
        let home_name = home.display().to_string();
        bench.refused(command.arg("jdk").arg("--java-home").arg(&home).arg("-o").arg(&out), &[&home_name])?;
    }
    Ok(())
}

fn missing_runtime(bench: &Bench) -> Result<()> {
    let empty = bench.path("empty");
    fs::create_dir(&empty)?;
    let mut command = bench.instrument();
    command.arg("jdk").arg("--java-home").arg(&bench.lab.compiler.home).arg("-o").arg(bench.path("jdk-et"));
    bench.refused(command.env("ET_RUNTIME_DIR", &empty), &["ET_RUNTIME_DIR"])
}

/// Root may write anywhere, but not below a file, nor into /proc.
fn output_cannot_be_written(bench: &Bench) -> Result<()> {
    for (out, word) in [(bench.class.join("out.jar"), "Good.class"), (PathBuf::from("/proc/et-out.jar"), "/proc")] {
        bench.refused(bench.instrument().arg(&bench.jar).arg("-o").arg(&out), &[word])?;
    }
    let mut command = bench.instrument();
    command.arg("jdk").arg("--java-home").arg(&bench.lab.compiler.home).arg("-o").arg(bench.class.join("jdk-et"));
    bench.refused(&mut command, &["Good.class"])
}

fn output_is_input(bench: &Bench) -> Result<()> {
    bench.refused(bench.instrument().arg(&bench.jar).arg("-o").arg(&bench.jar), &["good.jar"])?;
    let classes = bench.path("classes");
    fs::create_dir(&classes)?;
    fs::copy(&bench.class, classes.join("Good.class"))?;
    bench.refused(bench.instrument().arg(&classes).arg("-o").arg(&classes), &["classes"])?;
    bench.refused(bench.instrument().arg(&classes).arg("-o").arg(classes.join("et")), &["classes"])?;
    // The same file by another name.
    let link = bench.path("link.jar");
    std::os::unix::fs::symlink(&bench.jar, &link)?;
    bench.refused(bench.instrument().arg(&bench.jar).arg("-o").arg(&link), &["good.jar"])
}

fn output_exists(bench: &Bench) -> Result<()> {
    let out = bench.path("out.jar");
    fs::write(&out, "precious")?;
    bench.refused(bench.instrument().arg(&bench.jar).arg("-o").arg(&out), &["out.jar", "--force"])?;
    ensure!(fs::read(&out)? == b"precious", "the file that was there is gone");
    Ok(())
}

fn unknown_event(bench: &Bench) -> Result<()> {
    let mut command = bench.instrument();
    command.args(["--events", "alloc,smell"]).arg(&bench.jar).arg("-o").arg(bench.path("out.jar"));
    let output = run(&mut command)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2) && stderr.contains("smell"), "{stderr}");
    Ok(())
}

fn no_trace(bench: &Bench) -> Result<()> {
    for verb in ["summary", "text", "validate"] {
        let command = || {
            let mut command = Command::new(bench.lab.tools.et_trace());
            command.arg(verb);
            command
        };
        bench.refused(command().arg(bench.path("missing.ettrace")), &["missing.ettrace"])?;
        bench.refused(command().arg(&bench.jar), &["good.jar"])?;
        let empty = bench.path("empty.ettrace");
        fs::write(&empty, "")?;
        bench.refused(command().arg(&empty), &["empty.ettrace"])?;
    }
    Ok(())
}

/// What is whole is read; that something is missing is said, and shows in the exit code.
fn trace_cut_in_the_middle(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let run = Run::of(lab, jdk, "trace_cut", "Objects")?;
    let bytes = fs::read(&run.trace)?;
    let cut = run.folder.join("cut.ettrace");
    for kept in [bytes.len() - 1, bytes.len() / 2, bytes.len() / 3] {
        fs::write(&cut, &bytes[..kept])?;
        refused(Command::new(lab.tools.et_trace()).arg("validate").arg(&cut).stdout(Stdio::null()), &["cut"])?;
        let mut summary = Command::new(lab.tools.et_trace());
        let output = self::run(summary.arg("summary").arg(&cut))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        ensure!(said.contains("cut off") && !said.contains("panicked"), "{} of {} bytes: {said}", kept, bytes.len());
    }
    run.clean()
}
