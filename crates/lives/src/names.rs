//! The tables that explain the numbers in a life table.

use std::fs::File;
use std::io;

use et_columns::{Rows, TableReader, TableWriter, Written};
use et_names::{MethodId, SiteId};
use et_reader::Trace;
use et_reader::model::{ContextId, Contexts};
use et_reader::types::{TypeId, for_people};

use crate::known::number32;
use crate::maker::Named;
use crate::tables;

fn write<R: Rows>(file: File, rows: impl IntoIterator<Item = R::Row>) -> io::Result<Written> {
    let mut writer = TableWriter::<R>::new(file);
    for row in rows {
        writer.push(row);
        // `finish` returns the error.
        if writer.has_failed() {
            break;
        }
    }
    writer.finish()
}

/// Writes the classes, by their numbers in this life table.
pub fn classes(file: File, trace: &Trace, used: &Named) -> io::Result<Written> {
    let mut classes: Vec<TypeId> = used.classes.iter().copied().collect();
    classes.sort_unstable_by_key(|class| class.0);
    let row = |class: TypeId| tables::classes::Row {
        class: class.0.into(),
        name: for_people(trace.types.descriptor(class)).to_string(),
    };
    write::<tables::classes::Rows>(file, classes.into_iter().map(row))
}

/// Writes the sites, by id.
pub fn sites(file: File, trace: &Trace, used: &Named) -> io::Result<Written> {
    let mut sites: Vec<SiteId> = used.sites.iter().copied().collect();
    sites.sort_unstable_by_key(|site| site.0);
    let row = |site: SiteId| tables::sites::Row {
        site: site.0.into(),
        method: trace.names.site(site).map(|(table, site)| i64::from(table.method_id(site.method).0)),
        name: trace.names.site_text(site),
    };
    write::<tables::sites::Rows>(file, sites.into_iter().map(row))
}

/// Writes the tree of calling contexts, callers before callees, without the `known` first ones; 0 is the empty one.
pub fn contexts(file: File, contexts: &Contexts, known: usize) -> io::Result<Written> {
    let rows = contexts.iter().skip(known).map(|(id, context)| tables::contexts::Row {
        context: id.0.into(),
        caller: context.caller.0.into(),
        method: context.method.0.into(),
        depth: context.depth.into(),
        at: context.at.0.into(),
    });
    write::<tables::contexts::Rows>(file, rows)
}

/// Appends what [`contexts`] wrote to the contexts that are known.
pub fn read_contexts(file: File, mut known: Contexts) -> io::Result<Contexts> {
    let table = TableReader::open(file)?;
    for group in 0..table.groups() {
        let column = |name| table.numbers(group, name);
        let (numbers, callers, methods, at) = (column("context")?, column("caller")?, column("method")?, column("at")?);
        for (row, number) in numbers.into_iter().enumerate() {
            let number = ContextId(number32(number)?);
            let (caller, method) = (ContextId(number32(callers[row])?), MethodId(number32(methods[row])?));
            // The empty context already exists.
            if number != ContextId::EMPTY && known.append(caller, SiteId(number32(at[row])?), method) != Some(number) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a context comes before its caller"));
            }
        }
    }
    Ok(known)
}

/// Writes the methods of contexts and sites, by id.
pub fn methods(file: File, trace: &Trace, contexts: &Contexts, used: &Named) -> io::Result<Written> {
    let of_sites =
        used.sites.iter().filter_map(|site| trace.names.site(*site).map(|(table, site)| table.method_id(site.method)));
    let mut methods: Vec<MethodId> =
        contexts.iter().skip(1).map(|(_, context)| context.method).chain(of_sites).collect();
    methods.sort_unstable();
    methods.dedup();
    let row =
        |method: MethodId| tables::methods::Row { method: method.0.into(), name: trace.names.method_text(method) };
    write::<tables::methods::Rows>(file, methods.into_iter().map(row))
}

/// Writes the threads of the run, including virtual ones that allocated an object or made one unreachable.
pub fn threads(file: File, trace: &Trace, used: &Named) -> io::Result<Written> {
    let virtual_ones = used.threads.iter().map(|thread| thread.0).filter(|&id| id != 0 && trace.thread(id).is_none());
    let mut threads: Vec<u32> = trace.threads.iter().map(|thread| thread.index).chain(virtual_ones).collect();
    threads.sort_unstable();
    let row = |id: u32| tables::threads::Row {
        thread: id.into(),
        name: trace.thread_name(id).unwrap_or_default().to_owned(),
        is_daemon: trace.thread(id).is_none_or(|thread| thread.is_daemon),
    };
    write::<tables::threads::Rows>(file, threads.into_iter().map(row))
}
