//! Pages of the documentation to the letter: the commands of their `sh` blocks are run one after the other, and what their `text`
//! blocks show is what the commands print.

use std::env;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use et_tests::lab::{self, Lab};
use et_tests::pattern::matches;
use xtask::jdks::Jdk;

/// A program has a record, and javac is needed.
const FEATURE: u32 = 17;

/// Files that the pages assume to exist.
const APP: &str = "
mkdir -p dist/lib classes
echo 'public class Main { public static void main(String[] a) { System.out.println(new Main() != null); } }' > Main.java
javac -d classes Main.java
jar --create --file app.jar --main-class=Main -C classes .
cp app.jar dist; cp app.jar dist/lib
";

/// Pages with such blocks, the commands that come before those of the page, and what must be there in the end.
const PAGES: [(&str, &str, &[&str]); 4] = [
    ("docs/getting-started.md", "", &["hello/inbox.ettrace"]),
    ("docs/instrumenting.md", APP, &["app.ettrace", "dist-et/app.jar", "dist-et/lib/app.jar"]),
    ("docs/images.md", APP, &["linked.ettrace", "shop.ettrace", "packed.ettrace"]),
    ("examples/leaky-cache/README.md", "cp -r \"$REPO/examples/leaky-cache/shop\" .\n", &["mended.ettrace"]),
];

fn main() -> ExitCode {
    let trials = PAGES.into_iter().map(|(path, before, left)| {
        let name = name(path);
        let case = move |lab: &Lab, jdk: &Jdk| page(lab, jdk, path, before, left);
        lab::on_jdk_unless(FEATURE, &name, |_, jdk| no_javac(jdk).or_else(|| no_jpackage(path, jdk)), case)
    });
    lab::run(trials.collect()).exit_code()
}

/// Of a test: `getting-started`, `leaky-cache`.
fn name(path: &str) -> String {
    let path = path.trim_end_matches("/README.md").trim_end_matches(".md");
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn no_javac(jdk: &Jdk) -> Option<String> {
    jdk.javac().is_none().then(|| format!("no javac in {}", jdk.home.display()))
}

/// The command that packages applications needs an application.
fn no_jpackage(path: &str, jdk: &Jdk) -> Option<String> {
    let is_there = jdk.jlink().is_some() && jdk.home.join("bin/jpackage").is_file();
    (path == "docs/images.md" && !is_there).then(|| format!("no jpackage or no modules in {}", jdk.home.display()))
}

/// Commands, and what they are said to show.
#[derive(Debug, Default)]
struct Step {
    commands: String,
    shown: Vec<String>,
}

fn steps(page: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind {
            "sh" => steps.push(Step { commands: block.join("\n"), ..Step::default() }),
            "text" => {
                let step = steps.last_mut().context("something is shown before the first command")?;
                step.shown = block.into_iter().map(str::to_owned).collect();
            }
            "" => {}
            other => bail!("a block of {other}"),
        }
    }
    ensure!(!steps.is_empty(), "the page has no commands");
    Ok(steps)
}

fn page(lab: &Lab, jdk: &Jdk, path: &str, before: &str, left: &[&str]) -> Result<()> {
    let page = fs::read_to_string(lab.layout.repo.join(path))?;
    let folder = lab.folder(jdk, &format!("page-{}", name(path)))?;
    // Steps share a shell, as they do for the reader; each says where it ends.
    const END: &str = "-- the next step --";
    let steps = steps(&page)?;
    let script: String = steps.iter().map(|step| format!("{}\necho '{END}'\n", step.commands)).collect();
    let tools = lab.tools.et_instrument().parent().context("a tool lies in a folder")?.to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools, jdk.home.join("bin")].into_iter().chain(env::split_paths(&path)))?;
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &format!("exec 2>&1\n{before}{script}")]).current_dir(&folder).env("PATH", path);
    for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "ET_OPTIONS"] {
        shell.env_remove(name);
    }
    shell.env("JAVA_HOME", &jdk.home).env("REPO", &lab.layout.repo);
    // A separate cache: the first run is the one that the page shows.
    shell.env("XDG_CACHE_HOME", folder.join("cache"));
    let output = shell.stdin(Stdio::null()).output().context("cannot start sh")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}: {said}", output.status);

    for path in left {
        ensure!(folder.join(path).is_file(), "{path} is not there: {said}");
    }
    for (step, said) in steps.iter().zip(said.split(END)) {
        // Some lines of many, in their order.
        let mut lines = said.lines();
        for shown in &step.shown {
            ensure!(lines.any(|line| matches(shown, line.trim())), "{shown:?} is not what is shown, but\n{said}");
        }
    }
    if !lab::keep_traces() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}
