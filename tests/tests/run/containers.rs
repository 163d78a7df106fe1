//! The Dockerfile of `docs/containers.md`, carried out without Docker: in a mount namespace, in a root of its own.
//!
//! The root has the system's libraries, the JDK where the base image has it, and what `COPY` names. `RUN` is carried out as root;
//! `CMD` as the user, with the root read-only, 64 MB of `/tmp`, no home and no variables but those of `ENV`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::{instrumented, programs};

use crate::Case;
use crate::bench::{Bench, text};
use crate::java::MAIN;

pub const CASES: &[(&str, Case)] = &[("container", container), ("pod", pod)];

/// Where the base image has its JDK.
const JDK: &str = "/opt/java/openjdk";
/// Who runs the container: a user without an entry in `/etc/passwd`.
const USER: &str = "4711";

/// Why a test cannot be run on this system.
pub fn obstacle(name: &str) -> Option<String> {
    let is_ours = CASES.iter().any(|(case, _)| *case == name);
    let unshared =
        || Command::new("unshare").args(["--mount", "true"]).output().is_ok_and(|done| done.status.success());
    (is_ours && !unshared()).then(|| "no mount namespace can be made: run the tests as root".to_owned())
}

/// A root folder, as a shell script mounts it.
struct Root<'a> {
    bench: &'a Bench,
    /// Lines of the script so far.
    script: String,
}

impl<'a> Root<'a> {
    /// With the system's libraries, a JDK, the tools, an application in `/app` and a volume in `/data`.
    fn new(bench: &'a Bench) -> Result<Self> {
        let root = bench.at("root");
        let _ = fs::remove_dir_all(&root);
        for folder in
            ["usr", "etc", "proc", "dev", "tmp", "app", "data", "et", "opt/elephant-tracks", "opt/java/openjdk"]
        {
            fs::create_dir_all(root.join(folder))?;
        }
        for folder in ["bin", "sbin", "lib", "lib64"] {
            std::os::unix::fs::symlink(format!("usr/{folder}"), root.join(folder))?;
        }
        let tools = bench.lab.tools.et_instrument();
        let tools = tools.parent().and_then(Path::parent).context("the tools are in a folder's bin")?;
        let (jdk, root) = (fs::canonicalize(&bench.jdk.home)?, root.display().to_string());
        let script = format!(
            "set -e\nmount --make-rprivate /\nmount --bind '{root}' '{root}'\ncd '{root}'\n\
             mount --bind -o ro /usr usr\nmount --bind /etc etc\nmount --bind '{}' .{JDK}\nmount --bind '{}' opt/elephant-tracks\n\
             mount --bind /dev dev\nmount -t proc proc proc || mount --rbind /proc proc\nchmod 1777 data\n",
            jdk.display(),
            tools.display()
        );
        Ok(Self { bench, script })
    }

    fn line(&mut self, line: &str) -> &mut Self {
        self.script += line;
        self.script.push('\n');
        self
    }

    /// From here on nothing can be written but the volume and `/tmp`.
    fn read_only(&mut self) -> &mut Self {
        self.line("mount -t tmpfs -o size=64m,mode=1777 tmpfs tmp")
            .line("mount --bind data data")
            .line("mount -o remount,bind,ro .")
    }

    fn run(&self) -> Result<(String, String)> {
        let mut command = Command::new("unshare");
        let done = command.args(["--mount", "sh", "-c", &self.script]).output()?;
        let (out, err) = (text(&done.stdout), text(&done.stderr));
        ensure!(done.status.success(), "{}: {out}{err}\n{}", done.status, self.script);
        Ok((out, err))
    }

    /// Checks the only trace in the volume, which is of [`MAIN`].
    fn has_trace(&self) -> Result<()> {
        let items = fs::read_dir(self.bench.at("root/data"))?.collect::<Result<Vec<_>, _>>()?;
        let traces: Vec<_> = items
            .iter()
            .map(fs::DirEntry::path)
            .filter(|path| path.extension().is_some_and(|end| end == "ettrace"))
            .collect();
        ensure!(traces.len() == 1, "{traces:?}");
        let summary = instrumented::summary(&self.bench.lab.tools, &traces[0], 5000)?;
        ensure!(summary["complete"] == true, "{}", summary["trace"]);
        let classes = summary["classes"].as_array().context("the summary lists no classes")?;
        ensure!(classes.iter().any(|class| class["type"] == "Main$Leaf"), "no objects of the program");
        programs::validate_without_deaths(&self.bench.lab.tools, &traces[0])
    }
}

