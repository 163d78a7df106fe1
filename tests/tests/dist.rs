//! The archive and the Debian package: what a user gets after installing either, and that the README's commands work
//! there.
//!
//! A single test: the copy of the JDK made by the archive's tools is also the one that the package's tools use.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use et_tests::lab::{self, Lab};
use xtask::command;
use xtask::dist::Parts;
use xtask::jdks::Jdk;
use xtask::pages;
use xtask::plugins::{gradle, maven};

const FEATURE: u32 = 17;

/// The commands in the README. The name of the trace contains the process id.
const README: [&str; 2] = ["et-instrument run -- java -jar app.jar", "et-trace summary et-12345.ettrace"];

const PROGRAM: &str = "
import java.util.*;
public class App {
    public static void main(String[] arguments) {
        List<App> apps = new ArrayList<>();
        for (int i = 0; i < 100; i++) apps.add(new App());
        System.out.println(apps.size() + \" apps\");
    }
}
";

fn main() -> ExitCode {
    lab::run(vec![lab::on_jdk_unless(FEATURE, "packages", |_, _| None, packages)]).exit_code()
}

fn packages(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = fs::canonicalize(lab.folder(jdk, "dist")?)?;
    let share = folder.join("made/share");
    et_reference::man::write(&share)?;
    et_reference::completions::write(&share)?;
    let lib = lab.tools.lib();
    let with_plugins = gradle::repository(&lib).is_dir() && maven::repository(&lib).is_dir();
    let parts = Parts { layout: &lab.layout, tools: &lab.tools, share: &share, with_plugins, level: 1 };
    let user = User::new(lab, jdk, &folder)?;

    let archive = parts.archive(&folder.join("work"), &folder.join("one"))?;
    let again = parts.archive(&folder.join("work"), &folder.join("two"))?;
    ensure!(fs::read(&archive)? == fs::read(again)?, "the same build does not give the same archive");
    let installed = unpacked(&archive, &folder.join("a folder"))?;
    has_all(&installed, &installed, with_plugins)?;
    let zsh = installed.join("share/zsh/site-functions");
    completions_work(&installed.join("share/bash-completion/completions"), &zsh)?;
    man_pages_are_clean(&installed.join("share/man/man1"))?;
    pages::lead_somewhere(&pages::in_folder(&installed)?)?;
    // Through symbolic links, as users may have them in PATH.
    let in_path = folder.join("bin of the user");
    fs::create_dir(&in_path)?;
    for tool in ["et-instrument", "et-trace"] {
        symlink(installed.join("bin").join(tool), in_path.join(tool))?;
    }
    let said = user.follows_readme(&in_path)?;
    ensure!(said.contains("preparing an instrumented copy"), "{said}");

    if command::exists("dpkg-deb") {
        debian_package(&parts, &folder, &user)?;
    } else {
        lab.not_tested("packages: the Debian package", "no dpkg-deb");
    }
    // A copy of a JDK, which is of no further use.
    fs::remove_dir_all(&user.cache)?;
    Ok(())
}

fn debian_package(parts: &Parts, folder: &Path, user: &User) -> Result<()> {
    let package = parts.debian_package(&folder.join("work"), &folder.join("one"))?;
    let again = parts.debian_package(&folder.join("work"), &folder.join("two"))?;
    ensure!(fs::read(&package)? == fs::read(again)?, "the same build does not give the same package");
    let field = |name: &str| command::read(Command::new("dpkg-deb").arg("--field").arg(&package).arg(name));
    ensure!(field("Package")?.trim() == "elephant-tracks");
    let depends = field("Depends")?;
    ensure!(depends.contains("libc6 (>= 2.") && depends.contains("libgcc-s1"), "{depends}");
    let contents = command::read(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
    for line in contents.lines() {
        let mode = line.get(..10).unwrap_or_default();
        let expected = line.contains(" root/root ") && ["drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"].contains(&mode);
        ensure!(expected, "{line}");
    }

    let root = folder.join("debian root");
    command::quiet(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root))?;
    let control = folder.join("control");
    command::quiet(Command::new("dpkg-deb").arg("--control").arg(&package).arg(&control))?;
    let mut sums = Command::new("md5sum");
    command::quiet(sums.current_dir(&root).args(["--check", "--strict", "--quiet"]).arg(control.join("md5sums")))?;
    let (installed, doc) = (root.join("usr"), root.join("usr/share/doc/elephant-tracks"));
    has_all(&installed, &doc, parts.with_plugins)?;
    ensure!(doc.join("copyright").is_file() && doc.join("THIRD-PARTY-NOTICES.gz").is_file());
    let zsh = installed.join("share/zsh/vendor-completions");
    completions_work(&installed.join("share/bash-completion/completions"), &zsh)?;
    // The same pages; one shows that they are compressed as man wants it.
    man_page_is_clean(&installed.join("share/man/man1/et-instrument-run.1.gz"))?;
    pages::lead_somewhere(&pages::in_folder(&doc)?)?;
    let said = user.follows_readme(&installed.join("bin"))?;
    ensure!(!said.contains("preparing an instrumented copy"), "the same tools look for another copy: {said}");
    Ok(())
}

fn unpacked(archive: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir(to)?;
    command::quiet(Command::new("tar").arg("--extract").arg("--file").arg(archive).arg("--directory").arg(to))?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let folder = to.join(name.strip_suffix(".tar.gz").context("the archive is no .tar.gz")?);
    ensure!(fs::read_dir(to)?.count() == 1 && folder.is_dir(), "{name} is not one folder of that name");
    Ok(folder)
}

/// Files that must exist and have no check of their own.
fn has_all(installed: &Path, doc: &Path, with_plugins: bool) -> Result<()> {
    for program in ["bin/et-instrument", "bin/et-trace", "bin/et-replay", "bin/et-monitor", "bin/et-jvmpi"] {
        let path = installed.join(program);
        let metadata = fs::metadata(&path).with_context(|| format!("no {}", path.display()))?;
        ensure!(metadata.permissions().mode() & 0o777 == 0o755, "{} is not for all to run", path.display());
        let sections = command::read(Command::new("readelf").args(["--sections", "--wide"]).arg(&path))?;
        ensure!(sections.contains(".symtab"), "{} has no symbols, which backtraces name functions by", path.display());
        // They would be nine tenths of the file.
        ensure!(!sections.contains(".debug_line"), "{} is not stripped", path.display());
    }
    let lib = installed.join("lib/elephant-tracks");
    for file in [
        "libet_runtime.so",
        "libet_jvmpi.so",
        "libet_monitor.so",
        "et-ddm.jar",
        "et-test.jar",
        "heap-proxy-8.jar",
        "heap-proxy-21.jar",
    ] {
        ensure!(lib.join(file).is_file(), "no {file} in {}", lib.display());
    }
    for repository in ["gradle", "maven"] {
        ensure!(lib.join(repository).join("org/elephanttracks").is_dir() == with_plugins, "{repository}");
    }
    for file in ["README.md", "LICENSE", "docs/options.md", "examples/leaky-cache/shop/Main.java"] {
        ensure!(doc.join(file).is_file(), "no {file} in {}", doc.display());
    }
    if let Ok(notices) = fs::read_to_string(doc.join("THIRD-PARTY-NOTICES")) {
        for library in ["The Rust standard library", "\nclap ", "\nzstd-sys ", "\nzip ", "zstd/LICENSE\n"] {
            ensure!(notices.contains(library), "{library:?} is not in the notices");
        }
        ensure!(!notices.contains("\nproptest "), "what only tests need is no part of the tools");
    }
    Ok(())
}

/// They are of the shell's language, and complete something.
fn completions_work(bash: &Path, zsh: &Path) -> Result<()> {
    let fish = bash.with_file_name("").with_file_name("fish").join("vendor_completions.d");
    for tool in ["et-instrument", "et-trace", "et-replay", "et-monitor", "et-jvmpi"] {
        let script = bash.join(tool);
        command::quiet(Command::new("bash").arg("-n").arg(&script))?;
        for (shell, script) in [("zsh", zsh.join(format!("_{tool}"))), ("fish", fish.join(format!("{tool}.fish")))] {
            ensure!(script.is_file(), "no {}", script.display());
            if command::exists(shell) {
                command::quiet(Command::new(shell).arg("-n").arg(&script))?;
            }
        }
    }
    // As the shell calls the function that the script has registered.
    let complete = "source \"$0\" && COMP_WORDS=(et-instrument pre) COMP_CWORD=1 && words=($(complete -p et-instrument)) \
                    && \"${words[-2]}\" et-instrument pre et-instrument && echo \"${COMPREPLY[@]}\"";
    let completed = command::read(Command::new("bash").args(["-c", complete]).arg(bash.join("et-instrument")))?;
    ensure!(completed.trim() == "prepare", "{completed}");
    Ok(())
}

fn man_pages_are_clean(folder: &Path) -> Result<()> {
    let pages: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    ensure!(pages.len() >= 16, "{pages:?}");
    pages.iter().try_for_each(|page| man_page_is_clean(page))
}

fn man_page_is_clean(page: &Path) -> Result<()> {
    ensure!(page.is_file(), "no {}", page.display());
    if !command::exists("man") {
        return Ok(());
    }
    let mut man = Command::new("man");
    man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8").env_remove("MANPAGER");
    let output = command::quiet(man.args(["--warnings", "--local-file"]).arg(page))?;
    let (text, warnings) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(warnings.is_empty(), "{}: {warnings}", page.display());
    ensure!(text.contains("NAME") && text.contains("SYNOPSIS"), "{}: {text}", page.display());
    Ok(())
}

/// A user with a program, a JDK and the installation.
struct User {
    folder: PathBuf,
    java: PathBuf,
    cache: PathBuf,
}

impl User {
    fn new(lab: &Lab, jdk: &Jdk, folder: &Path) -> Result<Self> {
        let user =
            Self { folder: folder.join("app"), java: jdk.home.join("bin"), cache: folder.join("cache of the user") };
        fs::create_dir(&user.folder)?;
        fs::write(user.folder.join("App.java"), PROGRAM)?;
        let mut compile = lab.compiler.compile()?;
        command::quiet(compile.current_dir(&user.folder).args(["--release", "11", "-Xlint:-options", "App.java"]))?;
        let mut jar = Command::new(lab.compiler.home.join("bin/jar"));
        let jar = jar.current_dir(&user.folder).args(["--create", "--file=app.jar", "--main-class=App", "App.class"]);
        command::quiet(jar)?;
        Ok(user)
    }

