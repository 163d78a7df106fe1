//! `et-trace open`: the page in a browser, by mouse and by keyboard; and what it says if it cannot be served.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use et_tests::lab::{self, Lab};
use xtask::jdks::Jdk;

use xtask::{browser, command, python};

const FEATURE: u32 = 17;

fn main() -> ExitCode {
    let no_browser = |_: &Lab, jdk: &Jdk| no_javac(jdk).or_else(browser::obstacle);
    let trials = vec![
        lab::on_jdk_unless(FEATURE, "all_views_in_a_browser", no_browser, all_views),
        lab::on_jdk_unless(FEATURE, "a_trace_of_allocations_in_a_browser", no_browser, allocations),
        lab::on_jdk_unless(FEATURE, "two_leaks_and_a_handover_are_found_by_clicking", no_browser, leaks),
        lab::on_jdk_unless(FEATURE, "sites_have_lines_of_source", no_browser, source),
        lab::on_jdk_unless(FEATURE, "tables_are_asked_in_sql", no_browser, sql),
        lab::on_jdk_unless(FEATURE, "a_page_that_cannot_be_served", |_, jdk| no_javac(jdk), refusals),
    ];
    lab::run(trials).exit_code()
}

fn no_javac(jdk: &Jdk) -> Option<String> {
    jdk.javac().is_none().then(|| format!("no javac in {}", jdk.home.display()))
}

/// A trace of the service that leaks, with `options` of `et-instrument`.
fn traced(lab: &Lab, jdk: &Jdk, folder: &Path, options: &[&str]) -> Result<PathBuf> {
    let classes = folder.join("classes");
    fs::create_dir_all(&classes)?;
    let source = lab.layout.repo.join("tests/java/explorer/Service.java");
    let mut compile = lab.compiler.compile()?;
    command::quiet(compile.args(["-g", "--release", "11", "-encoding", "UTF-8", "-d"]).arg(&classes).arg(source))?;
    let rewritten = folder.join("classes-et");
    let mut rewrite = Command::new(lab.tools.et_instrument());
    command::quiet(rewrite.args(options).arg(&classes).arg("-o").arg(&rewritten))?;
    let trace = folder.join("service.ettrace");
    let java = lab.instrumented_with(jdk, options)?;
    let mut run = Command::new(java.java());
    command::quiet(run.args(java.options(&trace)).arg("-cp").arg(&rewritten).arg("Service").current_dir(folder))?;
    Ok(trace)
}

/// Ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves a trace: the process, and the address that it prints.
fn serve(lab: &Lab, trace: &Path, options: &[&Path]) -> Result<(Served, String)> {
    let mut open = Command::new(lab.tools.et_trace());
    open.arg("open").arg(trace).args(options);
    served(open)
}

