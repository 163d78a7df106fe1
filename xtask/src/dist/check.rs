//! `cargo xtask wheel --check`: the wheel where nothing else is. In a root folder with Debian's JDK and Python alone, an ordinary user
//! installs it by pip, without a network; the examples of the pages run to their pictures, from the text of the pages; then the tests of
//! `tools/python` run. Where there can be no such root, this happens in a virtual environment of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::tree::copy_folder;
use crate::chroot::{self, Chroot};
use crate::command::{self, quoted};
use crate::layout::Layout;
use crate::{folders, jdks, packages, pages, python};

/// Folders that Python leaves.
pub(super) const LEFT_BY_PYTHON: [&str; 3] = ["__pycache__", ".pytest_cache", ".mypy_cache"];

/// The only package that ours depends on.
const DEPENDENCY: &str = "pyarrow==26.0.1";
/// What its tests need besides.
const TESTS_NEED: [&str; 3] = ["pytest==9.2.0", "mypy==2.4.1", "duckdb==2.0.1"];

/// What a machine has for programs in Java and for `pip install` as an ordinary user.
const IN_ROOT: [&str; 2] = ["openjdk-17-jdk-headless", "python3-venv"];
/// That user; there need be no entry in `/etc/passwd`.
const USER: u32 = 4711;

/// Pages whose examples are run, in one go each.
const PAGES: [&str; 3] = ["README.md", "docs/python.md", "tools/python/README.md"];
/// The program that they call `app.jar`.
const APPLICATION: &str = "examples/leaky-cache/shop";

/// Checks a wheel; temporary files go to `work`.
pub fn run(layout: &Layout, wheel: &Path, work: &Path) -> Result<()> {
    let machine = Machine::new(layout)?;
    let folder = work.join("fresh");
    // In it are files of that user.
    folders::empty(&folder)?;
    let folder = fs::canonicalize(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let name = wheel.file_name().context("a wheel has a name")?;
    copy(wheel, &folder.join(name))?;
    copy_folder(&layout.repo.join("tools/python"), &folder.join("python"), &LEFT_BY_PYTHON)?;
    copy_folder(&layout.repo.join(APPLICATION), &folder.join("shop"), &[])?;
    let examples = examples(&layout.repo)?;
    for (example, text) in &examples {
        let place = folder.join(example);
        folders::make(&place)?;
        write(&place.join("example.py"), text)?;
    }
    let packages: Vec<&str> = [DEPENDENCY].into_iter().chain(TESTS_NEED).collect();
    let wheels = python::wheels(layout, &packages, &machine.python_version()?)?;
    let script = script(&name.to_string_lossy(), examples.keys());
    machine.run(&folder, &wheels, &script)?;
    for (example, text) in &examples {
        pictures(&folder.join(example), text).with_context(|| format!("the example of {example}"))?;
    }
    Ok(())
}

/// What the user types. Variables: `WHEELS` is a folder of packages.
fn script<'a>(wheel: &str, examples: impl Iterator<Item = &'a String>) -> String {
    let pip = "env/bin/pip install --quiet --disable-pip-version-check --no-index --find-links \"$WHEELS\"";
    let mut script = format!(
        "set -e\npython3 -m venv env\n{pip} ./{wheel}\n\
         javac -d classes shop/*.java\njar --create --file app.jar --main-class shop.Main -C classes .\n"
    );
    for example in examples {
        script += &format!(
            "echo the example of {example}\n(cd {example} && cp ../app.jar . && ../env/bin/python example.py)\n"
        );
    }
    script
        + &format!(
            "{pip} {}\ncd python\n../env/bin/python -m mypy src\n../env/bin/python -m pytest -p no:cacheprovider tests\n",
            TESTS_NEED.join(" ")
        )
}

/// Python on the pages, each under the name of the folder that it runs in.
fn examples(repo: &Path) -> Result<BTreeMap<String, String>> {
    let mut examples = BTreeMap::new();
    for page in PAGES {
        let path = repo.join(page);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let blocks = pages::blocks(&text, "python");
        ensure!(!blocks.is_empty(), "{page} has no example in Python");
        examples.insert(page.replace(['/', '.'], "-"), blocks.join("\n"));
    }
    ensure!(examples.values().any(|text| text.contains(SAVES)), "no example saves a picture");
    Ok(examples)
}

/// How an example saves a picture.
const SAVES: &str = ".save(\"";