    /// Types what is written there, with the tools in a folder; says what `run` said.
    fn follows_readme(&self, tools: &Path) -> Result<String> {
        let readme = include_str!("../../README.md");
        let [run, summary] = README;
        ensure!(readme.contains(run) && readme.contains(summary), "the README has other commands");
        let ran = self.types(tools, run)?;
        ensure!(ran.0 == "100 apps\n", "{ran:?}");
        let trace = self.only_trace()?;
        let summed = self.types(tools, &summary.replace("et-12345.ettrace", &trace))?.0;
        ensure!(summed.contains("App"), "{summed}");
        fs::remove_file(self.folder.join(trace))?;
        Ok(ran.1)
    }

    /// Standard output and error of a command.
    fn types(&self, tools: &Path, line: &str) -> Result<(String, String)> {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(&self.folder).env("XDG_CACHE_HOME", &self.cache);
        for variable in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "ET_OPTIONS", "ET_RUNTIME_DIR"] {
            shell.env_remove(variable);
        }
        let path = [tools, &self.java].into_iter().map(Path::to_owned).chain(["/usr/bin".into(), "/bin".into()]);
        let output = command::quiet(shell.env("PATH", std::env::join_paths(path)?))?;
        Ok((String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?))
    }

    fn only_trace(&self) -> Result<String> {
        let names = fs::read_dir(&self.folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let traces: Vec<String> = names.filter(|name| name.ends_with(".ettrace")).collect();
        match &traces[..] {
            [one] => Ok(one.clone()),
            _ => bail!("the run left {traces:?}"),
        }
    }
}