/// Starts a server on any port.
fn served(mut open: Command) -> Result<(Served, String)> {
    open.args(["--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = open.spawn()?;
    let out = child.stdout.take().context("no output")?;
    let served = Served(child);
    let mut url = String::new();
    BufReader::new(out).read_line(&mut url)?;
    ensure!(url.starts_with("http://127.0.0.1:") && url.trim().ends_with('/'), "it says {url:?}");
    Ok((served, url.trim().to_owned()))
}

/// Looks at the page as a user would.
fn browse(lab: &Lab, script: &str, url: &str) -> Result<()> {
    let chromium = browser::find().context("no chromium")?;
    let name = format!("explorer-{script}");
    let file = format!("explorer/{script}.mjs");
    let script = browser::driver(&lab.layout, &file, &lab.layout.target.join("browser").join(&name))?;
    let screenshots = lab.layout.target.join("report").join(&name);
    fs::create_dir_all(&screenshots)?;
    let output =
        Command::new("node").arg(script).arg(url).arg(&screenshots).arg(chromium).stdin(Stdio::null()).output();
    let output = output.context("cannot start node")?;
    if !output.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn all_views(lab: &Lab, jdk: &Jdk) -> Result<()> {
    walk(lab, jdk, "browse", &[], &[])
}

fn leaks(lab: &Lab, jdk: &Jdk) -> Result<()> {
    walk(lab, jdk, "leak", &[], &[])
}

fn allocations(lab: &Lab, jdk: &Jdk) -> Result<()> {
    walk(lab, jdk, "allocations", &["--events", "alloc,stacks"], &[])
}

fn source(lab: &Lab, jdk: &Jdk) -> Result<()> {
    walk(lab, jdk, "source", &[], &["--source".as_ref(), &lab.layout.repo.join("tests/java/explorer")])
}

fn sql(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "explorer_sql")?;
    let trace = traced(lab, jdk, &folder, &[])?;
    let tables = folder.join("service.tables");
    let mut convert = Command::new(lab.tools.et_trace());
    command::quiet(convert.arg("tables").arg(&trace).arg("-o").arg(&tables))?;
    let duckdb = python::fetched(&lab.layout, python::DUCKDB)?;
    let mut open = Command::new(lab.tools.et_trace());
    open.arg("open").arg(&trace).arg("--tables").arg(&tables).env("PYTHONPATH", python::path(&[duckdb])?);
    let (served, url) = served(open)?;
    browse(lab, "sql", &url)?;
    drop(served);
    fs::remove_dir_all(&folder).map_err(Into::into)
}

/// Traces the service with `options` of `et-instrument`, serves the trace with those of `open`, and has a script look at it.
fn walk(lab: &Lab, jdk: &Jdk, script: &str, options: &[&str], of_open: &[&Path]) -> Result<()> {
    let folder = lab.folder(jdk, &format!("explorer_{script}"))?;
    let trace = traced(lab, jdk, &folder, options)?;
    let (served, url) = serve(lab, &trace, of_open)?;
    browse(lab, script, &url)?;
    drop(served);
    fs::remove_dir_all(&folder).map_err(Into::into)
}

/// What a server answers first.
fn status(url: &str) -> Result<String> {
    let (host, path) = url.trim_start_matches("http://").split_once('/').context("no path")?;
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.split(' ').nth(1).context("no status")?.to_owned())
}

/// One line, and an exit code that says so.
fn refusals(lab: &Lab, jdk: &Jdk) -> Result<()> {
    let folder = lab.folder(jdk, "explorer_refusals")?;
    let trace = traced(lab, jdk, &folder, &[])?;
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    let said = |arguments: &[&str]| -> Result<(Option<i32>, String)> {
        let mut open = Command::new(lab.tools.et_trace());
        let output = open.arg("open").args(arguments).current_dir(&folder).stdin(Stdio::null()).output()?;
        ensure!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
        Ok((output.status.code(), String::from_utf8(output.stderr)?))
    };
    let name = trace.file_name().context("no name")?.to_string_lossy().into_owned();
    let (code, line) = said(&[&name, "--port", &port])?;
    let expected = format!("et-trace: cannot listen on port {port} of 127.0.0.1: ");
    ensure!(code == Some(1) && line.starts_with(&expected) && line.lines().count() == 1, "{code:?} {line}");
    let (code, line) = said(&["none.ettrace"])?;
    ensure!(code == Some(1) && line.starts_with("et-trace: cannot read none.ettrace: "), "{code:?} {line}");
    // Tables are those of the trace.
    let (code, line) = said(&[&name, "--tables", "classes"])?;
    ensure!(code == Some(1) && line.contains("classes is not a folder of tables"), "{code:?} {line}");
    // The address is a secret: without it nobody gets in.
    let (served, url) = serve(lab, &trace, &[])?;
    let guess = url.trim_end_matches('/').rsplit_once('/').context("no token")?.0;
    for (path, expected) in [(format!("{url}api/traces"), "200"), (format!("{guess}/0123/api/traces"), "403")] {
        let status = status(&path)?;
        ensure!(status == expected, "{path}: {status}");
    }
    drop(served);
    fs::remove_dir_all(&folder).map_err(Into::into)
}
