//! Runs that end abnormally: killed, without space for the trace, without a reader. The program must not be affected,
//! one line says what happened, and the trace contains the reason.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use et_tests::compiled;
use et_tests::jvmpi;
use et_tests::lab::{self, Lab};
use et_tests::names::Names;
use et_tests::program;
use libtest_mimic::Trial;
use serde_json::Value;
use xtask::jdks::Jdk;

fn main() -> ExitCode {
    let on_one: [(&str, lab::Case); 5] = [
        ("killed", killed),
        ("buffers_cut_short", buffers_cut_short),
        ("busy_at_the_end", busy_at_the_end),
        ("standard_files_closed", standard_files_closed),
        ("crash_without_memory", crash_without_memory),
    ];
    let mut trials: Vec<Trial> = on_one.into_iter().flat_map(|(name, case)| lab::on_one_jdk(name, case)).collect();
    trials.extend(lab::on_one_jdk_unless("full_disk", |_, _| no_small_disk(), full_disk));
    trials.extend(lab::on_each_jdk("exit_without_memory", exit_without_memory));
    trials.extend(lab::on_each_jdk("exits_at_once", exits_at_once));
    let once: [(&str, lab::Case); 12] = [
        ("trace_emptied", trace_emptied),
        ("nobody_reads", nobody_reads),
        ("nobody_reads_and_the_end_is_asked_for", terminated_without_a_reader),
        ("text_of_a_killed_program", text_of_a_killed_program),
        ("file_size_limit", file_size_limit),
        ("folder_removed", folder_removed),
        ("pipe_closed", pipe_closed),
        ("killed_before_a_pipe", killed_before_a_pipe),
        ("killed_while_it_waits_and_read_from_elsewhere", killed_and_moved),
        ("killed_at_any_moment", killed_at_any_moment),
        ("terminated", terminated),
        ("out_of_memory", out_of_memory),
    ];
    trials.extend(once.into_iter().map(|(name, case)| lab::on_jdk_unless(17, name, |_, _| None, case)));
    lab::run(trials).exit_code()
}

/// Output of the program, whatever happens to its trace.
const PRINTED: &str = "ready\ndone true\n";
const CODE: i32 = 7;
/// Turns that leave far more than any of the limits here.
const MANY: &str = "1500000";
const FEW: &str = "2000";

/// A program in a separate folder.
struct Bench<'a> {
    lab: &'a Lab,
    folder: PathBuf,
    trace: PathBuf,
    /// The launcher and its options, the class last.
    java: Vec<String>,
    variables: Vec<(String, String)>,
}

impl<'a> Bench<'a> {
    fn set_up(lab: &'a Lab, jdk: &Jdk, test: &str) -> Result<Self> {
        Self::of(lab, jdk, test, "Busy")
    }

    fn of(lab: &'a Lab, jdk: &Jdk, test: &str, class: &str) -> Result<Self> {
        let folder = lab.folder(jdk, test)?;
        let source = program::programs(lab).join("endings").join(class).with_extension("java");
        let classes = compiled::classes(lab, &source, 11)?;
        let traced = lab.instrumented(jdk)?;
        let place = folder.join("disk");
        fs::create_dir(&place)?;
        let trace = place.join("t.ettrace");
        let mut java = vec![traced.java().display().to_string()];
        java.extend(traced.options(&trace));
        java.extend(["-Det.bufferSize=1m".into(), "-cp".into(), classes.display().to_string(), class.to_owned()]);
        Ok(Self { lab, folder, trace, java, variables: Vec::new() })
    }

    /// Sets another `traceFile`.
    fn trace_to(&mut self, target: &str) -> Result<()> {
        let is_it = |option: &String| option.starts_with("-Det.traceFile=");
        let at = self.java.iter().position(is_it).context("no option")?;
        self.java[at] = format!("-Det.traceFile={target}");
        Ok(())
    }

    /// Runs it under a shell script, which finds the launcher and its options in its own.
    fn under(&self, script: &str, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args(&self.java).args(arguments).current_dir(&self.folder);
        command.stdin(Stdio::null()).output().context("cannot start sh")
    }

    /// Starts it; it has made events and waits.
    fn waiting(&self, turns: &str) -> Result<Waiting> {
        self.started(&[turns, "wait"])
    }

