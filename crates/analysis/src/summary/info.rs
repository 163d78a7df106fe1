//! How a trace file is made up.

use std::collections::BTreeMap;
use std::fmt::Write;

use et_format::{BlockKind, Packing};
use serde::Serialize;

use et_names::NamesTable;
use et_names::units::{bytes, counted, number};
use et_reader::Trace;
use et_reader::text::{Radix, TextTrace};

/// The text of `et-trace info`.
pub fn info(trace: &Trace) -> String {
    let file = &trace.file;
    let meta = file.meta();
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<13}{text}");
    };
    line("file", format!("{}, {}", file.path().display(), bytes(file.size())));
    line("tool", meta.tool.clone());
    line("command", meta.command.clone());
    line("process", meta.pid.to_string());
    line("run", file.run().to_string());
    line("JVM", format!("{} {}", meta.jvm.name, meta.jvm.version));
    line("java home", meta.java_home.clone());
    let locked = (!meta.locked_ids.is_empty()).then(|| format!(", of locked objects: {}", meta.locked_ids));
    line("object ids", format!("{}{}", meta.id_scheme, locked.unwrap_or_default()));
    for (name, value) in &meta.options {
        line("option", format!("{name}={value}"));
    }
    match (file.end(), file.cut_off()) {
        (Some(end), _) => line(
            "end",
            match end.discarded_bytes {
                Some(count) => format!(
                    "{}, after {:.2} s, {} of events discarded, not counted",
                    end.reason,
                    end.seconds,
                    bytes(count)
                ),
                None => {
                    format!("{}, after {:.2} s, {} lost", end.reason, end.seconds, counted(end.lost_events, "event"))
                }
            },
        ),
        (None, Some(cut)) => line("end", cut.to_string()),
        (None, None) => {}
    }
    let (mut dynamic, mut dynamic_classes, mut dynamic_methods) = (0, 0, 0);
    for table in trace.names.tables() {
        if table.artifact.kind.is_made_at_run_time() {
            dynamic += 1;
            dynamic_classes += table.classes.len() as u64;
            dynamic_methods += table.methods.len() as u64;
            continue;
        }
        let block = table.block();
        line(
            "artifact",
            format!(
                "{}, {}, {}, {}, ids {:#x} to {:#x}",
                table.artifact.name,
                classes(table),
                counted(table.methods.len() as u64, "method"),
                counted(table.sites.len() as u64, "site"),
                block.base,
                block.base.saturating_add(block.size)
            ),
        );
    }
    if dynamic > 0 {
        let tables = counted(dynamic, "names table");
        let (classes, methods) = (counted(dynamic_classes, "class"), counted(dynamic_methods, "method"));
        line("run time", format!("{tables} made as the program ran, {classes}, {methods}"));
    }
    let mut kinds: BTreeMap<BlockKind, (u64, u64, u64)> = BTreeMap::new();
    for block in file.blocks() {
        let entry = kinds.entry(block.header.kind).or_default();
        entry.0 += 1;
        entry.1 += u64::from(block.header.stored_len);
        entry.2 += u64::from(block.header.raw_len);
    }
    let _ = writeln!(out, "\n{:<18} {:>9} {:>12} {:>12} {:>7}", "blocks", "number", "stored", "unpacked", "ratio");
    for (kind, (count, stored, raw)) in kinds {
        let ratio = raw as f64 / stored.max(1) as f64;
        let name = format!("{kind:?}");
        let _ = writeln!(out, "{name:<18} {:>9} {:>12} {:>12} {ratio:>7.2}", number(count), bytes(stored), bytes(raw));
    }
    out
}

/// How many classes, and of how many: a trace has the names of those that were loaded.
fn classes(table: &NamesTable) -> String {
    let (here, all) = (table.classes.len() as u64, u64::from(table.classes_of_artifact()));
    if here == all { counted(all, "class") } else { format!("{} of {}", number(here), counted(all, "class")) }
}

/// The sizes of a trace's parts, without reading the events; `et-trace info --json` prints this.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// Size of the file.
    pub trace_bytes: u64,
    /// Events as the hooks left them.
    pub event_bytes: u64,
    /// Events, packed but not compressed.
    pub packed_event_bytes: u64,
    /// Number of blocks of events.
    pub event_blocks: u64,
    /// How many events these are; none if it does not say.
    pub events: Option<u64>,
    /// The last ticket that a thread took; none if it was cut off.
    pub end_ticket: Option<u64>,
    /// Bytes of events that were thrown away unread (`discard=on`).
    pub discarded_bytes: Option<u64>,
    /// Events that are not in the trace; none if it does not say.
    pub lost_events: Option<u64>,
    /// From the start of tracing to its end; none if it was cut off.
    pub seconds: Option<f64>,
    /// CPU time of packing and writing in seconds.
    pub writer_cpu_seconds: Option<f64>,
    /// Which threads packed; `None` if unknown.
    pub packing: Option<Packing>,
}

/// Computes the sizes.
pub fn sizes(trace: &Trace) -> Sizes {
    let (file, end) = (&trace.file, trace.file.end());
    Sizes {
        trace_bytes: file.size(),
        event_bytes: file.of_kind(BlockKind::Events).map(|block| u64::from(block.header.raw_len)).sum(),
        packed_event_bytes: file.packed_event_bytes(),
        event_blocks: file.of_kind(BlockKind::Events).count() as u64,
        events: end.and_then(|end| end.events),
        end_ticket: end.map(|end| end.end_ticket.0),
        discarded_bytes: end.and_then(|end| end.discarded_bytes),
        lost_events: end.map(|end| end.lost_events),
        seconds: end.map(|end| end.seconds),
        writer_cpu_seconds: end.and_then(|end| end.writer_cpu_seconds),
        packing: end.and_then(|end| end.packing),
    }
}

/// The text of `et-trace info` of a text.
pub fn text_info(text: &TextTrace) -> String {
    let form = text.form();
    let dialect = if form.is_replayer { "replayer" } else { "et" };
    let numbers = if form.radix == Radix::Decimal { "decimal" } else { "hexadecimal" };
    let deaths = if text.has_deaths() { "with deaths" } else { "without deaths" };
    format!(
        "{:<13}{}, {}\n{:<13}{dialect}, {numbers}, {deaths}\n",
        "file",
        text.path().display(),
        bytes(text.size()),
        "text"
    )
}
