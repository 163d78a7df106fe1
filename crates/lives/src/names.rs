//! The tables that explain the numbers in a life table.

use std::fs::File;
use std::io;

use et_names::{MethodId, SiteId};
use et_reader::Trace;
use et_reader::model::{Context, ContextId, Contexts};
use et_reader::types::{TypeId, for_people};
use parquet::data_type::ByteArray;

use crate::maker::Named;
use crate::table::{Column, TableWriter, Values, Written};

/// Rows per group of contexts, of which there may be millions.
const GROUP: usize = 1 << 20;

fn text(text: &str) -> ByteArray {
    text.into()
}

fn write(name: &'static str, file: File, columns: Vec<Column>) -> io::Result<Written> {
    let writer = TableWriter::new(name, file, &columns);
    writer.push(columns);
    writer.finish()
}

/// Writes `class`, `name`: classes by their numbers in this life table.
pub fn classes(file: File, trace: &Trace, used: &Named) -> io::Result<Written> {
    let mut classes: Vec<TypeId> = used.classes.iter().copied().collect();
    classes.sort_unstable_by_key(|class| class.0);
    let name = |class: &TypeId| text(&for_people(trace.types.descriptor(*class)));
    let columns = vec![
        ("class", Values::Number(classes.iter().map(|class| class.0.into()).collect())),
        ("name", Values::Text(classes.iter().map(name).collect())),
    ];
    write("classes", file, columns)
}

/// Writes `site`, `method`, `name`: sites by their ids.
pub fn sites(file: File, trace: &Trace, used: &Named) -> io::Result<Written> {
    let mut sites: Vec<SiteId> = used.sites.iter().copied().collect();
    sites.sort_unstable_by_key(|site| site.0);
    let method = |site: &SiteId| trace.names.site(*site).map(|(table, site)| i64::from(table.method_id(site.method).0));
    let columns = vec![
        ("site", Values::Number(sites.iter().map(|site| site.0.into()).collect())),
        ("method", Values::Maybe(sites.iter().map(method).collect())),
        ("name", Values::Text(sites.iter().map(|site| text(&trace.names.site_text(*site))).collect())),
    ];
    write("sites", file, columns)
}

/// Writes `context`, `caller`, `method`, `depth`: the tree of calling contexts, callers before callees; 0 is the empty
/// one.
pub fn contexts(file: File, contexts: &Contexts) -> io::Result<Written> {
    let all: Vec<(ContextId, &Context)> = contexts.iter().take(1).collect();
    let writer = TableWriter::new("contexts", file, &context_columns(&all));
    let mut rows = contexts.iter();
    loop {
        let group: Vec<(ContextId, &Context)> = rows.by_ref().take(GROUP).collect();
        // A writer that has failed returns the error from `finish`.
        if group.is_empty() || !writer.push(context_columns(&group)) {
            return writer.finish();
        }
    }
}

fn context_columns(rows: &[(ContextId, &Context)]) -> Vec<Column> {
    let column =
        |value: fn(&(ContextId, &Context)) -> u32| Values::Number(rows.iter().map(|row| value(row).into()).collect());
    vec![
        ("context", column(|(id, _)| id.0)),
        ("caller", column(|(_, context)| context.caller.0)),
        ("method", column(|(_, context)| context.method.0)),
        ("depth", column(|(_, context)| context.depth)),
    ]
}

/// Writes `method`, `name`: the methods of contexts and sites by their ids.
pub fn methods(file: File, trace: &Trace, contexts: &Contexts, used: &Named) -> io::Result<Written> {
    let of_sites =
        used.sites.iter().filter_map(|site| trace.names.site(*site).map(|(table, site)| table.method_id(site.method)));
    let mut methods: Vec<MethodId> =
        contexts.iter().skip(1).map(|(_, context)| context.method).chain(of_sites).collect();
    methods.sort_unstable();
    methods.dedup();
    let columns = vec![
        ("method", Values::Number(methods.iter().map(|method| method.0.into()).collect())),
        ("name", Values::Text(methods.iter().map(|method| text(&trace.names.method_text(*method))).collect())),
    ];
    write("methods", file, columns)
}

/// Writes `thread`, `name`, `is_daemon`: the threads of the run, including virtual ones that allocated an object or
/// made one unreachable.
pub fn threads(file: File, trace: &Trace, used: &Named) -> io::Result<Written> {
    let virtual_ones = used.threads.iter().map(|thread| thread.0).filter(|&id| id != 0 && trace.thread(id).is_none());
    let mut threads: Vec<u32> = trace.threads.iter().map(|thread| thread.index).chain(virtual_ones).collect();
    threads.sort_unstable();
    let is_daemon = |&id: &u32| trace.thread(id).is_none_or(|thread| thread.is_daemon);
    let columns = vec![
        ("thread", Values::Number(threads.iter().map(|&id| id.into()).collect())),
        ("name", Values::Text(threads.iter().map(|&id| text(trace.thread_name(id).unwrap_or_default())).collect())),
        ("is_daemon", Values::Flag(threads.iter().map(is_daemon).collect())),
    ];
    write("threads", file, columns)
}