/// The first block of a page in this language.
fn block(page: &str, language: &str) -> Result<String> {
    let (_, rest) = page.split_once(&format!("```{language}\n")).with_context(|| format!("no block of {language}"))?;
    Ok(rest.split("```").next().unwrap_or_default().to_owned())
}

fn page() -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/containers.md");
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

fn application(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    bench.write("manifest", "Main-Class: Main\n")?;
    bench.jar("app.jar", &["--manifest=manifest"], "classes")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An image that is prepared by root runs as any user.
fn container(bench: &Bench) -> Result<()> {
    application(bench)?;
    let mut root = Root::new(bench)?;
    let mut environment = format!("PATH={JDK}/bin:/usr/bin:/bin JAVA_HOME={JDK}");
    for line in block(&page()?, "dockerfile")?.lines() {
        let (word, rest) = line.split_once(' ').context("an instruction has arguments")?;
        match word {
            "FROM" | "USER" | "WORKDIR" => {}
            "COPY" if rest.starts_with("elephant-tracks ") => {
                ensure!(rest.ends_with(" /opt/elephant-tracks"), "{rest}")
            }
            "COPY" => {
                let (from, to) = rest.split_once(' ').context("COPY has two arguments")?;
                fs::copy(bench.at(from), bench.at("root").join(to.trim_start_matches('/')))?;
            }
            "ENV" => {
                let (name, value) = rest.split_once('=').context("ENV has a value")?;
                let path = format!("{JDK}/bin:/usr/bin:/bin");
                environment = format!("{environment} {name}={}", value.replace("$PATH", &path));
            }
            "RUN" => _ = root.line(&format!("chroot . env -i {environment} sh -c {}", quoted(rest))),
            "CMD" => {
                let words: Vec<String> = serde_json::from_str(rest)?;
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let start = format!("chroot --userspec={USER}:{USER} . env -i {environment} sh -c");
                root.read_only()
                    .line("echo started >&2")
                    .line(&format!("{start} {}", quoted(&format!("cd /data && exec {} x", words.join(" ")))));
            }
            other => anyhow::bail!("the test does not know the instruction {other}"),
        }
    }
    let (out, err) = root.run()?;
    ensure!(out.lines().any(|line| line == "[x]Main$Leaf"), "{out}{err}");
    // The program was instrumented when the image was made: no copy was made, and none was missing.
    let (_, run) = err.split_once("started\n").context("the image was not started")?;
    ensure!(!run.contains("has no copy of") && !run.contains("preparing"), "{run}");
    root.has_trace()
}

/// In a pod, an init container makes the copy of the JDK; a variable starts the program on it as it is.
fn pod(bench: &Bench) -> Result<()> {
    application(bench)?;
    let yaml = block(&page()?, "yaml")?;
    let value = |name: &str| -> Result<String> {
        let line = yaml.lines().skip_while(|line| !line.contains(&format!("name: {name}"))).nth(1);
        let value = line.and_then(|line| line.trim().strip_prefix("value: ")).with_context(|| format!("no {name}"))?;
        Ok(value.trim_matches('"').to_owned())
    };
    let command = yaml.lines().find_map(|line| line.trim().strip_prefix("command: ")).context("no command")?;
    let command: Vec<String> = serde_json::from_str(command)?;
    let mut root = Root::new(bench)?;
    fs::copy(bench.at("app.jar"), bench.at("root/app/app.jar"))?;
    let init = format!("env -i JAVA_HOME={JDK} PATH=/opt/elephant-tracks/bin:{JDK}/bin:/usr/bin:/bin");
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    root.line("chmod 1777 et").line("mount -t tmpfs -o size=64m,mode=1777 tmpfs tmp");
    root.line(&format!("chroot --userspec={USER}:{USER} . {init} {}", command.join(" ")));
    root.line("mount --bind et et").read_only();
    let path = format!("PATH={}:/usr/bin:/bin", value("JAVA_HOME")? + "/bin");
    let options = quoted(&format!("JAVA_TOOL_OPTIONS={}", value("JAVA_TOOL_OPTIONS")?));
    let java = value("JAVA_HOME")? + "/bin/java";
    root.line(&format!("chroot --userspec={USER}:{USER} . env -i {path} {options} {java} -jar /app/app.jar x"));
    let (out, err) = root.run()?;
    ensure!(out.lines().any(|line| line == "[x]Main$Leaf"), "{out}{err}");
    root.has_trace()
}