    /// Starts it; it has said that it is ready.
    fn started(&self, arguments: &[&str]) -> Result<Waiting> {
        let mut command = Command::new(&self.java[0]);
        command.args(&self.java[1..]).args(arguments).current_dir(&self.folder).envs(self.variables.iter().cloned());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("no java")?;
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().context("no pipe")?);
        stdout.read_line(&mut line)?;
        ensure!(line == "ready\n", "{line:?}");
        Ok(Waiting { child, stdout, line })
    }

    /// Waits until what the program has made so far is in the trace: what is on its way cannot look at the file once more.
    fn until_written(&self) -> Result<()> {
        let mut before = 0;
        loop {
            let now = fs::metadata(&self.trace)?.len();
            if now == before && now > 0 {
                return Ok(());
            }
            before = now;
            sleep(Duration::from_millis(300));
        }
    }

    fn et_trace(&self, arguments: &[&str], trace: &Path) -> Result<Output> {
        let mut command = Command::new(self.lab.tools.et_trace());
        command.args(arguments).arg(trace).output().context("cannot start et-trace")
    }

    /// What is left satisfies its invariants, and every command reports its state correctly.
    fn readable(&self, trace: &Path, words: &[&str]) -> Result<Value> {
        for command in [&["validate", "--deaths", "none"][..], &["info"], &["summary", "--deaths", "none", "--json"]] {
            let output = self.et_trace(command, trace)?;
            let (stdout, said) = (text(&output.stdout), text(&output.stderr));
            ensure!(output.status.code() == Some(3), "{command:?} ended with {}: {said}{stdout}", output.status);
            // On a slow machine it also says how far it is.
            let lines = said.lines().filter(|line| !line.starts_with("et-trace: after "));
            ensure!(lines.count() == 1, "{command:?}: {said}");
            for word in words {
                ensure!(said.contains(word), "{command:?}: {word:?} is missing in {said}");
            }
            if command[0] == "summary" {
                return Ok(serde_json::from_str(&stdout)?);
            }
        }
        anyhow::bail!("no summary")
    }

    /// A recovered trace is as good as what was cut off.
    fn recovered(&self) -> Result<PathBuf> {
        let whole = self.folder.join("whole.ettrace");
        let output = self.et_trace(&["recover", "--force", "-o", &whole.display().to_string()], &self.trace)?;
        ensure!(output.status.success(), "{}", text(&output.stderr));
        let output = self.et_trace(&["validate"], &whole)?;
        ensure!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        Ok(whole)
    }

    fn clean(&self) -> Result<()> {
        if !lab::keep_traces() {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(())
    }
}

struct Waiting {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    line: String,
}

impl Waiting {
    fn go_on(mut self) -> Result<Output> {
        // It may have ended already.
        let _ = self.child.stdin.take().context("no pipe")?.write_all(b"\n");
        self.ended()
    }

    fn ended(mut self) -> Result<Output> {
        let mut printed = self.line.into_bytes();
        std::io::Read::read_to_end(&mut self.stdout, &mut printed)?;
        let output = self.child.wait_with_output()?;
        Ok(Output { stdout: printed, ..output })
    }

    /// As `kill PID` does, while the program waits.
    fn terminate(self) -> Result<Output> {
        let status = Command::new("kill").arg(self.child.id().to_string()).status()?;
        ensure!(status.success(), "kill ended with {status}");
        self.ended()
    }

    fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The program did as ever; one line says what became of its trace.
fn unharmed(output: &Output, words: &[&str]) -> Result<()> {
    let said = text(&output.stderr);
    ensure!(text(&output.stdout) == PRINTED, "{:?} {said}", text(&output.stdout));
    ensure!(output.status.code() == Some(CODE), "{}: {said}", output.status);
    let lines: Vec<&str> = said.lines().collect();
    ensure!(lines.len() == 1 && lines[0].starts_with("elephant-tracks: "), "{said}");
    for word in words {
        ensure!(said.contains(word), "{word:?} is missing in {said}");
    }
    Ok(())
}

/// Checks that the summary says when and why tracing stopped, and what was lost.
fn stopped(summary: &Value, why: &str) -> Result<()> {
    let stopped = &summary["stopped"];
    ensure!(summary["complete"] == false && summary["seconds"].as_f64() > Some(0.0), "{summary}");
    ensure!(stopped["why"].as_str().is_some_and(|text| text.contains(why)), "{stopped}");
    ensure!(stopped["seconds"].as_f64() > Some(0.0), "{stopped}");
    ensure!(stopped["lostEvents"].as_u64() > Some(0) && stopped["lostChunks"].as_u64() > Some(0), "{stopped}");
    counted(summary)
}

/// Counts that are stored separately from events.
fn counted(summary: &Value) -> Result<()> {
    let dynamic = &summary["dynamic"];
    ensure!(dynamic["rewritten"].as_u64() > Some(0), "{dynamic}");
    ensure!(summary["records"]["total"].as_u64() > Some(1000), "{}", summary["records"]);
    Ok(())
}

fn killed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "killed")?;
    let run = bench.waiting(FEW)?;
    bench.readable(&bench.trace, &["cut off after", "the program still runs"])?;
    // The counts are written when nothing else is to be.
    sleep(Duration::from_millis(1500));
    run.kill()?;
    let summary = bench.readable(&bench.trace, &["killed", "last sign of life", "the buffer file beside it held"])?;
    counted(&summary)?;
    ensure!(summary["stopped"].is_null() && summary["lost"] == 0, "{summary}");
    // 2000 turns before it waited, to the last.
    let records = text(&bench.et_trace(&["text", "--deaths", "none", "--names", "/dev/null"], &bench.trace)?.stdout);
    ensure!(records.lines().any(|line| line.starts_with("# trace is cut off")), "the text says nothing of it");

    let whole = bench.recovered()?;
    let again = text(&bench.et_trace(&["text", "--deaths", "none"], &whole)?.stdout);
    let only = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    ensure!(only(&records) == only(&again), "the recovered trace has other records");
    bench.clean()
}

/// Without its buffer file, and with that of another run or with garbage in its place.
fn killed_and_moved(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "killed_and_moved")?;
    let buffers = PathBuf::from(format!("{}.buf", bench.trace.display()));
    let other = bench.folder.join("other.buf");
    bench.waiting(FEW)?.kill()?;
    fs::rename(&buffers, &other)?;
    let run = bench.waiting(FEW)?;
    sleep(Duration::from_millis(1500));
    run.kill()?;
    bench.readable(&bench.trace, &["more chunk"])?;
    fs::rename(&other, &buffers)?;
    bench.readable(&bench.trace, &["belongs to another run", "an unknown number"])?;
    fs::write(&buffers, "garbage")?;
    bench.readable(&bench.trace, &["cannot be read", "an unknown number"])?;
    fs::remove_file(&buffers)?;
    bench.readable(&bench.trace, &["no buffer file", "an unknown number"])?;
    bench.clean()
}

/// How often the program is killed in a test; `ET_KILLS` says otherwise.
const KILLS: u32 = 5;

/// Every event that happened before the program was killed is in the trace, in its order. The program counts them itself.
fn killed_at_any_moment(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::of(lab, jdk, "killed_at_any_moment", "Numbered")?;
    let kills = std::env::var("ET_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let counts = bench.folder.join("counts");
    for kill in 0..kills {
        // Spread over the first half second: start-up, the interpreter, the compilers.
        let moment = Duration::from_millis(u64::from(kill * 7919 % 509));
        fs::write(&counts, [0; 8])?;
        let run = bench.started(&[&counts.display().to_string()])?;
        sleep(moment);
        run.kill()?;
        nothing_is_missing(&bench, &fs::read(&counts)?)
            .with_context(|| format!("killed {moment:?} after it was ready"))?;
        bench.readable(&bench.trace, &["killed"])?;
        bench.recovered()?;
    }
    bench.clean()
}

fn nothing_is_missing(bench: &Bench<'_>, counts: &[u8]) -> Result<()> {
    let (text, names) = (bench.folder.join("text"), bench.folder.join("names"));
    let (text_option, names_option) = (text.display().to_string(), names.display().to_string());
    bench.et_trace(&["text", "--deaths", "none", "-o", &text_option, "--names", &names_option], &bench.trace)?;
    let names = Names::parse(&fs::read_to_string(&names)?)?;
    for (at, method) in [(0, "bytes"), (4, "chars")] {
        let count = counts.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        let is_its = |site: &u64| {
            let place = names.sites.get(site).and_then(|site| names.methods.get(&site.method));
            place.is_some_and(|place| place.name == method && &*place.class == "Numbered")
        };
        let mut made = 0;
        for line in BufReader::new(File::open(&text)?).lines() {
            let line = line?;
            let words: Vec<&str> = line.split(' ').collect();
            let ["A", _, _, _, site, length, _] = words[..] else { continue };
            if is_its(&u64::from_str_radix(site, 16)?) {
                let length = u32::from_str_radix(length, 16)?;
                ensure!(length == made % 1000, "{method}: number {made} has length {length}");
                made += 1;
            }
        }
        // One may have been made and not counted yet.
        ensure!(made == count || made == count + 1, "{method}: {made} in the trace, {count} were made");
    }
    Ok(())
}

/// The VM ends in order: nothing is to be said.
fn terminated(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "terminated")?;
    let output = bench.waiting(FEW)?.terminate()?;
    ensure!(output.status.code() == Some(128 + 15), "{}", output.status);
    ensure!(text(&output.stdout) == "ready\n" && output.stderr.is_empty(), "{}", text(&output.stderr));
    let output = bench.et_trace(&["validate"], &bench.trace)?;
    ensure!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    bench.clean()
}

