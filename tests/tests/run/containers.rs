//! The Dockerfile of `docs/containers.md`, carried out without Docker: in a mount namespace, in a root of its own.
//!
//! The root has the system's libraries, the JDK where the base image has it, and what `COPY` names. `RUN` is carried out as root;
//! `CMD` as the user, with the root read-only, 64 MB of `/tmp`, no home and no variables but those of `ENV`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use xtask::chroot::{self, Chroot};
use xtask::command::quoted;
use xtask::{instrumented, pages, programs};

use crate::Case;
use crate::bench::Bench;
use crate::java::MAIN;

pub const CASES: &[(&str, Case)] = &[("container", container), ("pod", pod)];

/// Where the base image has its JDK.
const JDK: &str = "/opt/java/openjdk";
/// Who runs the container: a user without an entry in `/etc/passwd`.
const USER: u32 = 4711;

/// Why a test cannot be run on this system.
pub fn obstacle(name: &str) -> Option<String> {
    CASES.iter().any(|(case, _)| *case == name).then(chroot::obstacle).flatten()
}

/// The root folder of a container.
struct Root<'a> {
    bench: &'a Bench,
    chroot: Chroot,
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
        let mut chroot = Chroot::new(&root);
        chroot.bind_read_only(Path::new("/usr"), "/usr").bind(Path::new("/etc"), "/etc");
        chroot.bind(&fs::canonicalize(&bench.jdk.home)?, JDK).bind(tools, "/opt/elephant-tracks");
        chroot.line("chmod 1777 data");
        Ok(Self { bench, chroot })
    }

    /// From here on nothing can be written but the volume and `/tmp`.
    fn read_only(&mut self) {
        self.chroot.tmp(64).line("mount --bind data data").read_only();
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

/// The first block in this language on the page.
fn block(language: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/containers.md");
    let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    pages::blocks(&page, language).into_iter().next().with_context(|| format!("no block of {language}"))
}

fn application(bench: &Bench) -> Result<()> {
    bench.compile(&[("Main.java", MAIN)], &[], "classes")?;
    bench.write("manifest", "Main-Class: Main\n")?;
    bench.jar("app.jar", &["--manifest=manifest"], "classes")
}

/// Words as a shell takes them.
fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// An image that is prepared by root runs as any user.
fn container(bench: &Bench) -> Result<()> {
    application(bench)?;
    let mut root = Root::new(bench)?;
    let mut environment = format!("PATH={JDK}/bin:/usr/bin:/bin JAVA_HOME={JDK}");
    for line in block("dockerfile")?.lines() {
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
            "RUN" => _ = root.chroot.as_root(&environment, rest),
            "CMD" => {
                let words: Vec<String> = serde_json::from_str(rest)?;
                root.read_only();
                root.chroot.line("echo started >&2");
                root.chroot.as_user(USER, &environment, &format!("cd /data && exec {} x", joined(&words)));
            }
            other => anyhow::bail!("the test does not know the instruction {other}"),
        }
    }
    let (out, err) = root.chroot.output()?;
    ensure!(out.lines().any(|line| line == "[x]Main$Leaf"), "{out}{err}");
    // The program was instrumented when the image was made: no copy was made, and none was missing.
    let (_, run) = err.split_once("started\n").context("the image was not started")?;
    ensure!(!run.contains("has no copy of") && !run.contains("preparing"), "{run}");
    root.has_trace()
}

/// In a pod, an init container makes the copy of the JDK; a variable starts the program on it as it is.
fn pod(bench: &Bench) -> Result<()> {
    application(bench)?;
    let yaml = block("yaml")?;
    let value = |name: &str| -> Result<String> {
        let line = yaml.lines().skip_while(|line| !line.contains(&format!("name: {name}"))).nth(1);
        let value = line.and_then(|line| line.trim().strip_prefix("value: ")).with_context(|| format!("no {name}"))?;
        Ok(value.trim_matches('"').to_owned())
    };
    let command = yaml.lines().find_map(|line| line.trim().strip_prefix("command: ")).context("no command")?;
    let command: Vec<String> = serde_json::from_str(command)?;
    let mut root = Root::new(bench)?;
    fs::copy(bench.at("app.jar"), bench.at("root/app/app.jar"))?;
    let init = format!("JAVA_HOME={JDK} PATH=/opt/elephant-tracks/bin:{JDK}/bin:/usr/bin:/bin");
    root.chroot.line("chmod 1777 et").tmp(64);
    root.chroot.as_user(USER, &init, &format!("exec {}", joined(&command)));
    root.chroot.line("mount --bind et et");
    root.read_only();
    let path = format!("PATH={}:/usr/bin:/bin", value("JAVA_HOME")? + "/bin");
    let options = quoted(format!("JAVA_TOOL_OPTIONS={}", value("JAVA_TOOL_OPTIONS")?).as_ref());
    let java = value("JAVA_HOME")? + "/bin/java";
    root.chroot.as_user(USER, &format!("{path} {options}"), &format!("exec {java} -jar /app/app.jar x"));
    let (out, err) = root.chroot.output()?;
    ensure!(out.lines().any(|line| line == "[x]Main$Leaf"), "{out}{err}");
    root.has_trace()
}