/// The pictures that an example says it saves are there, and show what the program does.
fn pictures(folder: &Path, example: &str) -> Result<()> {
    for name in example.split(SAVES).skip(1) {
        let name = name.split('"').next().unwrap_or_default();
        let path = folder.join(name);
        let picture = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let boxes = picture.matches("<rect ").count();
        let is_whole = picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>");
        ensure!(is_whole && boxes > 5 && picture.contains("shop.Main.main"), "{name} is no picture: {boxes} boxes");
        println!("{name}: a picture of {boxes} boxes, {} bytes", picture.len());
    }
    Ok(())
}

/// Where the wheel is installed.
enum Machine {
    /// A root folder.
    Bare(PathBuf),
    /// This machine, with that JDK.
    This(PathBuf),
}

impl Machine {
    fn new(layout: &Layout) -> Result<Self> {
        match chroot::obstacle().or_else(no_debian) {
            None => Ok(Self::Bare(root(layout)?)),
            Some(why) => {
                eprintln!("{why}: the wheel is installed on this machine instead, in a virtual environment");
                if command::quiet(Command::new("python3").args(["-m", "ensurepip", "--version"])).is_err() {
                    // On Debian it is a package of its own.
                    packages::apt_install(&["python3-venv"])?;
                }
                Ok(Self::This(jdks::compiler(layout)?.home))
            }
        }
    }

    /// The version of its `python3`: 3.11.
    fn python_version(&self) -> Result<String> {
        let say = "import sys; print('%d.%d' % sys.version_info[:2])";
        let said = match self {
            Self::Bare(root) => command::read(Command::new("chroot").arg(root).args(["python3", "-c", say])),
            Self::This(_) => command::read(Command::new("python3").args(["-c", say])),
        };
        Ok(said?.trim().to_owned())
    }

    /// Runs a script in the folder, with no tool of this checkout in reach.
    fn run(&self, folder: &Path, wheels: &Path, script: &str) -> Result<()> {
        match self {
            Self::Bare(root) => {
                eprintln!("in a root with {} only", IN_ROOT.join(" and "));
                let mut chroot = Chroot::new(root);
                chroot.line(&format!("chown -R {USER}:{USER} {}", quoted(folder.as_os_str())));
                chroot.bind(folder, "/srv").bind_read_only(wheels, "/mnt").tmp(512).read_only();
                let variables = "PATH=/usr/bin:/bin HOME=/srv LANG=C.UTF-8 WHEELS=/mnt PYTHONDONTWRITEBYTECODE=1";
                chroot.as_user(USER, variables, &format!("cd /srv\n{script}")).run()
            }
            Self::This(jdk) => {
                let path = std::env::join_paths([jdk.join("bin"), "/usr/bin".into(), "/bin".into()])?;
                let mut shell = Command::new("sh");
                shell.args(["-c", script]).current_dir(folder).env_clear().env("PATH", path).env("JAVA_HOME", jdk);
                shell.env("HOME", folder).env("LANG", "C.UTF-8").env("WHEELS", wheels);
                command::run(shell.env("PYTHONDONTWRITEBYTECODE", "1"))
            }
        }
    }
}

/// Where Debian's own sources of packages are named: the first that is there counts.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];

fn no_debian() -> Option<String> {
    let is_debian = codename().is_some() && SOURCES.iter().any(|path| Path::new(path).is_file());
    (!is_debian).then(|| "this is not Debian, whose packages a bare root is made of".to_owned())
}

/// The release of Debian: `bookworm`.
fn codename() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let value = |name: &str| release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME").map(str::to_owned))?
}

/// A root with the packages of this machine's Debian, made once.
fn root(layout: &Layout) -> Result<PathBuf> {
    let codename = codename().context("not Debian")?;
    let root = layout.target.join(format!("root-{codename}-{}", IN_ROOT.join("+")));
    if root.is_dir() {
        return Ok(root);
    }
    if !command::exists("mmdebstrap") {
        packages::apt_install(&["mmdebstrap"])?;
    }
    eprintln!("making a root with {} of Debian's {codename}", IN_ROOT.join(" and "));
    let part = layout.target.join(format!("root-{codename}.part"));
    folders::remove(&part)?;
    let sources = SOURCES.into_iter().find(|path| Path::new(path).is_file()).context("no sources of packages")?;
    let mut make = Command::new("mmdebstrap");
    make.arg("--variant=minbase").arg(format!("--include={}", IN_ROOT.join(","))).arg(codename).arg(&part).arg(sources);
    command::quiet(&mut make)?;
    fs::rename(&part, &root).with_context(|| format!("cannot make {}", root.display()))?;
    Ok(root)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).with_context(|| format!("cannot write {}", to.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