/// The program dies of it as it does without a trace.
fn out_of_memory(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::of(lab, jdk, "out_of_memory", "Hungry")?;
    let class_path = &bench.java[bench.java.len() - 3..];
    let plain = Command::new(jdk.java()).arg("-Xmx24m").args(class_path).output()?;
    let traced = Command::new(&bench.java[0]).arg("-Xmx24m").args(&bench.java[1..]).output()?;
    ensure!(plain.status.code() == traced.status.code(), "{} {}", plain.status, text(&traced.stderr));
    ensure!(plain.stdout == traced.stdout && plain.stderr == traced.stderr, "{}", text(&traced.stderr));
    let output = bench.et_trace(&["validate"], &bench.trace)?;
    ensure!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    bench.clean()
}

/// HotSpot waits 0.3 s for threads that are in native code when it ends: the agents must have ended theirs.
fn exits_at_once(lab: &Lab, jdk: &Jdk) -> Result<()> {
    /// The fastest of the runs ends sooner, even on a busy machine.
    const AT_ONCE: Duration = Duration::from_millis(250);
    const RUNS: usize = 12;
    let bench = Bench::of(lab, jdk, "exits_at_once", "Exits")?;
    let class_path = bench.java[bench.java.len() - 3..].iter().cloned();
    let survival = [bench.java[0].clone(), "-Det.survival=5".into()].into_iter().chain(bench.java[1..].iter().cloned());
    let monitor = format!("-agentpath:{}", lab.tools.lib().join("libet_monitor.so").display());
    let agent = jvmpi::agent(lab, "tests/jvmpi/empty.c")?;
    let hosted = format!("{}={}:alloc", jvmpi::host()?, agent.display());
    let with =
        |agent| [jdk.java().display().to_string(), agent].into_iter().chain(class_path.clone()).collect::<Vec<_>>();
    let (monitored, hosted) = (with(monitor), with(hosted));
    let all =
        [("traced", bench.java.clone()), ("survival", survival.collect()), ("monitor", monitored), ("JVMPI", hosted)];
    for (what, command) in all {
        for exits in [None, Some("exit")] {
            let mut least = Duration::MAX;
            for _ in 0..RUNS {
                let output = Command::new(&command[0]).args(&command[1..]).args(exits).output()?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
                let said = text(&output.stdout).trim().parse().with_context(|| text(&output.stderr))?;
                least = least.min(now.saturating_sub(Duration::from_millis(said)));
                if least < AT_ONCE {
                    break;
                }
            }
            ensure!(least < AT_ONCE, "{what}, {exits:?}: the fastest of {RUNS} runs took {least:?} to end");
        }
    }
    bench.clean()
}

/// By an option of the VM's, which from some version on leaves without the handlers of exits.
fn exit_without_memory(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::of(lab, jdk, "exit_without_memory", "Hungry")?;
    let options = ["-Xmx24m", "-XX:+ExitOnOutOfMemoryError", "-XX:OnOutOfMemoryError=true"];
    let class_path = &bench.java[bench.java.len() - 3..];
    let plain = Command::new(jdk.java()).args(options).args(class_path).output()?;
    let traced = Command::new(&bench.java[0]).args(options).args(&bench.java[1..]).output()?;
    ensure!(plain.status.code() == Some(3) && traced.status.code() == Some(3), "{} {}", plain.status, traced.status);
    let last = |output: &Output| text(&output.stdout).lines().last().unwrap_or_default().to_owned();
    ensure!(last(&plain) == last(&traced) && traced.stderr.is_empty(), "{}{}", last(&traced), text(&traced.stderr));
    let output = bench.et_trace(&["validate"], &bench.trace)?;
    ensure!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    bench.clean()
}

