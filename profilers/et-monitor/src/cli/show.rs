//! Commands that ask one VM: as tables for people, with `--json` for programs.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use et_names::units::{bytes, counted, number, percent, seconds};
use serde_json::{Value, json};

use super::backend::Backend;
use super::{CliError, PROGRAM, ScanArgs, What, silent};
use et_cli::{print, print_json};

#[derive(Debug, Args)]
pub(super) struct LsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ThreadsArgs {
    /// Process number, or part of the program name
    vm: String,
    /// Only this thread, with its stack
    #[arg(long, value_name = "ID")]
    thread: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct HeapArgs {
    /// Process number, or part of the program name
    vm: String,
    /// Show kinds of objects and the gaps between them: the VM walks its heap
    #[arg(long)]
    map: bool,
    /// With --map: collect garbage first
    #[arg(long, requires = "map")]
    collect: bool,
    /// With --map: the native heap
    #[arg(long, requires = "map")]
    native: bool,
    /// Classes with the most bytes
    #[arg(long, value_name = "ROWS", num_args = 0..=1, default_missing_value = "30", conflicts_with = "map")]
    classes: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// Process number, or part of the program name
    vm: String,
    /// Kind of the thing to look up
    what: What,
    /// Its id
    id: u64,
}

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Process number, or part of the program name
    vm: String,
}

#[derive(Debug, Args)]
pub(super) struct DumpArgs {
    /// Process number, or part of the program name
    vm: String,
    /// The file, which the VM writes [default: heap-PID-TIME.hprof in the folder where et-monitor runs]
    file: Option<PathBuf>,
    /// Dump into the log of the agent (xml=FILE) instead of a file, for the viewers of TPTP
    #[arg(long, conflicts_with = "file")]
    log: bool,
    /// With --log: name of the dump
    #[arg(long, value_name = "TEXT", requires = "log")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExitArgs {
    /// Process number, or part of the program name
    vm: String,
    /// The program's exit code
    #[arg(long, default_value_t = 0)]
    status: u8,
}

pub(super) async fn ls(args: &LsArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let list = Backend::open(scan).await?.get("vms").await?;
    if args.json {
        return Ok(print_json(&list)?);
    }
    let rows = list["vms"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return Err(CliError::none(&list));
    }
    // Standard output is a table of those that answer.
    for silent in silent(&list) {
        PROGRAM.say(format_args!("warning: {silent}"));
    }
    let size = |value: &Value| value.as_u64().map_or_else(String::new, bytes);
    let table = rows.iter().map(|vm| {
        let state = match (vm["here"] == true, vm["waitsForDebugger"] == true) {
            (true, true) => "waits for a debugger",
            (true, false) => "runs",
            _ => "gone",
        };
        vec![
            vm["pid"].to_string(),
            vm["port"].as_u64().map_or_else(String::new, |port| port.to_string()),
            vm["debuggerPort"].as_u64().map_or_else(String::new, |port| port.to_string()),
            vm["threads"].to_string(),
            size(&vm["heap"]["used"]),
            size(&vm["heap"]["size"]),
            state.to_owned(),
            text(&vm["application"]),
        ]
    });
    let heads = ["process", "port", "debugger", "threads", "in use", "heap", "state", "program"];
    Ok(print(&columns(&heads, 6, table))?)
}

pub(super) async fn threads(args: &ThreadsArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let backend = Backend::open(scan).await?;
    let (id, _) = backend.find(&args.vm).await?;
    if let Some(thread) = args.thread {
        let answer = backend.get(&format!("vms/{id}/threads/{thread}")).await?;
        return Ok(if args.json { print_json(&answer) } else { print(&one_thread(&answer)) }?);
    }
    let threads = backend.get(&format!("vms/{id}/threads?fresh=true")).await?;
    if args.json {
        return Ok(print_json(&threads)?);
    }
    let rows = threads.as_array().map(Vec::as_slice).unwrap_or_default();
    let table = rows.iter().map(|thread| {
        let suspended = if thread["suspended"] == true { ", suspended" } else { "" };
        vec![thread["id"].to_string(), state(&text(&thread["state"])).to_owned() + suspended, text(&thread["name"])]
    });
    Ok(print(&columns(&["id", "state", "name"], 1, table))?)
}