/// The VM aborts, or a command of the user's kills it: what there was is read, and can be recovered.
fn crash_without_memory(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::of(lab, jdk, "crash_without_memory", "Hungry")?;
    let log = format!("-XX:ErrorFile={}", bench.folder.join("hs_err.log").display());
    for option in ["-XX:+CrashOnOutOfMemoryError", "-XX:OnOutOfMemoryError=kill -9 %p"] {
        let mut java = Command::new(&bench.java[0]);
        java.args(["-Xmx24m", "-XX:-CreateCoredumpOnCrash", &log, option]).args(&bench.java[1..]);
        let output = java.current_dir(&bench.folder).output()?;
        ensure!(!output.status.success(), "{option}: {}", output.status);
        bench.readable(&bench.trace, &["cut off after", "killed"])?;
        bench.recovered()?;
    }
    bench.clean()
}

/// Standard files that are closed when the program starts stay closed: neither trace nor buffers get their numbers, and
/// no output gets into them.
fn standard_files_closed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    for (closed, prints) in [("<&-", true), (">&-", false), ("<&- >&- 2>&-", false)] {
        let bench = Bench::set_up(lab, jdk, "standard_files_closed")?;
        let output = bench.under(&format!("exec \"$@\" {closed}"), &[FEW])?;
        let (printed, said) = (text(&output.stdout), text(&output.stderr));
        ensure!(output.status.code() == Some(CODE) && said.is_empty(), "{closed}: {} {said}", output.status);
        ensure!(printed == if prints { PRINTED } else { "" }, "{closed}: {printed}");
        let output = bench.et_trace(&["validate"], &bench.trace)?;
        ensure!(output.status.success(), "{closed}: {}{}", text(&output.stdout), text(&output.stderr));
        // The commands as well: each writes the same file as ever.
        let written = |command: &str, to: &str, closed: &str| -> Result<Vec<u8>> {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{command} {closed}")]).current_dir(&bench.folder);
            shell.env("trace", &bench.trace).env("bin", lab.tools.root.join("bin"));
            let output = shell.stdin(Stdio::null()).output()?;
            ensure!(output.status.success(), "{command} {closed}: {}", text(&output.stderr));
            let file = bench.folder.join(to);
            let bytes = fs::read(&file)?;
            fs::remove_file(&file)?;
            Ok(bytes)
        };
        for (command, to) in [
            ("\"$bin/et-trace\" text \"$trace\" -o text", "text"),
            ("\"$bin/et-replay\" prepare \"$trace\" -o ops", "ops"),
        ] {
            ensure!(written(command, to, "")? == written(command, to, closed)?, "{command} {closed}: another file");
        }
        bench.clean()?;
    }
    Ok(())
}

/// How to get a mount of one's own.
const UNSHARE: [&[&str]; 2] = [&["--mount"], &["--map-root-user", "--mount"]];

fn small_disk() -> Option<&'static [&'static str]> {
    let works = |options: &&&[&str]| {
        let script = "mount -t tmpfs -o size=1m none /mnt";
        let mut command = Command::new("unshare");
        command.args(**options).args(["sh", "-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    UNSHARE.iter().find(works).copied()
}

fn no_small_disk() -> Option<String> {
    small_disk().is_none().then(|| "no permission to mount a small file system".to_owned())
}

fn full_disk(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "full_disk")?;
    let options = small_disk().context("no permission to mount")?;
    // Copies the remains out of the mount, which is private.
    let script = format!(
        "exec unshare {} sh -c 'mount -t tmpfs -o size=24m none disk || exit 99; \"$@\"; code=$?; cp disk/* .; exit $code' sh \"$@\"",
        options.join(" ")
    );
    let output = bench.under(&script, &[MANY])?;
    unharmed(&output, &["tracing stops here, the program runs on", "t.ettrace", "No space left"])?;
    ensure!(!bench.folder.join("t.ettrace.buf").exists(), "the buffer file is left behind");
    let trace = bench.folder.join("t.ettrace");
    let summary = bench.readable(&trace, &["cut off after", "No space left", "did not reach the trace"])?;
    stopped(&summary, "No space left")?;
    bench.clean()
}

fn file_size_limit(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "file_size_limit")?;
    // In blocks of 512 bytes or of 1024, as the shell has it.
    let output = bench.under("ulimit -f 24000; exec \"$@\"", &[MANY])?;
    unharmed(&output, &["tracing stops here, the program runs on", "t.ettrace", "too large"])?;
    let summary = bench.readable(&bench.trace, &["cut off after", "too large", "did not reach the trace"])?;
    stopped(&summary, "too large")?;
    bench.clean()
}

fn folder_removed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "folder_removed")?;
    let run = bench.waiting(FEW)?;
    fs::remove_dir_all(bench.folder.join("disk"))?;
    unharmed(&run.go_on()?, &["tracing stops here, the program runs on", "t.ettrace was removed"])?;
    bench.clean()
}

fn pipe_closed(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut bench = Bench::set_up(lab, jdk, "pipe_closed")?;
    let got = bench.folder.join("got.ettrace");
    bench.trace_to(&format!(">(head -c 9000000 > '{}')", got.display()))?;
    unharmed(&bench.under("exec \"$@\"", &[MANY])?, &["tracing stops here, the program runs on", "Broken pipe"])?;
    bench.readable(&got, &["cut off after", "last sign of life", "an unknown number"])?;
    bench.clean()
}

/// Stores to a mapping without a file behind it are `SIGBUS`, which must not reach the program.
fn buffers_cut_short(lab: &Lab, jdk: &Jdk) -> Result<()> {
    for (test, length) in [("buffers_emptied", 0), ("buffers_halved", 700_000)] {
        let bench = Bench::set_up(lab, jdk, test)?;
        let run = bench.waiting(MANY)?;
        let buffers = PathBuf::from(format!("{}.buf", bench.trace.display()));
        ensure!(fs::metadata(&buffers)?.permissions().mode() & 0o777 == 0o600, "others may read the buffer file");
        File::options().write(true).open(&buffers)?.set_len(length)?;
        unharmed(&run.go_on()?, &["tracing stops here, the program runs on", "t.ettrace.buf short"])?;
        ensure!(!buffers.exists(), "the buffer file is left behind");
        bench.readable(&bench.trace, &["cut off after", "t.ettrace.buf short"])?;
        bench.clean()?;
    }
    Ok(())
}

fn trace_emptied(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::set_up(lab, jdk, "trace_emptied")?;
    let run = bench.waiting(MANY)?;
    bench.until_written()?;
    File::options().write(true).open(&bench.trace)?.set_len(0)?;
    unharmed(&run.go_on()?, &["tracing stops here, the program runs on", "t.ettrace short or written over"])?;
    ensure!(fs::metadata(&bench.trace)?.len() == 0, "something was written to what is no trace any more");
    bench.clean()
}

/// Events up to VM shutdown are in the trace, or it says how many are missing.
fn busy_at_the_end(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let bench = Bench::of(lab, jdk, "busy_at_the_end", "Endless")?;
    let counts = bench.folder.join("counts");
    let path = counts.display().to_string();
    for by_signal in [false, true] {
        fs::write(&counts, [0; 8])?;
        let (output, code) = match by_signal {
            false => (bench.started(&[&path, "exit"])?.ended()?, CODE),
            true => {
                let run = bench.started(&[&path])?;
                sleep(Duration::from_millis(300));
                (run.terminate()?, 128 + 15)
            }
        };
        ensure!(output.status.code() == Some(code) && output.stderr.is_empty(), "{}", text(&output.stderr));
        let summary = bench.et_trace(&["summary", "--deaths", "none", "--json"], &bench.trace)?;
        ensure!(summary.status.success(), "{}", text(&summary.stderr));
        let summary: Value = serde_json::from_slice(&summary.stdout)?;
        ensure!(summary["lost"] == 0 && summary["complete"] == true, "{summary}");
        let late: u64 = summary["problems"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|problem| problem["what"].as_str().is_some_and(|what| what.contains("while the VM went down")))
            .filter_map(|problem| problem["count"].as_u64())
            .sum();
        let made: u64 = fs::read(&counts)?
            .chunks_exact(4)
            .filter_map(|bytes| bytes.try_into().ok())
            .map(|bytes| u64::from(u32::from_be_bytes(bytes)))
            .sum();
        let records =
            text(&bench.et_trace(&["text", "--deaths", "none", "--names", "/dev/null"], &bench.trace)?.stdout);
        let told = records.lines().filter(|line| line.starts_with("A ") && line.split(' ').nth(5) == Some("5")).count();
        // Each array is one event; others may have been made elsewhere.
        ensure!(told as u64 + late >= made, "{told} in the trace, {late} late, {made} made");
        ensure!(made > 1000, "{made} made");
    }
    bench.clean()
}