fn one_thread(answer: &Value) -> String {
    let mut out = String::new();
    if answer["info"]["error"].is_null() {
        out += &pairs(&answer["info"]);
    }
    match answer["stack"]["frames"].as_array() {
        Some(frames) => {
            for frame in frames {
                let place = match (frame["file"].as_str(), frame["line"].as_i64()) {
                    (Some(file), Some(line)) if line > 0 => format!("{file}:{line}"),
                    (Some(file), _) => file.to_owned(),
                    (None, Some(-2)) => "native".to_owned(),
                    _ => "unknown source".to_owned(),
                };
                let _ = writeln!(out, "    at {}.{}({place})", text(&frame["class"]), text(&frame["method"]));
            }
        }
        None => _ = writeln!(out, "no stack: {}", text(&answer["stack"]["error"])),
    }
    out
}

pub(super) async fn heap(args: &HeapArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let backend = Backend::open(scan).await?;
    let (id, _) = backend.find(&args.vm).await?;
    if args.map {
        let body = json!({ "native": args.native, "objects": true, "collect": args.collect });
        let map = backend.post(&format!("vms/{id}/walk"), &body).await?;
        return Ok(if args.json { print_json(&map) } else { print(&heap_map(&map)) }?);
    }
    if let Some(rows) = args.classes {
        let histogram = backend.get(&format!("vms/{id}/histogram?most={rows}")).await?;
        return Ok(if args.json { print_json(&histogram) } else { print(&classes(&histogram)) }?);
    }
    let heap = backend.get(&format!("vms/{id}/heap?fresh=true")).await?;
    if args.json {
        return Ok(print_json(&heap)?);
    }
    let size = |value: &Value| bytes(value.as_u64().unwrap_or(0));
    let mut out = format!("{} of {} in use", size(&heap["used"]), size(&heap["size"]));
    if heap["most"].as_u64().is_some_and(|most| most > 0) {
        let _ = write!(out, "; at most {}", size(&heap["most"]));
    }
    if let Some(objects) = heap["objects"].as_u64() {
        let _ = write!(out, "; {}", counted(objects, "object"));
    }
    if let (Some(collections), Some(pauses)) = (heap["collections"].as_u64(), heap["pausesNs"].as_f64()) {
        let _ = write!(out, "; {}, {} of pauses", counted(collections, "collection"), seconds(pauses / 1e9));
    }
    if heap["clamped"] == true {
        out += "\nThis VM reports sizes in 32 bits: larger ones are cut to 4 GiB.";
    }
    out += "\n";
    let parts = heap["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !parts.is_empty() {
        let rows = parts.iter().map(|part| vec![size(&part["used"]), size(&part["size"]), text(&part["name"])]);
        out += &columns(&["in use", "has", "part"], 2, rows);
    }
    Ok(print(&out)?)
}

fn heap_map(map: &Value) -> String {
    let of = |name: &str| map[name].as_u64().unwrap_or(0);
    let mut out = format!("{} of {} in use", bytes(of("used")), bytes(of("bytes")));
    if let Some(objects) = map["objects"].as_u64() {
        let _ = write!(out, " by {}", counted(objects, "object"));
    }
    let fragmentation = map["fragmentation"].as_f64().unwrap_or(0.0) * 100.0;
    let _ = writeln!(out, "; largest gap {}, fragmentation {fragmentation:.1} %", bytes(of("largestFree")));
    let totals = map["totals"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = totals.iter().map(|total| {
        let size = total["bytes"].as_u64().unwrap_or(0);
        let kind = match (total["kind"].as_str(), total["solidity"].as_str()) {
            (_, Some("free")) => "free".to_owned(),
            (Some("array1"), _) => "array of byte, boolean".to_owned(),
            (Some("array2"), _) => "array of char, short".to_owned(),
            (Some("array4"), _) => "array of references, int, float".to_owned(),
            (Some("array8"), _) => "array of long, double".to_owned(),
            (Some("class"), _) => "class object".to_owned(),
            (kind, _) => kind.unwrap_or_default().to_owned(),
        };
        let held = Some(text(&total["solidity"])).filter(|it| it != "free").unwrap_or_default();
        vec![bytes(size), percent(size, of("bytes")), kind, held]
    });
    out + &columns(&["bytes", "share", "what", "held by"], 2, rows)
}

fn classes(histogram: &Value) -> String {
    let of = |value: &Value| value.as_u64().unwrap_or(0);
    let mut out = format!("{} in {}\n", bytes(of(&histogram["bytes"])), counted(of(&histogram["objects"]), "object"));
    let rows = histogram["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = rows.iter().map(|row| {
        vec![bytes(of(&row["bytes"])), number(of(&row["objects"])), text(&row["class"]), text(&row["name"])]
    });
    out += &columns(&["bytes", "objects", "id", "class"], 3, rows);
    out
}