/// The program blocks for the configured time, and then no longer.
fn nobody_reads(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut bench = Bench::set_up(lab, jdk, "nobody_reads")?;
    bench.trace_to(">(exec sleep 60 > /dev/null 2>&1)")?;
    bench.java.insert(1, "-Det.patience=500ms".into());
    let output = bench.under("exec \"$@\"", &[MANY])?;
    unharmed(&output, &["tracing stops here, the program runs on", "nothing of it was taken for 500ms"])?;
    // A reader that has received everything and does not exit is not waited for either.
    bench.trace_to(">(exec > /dev/null 2>&1; cat; exec sleep 30)")?;
    let output = bench.under("exec \"$@\"", &[FEW])?;
    unharmed(&output, &["has not ended 500ms after the program", "goes on by itself"])?;
    bench.clean()
}

/// Long before the patience is at its end.
fn terminated_without_a_reader(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut bench = Bench::of(lab, jdk, "terminated_without_a_reader", "Endless")?;
    bench.trace_to(">(exec sleep 60 > /dev/null 2>&1)")?;
    bench.java.insert(1, "-Det.patience=10m".into());
    let run = bench.started(&[&bench.folder.join("counts").display().to_string()])?;
    // All buffers are full by then, or nearly so.
    sleep(Duration::from_secs(2));
    let output = run.terminate()?;
    ensure!(output.status.code() == Some(128 + 15), "{}", output.status);
    let said = text(&output.stderr);
    ensure!(said.lines().count() == 1 && said.contains("the program was asked to end"), "{said}");
    bench.clean()
}

/// Nothing is left in the temporary folder, and the text has all that the buffers had.
fn text_of_a_killed_program(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut bench = Bench::set_up(lab, jdk, "text_of_a_killed_program")?;
    let temporary = bench.folder.join("tmp");
    fs::create_dir(&temporary)?;
    let (got, done) = (bench.folder.join("got"), bench.folder.join("done"));
    bench.trace_to(&format!(">(cat > '{}'; : > '{}')", got.display(), done.display()))?;
    bench.java.insert(1, "-Det.format=text".into());
    bench.java.insert(1, format!("-Det.traceTool={}", lab.tools.et_trace().display()));
    bench.variables.push(("TMPDIR".into(), temporary.display().to_string()));
    let run = bench.waiting(FEW)?;
    sleep(Duration::from_millis(500));
    run.kill()?;
    for _ in 0..1200 {
        if done.exists() {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    let records = fs::read_to_string(&got)?;
    let made = records.lines().filter(|line| line.starts_with("N ")).count();
    // Allocated by `Busy` before it waits; these events were only in the buffers.
    ensure!(made > 2000, "{made} objects in the text");
    let left: Vec<_> = fs::read_dir(&temporary)?.flatten().map(|entry| entry.file_name()).collect();
    let left: Vec<_> = left.into_iter().filter(|name| !name.to_string_lossy().starts_with("hsperfdata")).collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    bench.clean()
}

/// The buffer file is then in the temporary directory, and is found there.
fn killed_before_a_pipe(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let mut bench = Bench::set_up(lab, jdk, "killed_before_a_pipe")?;
    let (got, done) = (bench.folder.join("got.ettrace"), bench.folder.join("done"));
    bench.trace_to(&format!(">(cat > '{}'; : > '{}')", got.display(), done.display()))?;
    let run = bench.waiting(FEW)?;
    sleep(Duration::from_millis(1500));
    run.kill()?;
    for _ in 0..100 {
        if done.exists() {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    let summary = bench.readable(&got, &["killed", "last sign of life", "more chunk"])?;
    counted(&summary)?;
    // Its name is that of the run, bytes 10 to 15 of the trace.
    let run: String = fs::read(&got)?[10..16].iter().rev().map(|byte| format!("{byte:02x}")).collect();
    fs::remove_file(std::env::temp_dir().join(format!("et-{run}.buf")))?;
    bench.readable(&got, &["no buffer file", "an unknown number"])?;
    bench.clean()
}