pub(super) async fn ask(args: &AskArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let backend = Backend::open(scan).await?;
    let (vm, _) = backend.find(&args.vm).await?;
    let id = args.id;
    let path = match args.what {
        What::Object => format!("objects/{id}"),
        What::Class => format!("classes/{id}"),
        What::Instances => format!("classes/{id}/instances?most=1000"),
        What::Monitor => format!("monitors/{id}"),
        What::Thread => format!("threads/{id}"),
    };
    Ok(print_json(&backend.get(&format!("vms/{vm}/{path}")).await?)?)
}

pub(super) async fn collect_garbage(args: &GcArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let backend = Backend::open(scan).await?;
    let (id, _) = backend.find(&args.vm).await?;
    backend.post(&format!("vms/{id}/gc"), &json!({})).await.map(drop)
}

pub(super) async fn dump(args: &DumpArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let backend = Backend::open(scan).await?;
    let (id, vm) = backend.find(&args.vm).await?;
    if args.log {
        let body = args.name.as_ref().map_or_else(|| json!({}), |name| json!({ "name": name }));
        let dump = backend.post(&format!("vms/{id}/log-heap"), &body).await?;
        return Ok(if args.json { print_json(&dump) } else { print(&logged(&dump)) }?);
    }
    let here = std::env::current_dir().map_err(CliError::Start)?;
    let file = match &args.file {
        Some(file) => here.join(file),
        None => here.join(format!("heap-{}-{}.hprof", vm["pid"], crate::vm::now_ms())),
    };
    let dump = backend.post(&format!("vms/{id}/dump"), &json!({ "path": file })).await?;
    if args.json {
        return Ok(print_json(&dump)?);
    }
    let size = dump["bytes"].as_u64().map_or_else(String::new, |size| format!(", {}", bytes(size)));
    Ok(print(&format!("{}{size}\n", text(&dump["path"])))?)
}

fn logged(dump: &Value) -> String {
    let of = |name: &str| dump[name].as_u64().unwrap_or(0);
    format!(
        "dump {} in {}: {}, {}, {}; the program was stopped for {}\n",
        of("dump"),
        text(&dump["file"]),
        counted(of("objects"), "object"),
        counted(of("references"), "reference"),
        counted(of("roots"), "root"),
        seconds(of("pauseUs") as f64 / 1e6)
    )
}

pub(super) async fn exit(args: &ExitArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let backend = Backend::open(scan).await?;
    let (id, _) = backend.find(&args.vm).await?;
    backend.post(&format!("vms/{id}/exit"), &json!({ "status": args.status })).await.map(drop)
}

/// Display name of a state. In DDM, a thread in `LockSupport.park` counts as waiting in the VM.
fn state(name: &str) -> &str {
    if name == "vmwait" { "parked" } else { name }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn pairs(value: &Value) -> String {
    let mut out = String::new();
    for (name, value) in value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let _ = writeln!(out, "{name}: {}", text(value));
    }
    out
}

/// Formats a table: the first `numbers` columns, or all but the last `left`, are aligned as numbers.
fn columns(heads: &[&str], numbers: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table: Vec<Vec<String>> = vec![heads.iter().map(|head| (*head).to_owned()).collect()];
    // Special characters are escaped, and count as what is displayed.
    table.extend(rows.map(|row| row.iter().map(|cell| et_names::escape::OneLine(cell).to_string()).collect()));
    let width = |at: usize| table.iter().map(|row: &Vec<String>| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut out = String::new();
    for row in &table {
        let line: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(at, cell)| match at < numbers {
                true => format!("{cell:>width$}", width = widths[at]),
                false => format!("{cell:<width$}", width = widths[at]),
            })
            .collect();
        let _ = writeln!(out, "{}", line.join("  ").trim_end());
    }
    out
}
