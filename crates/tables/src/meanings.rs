//! The tables that explain the numbers in others: classes, methods, fields, sites, contexts, threads, collections.

use std::io;

use et_format::{GcRecord, class_flags};
use et_names::{FieldId, MethodId, SiteId};
use et_reader::blocked::{self, Cause, site};
use et_reader::made_in::MadeIn;
use et_reader::model::{ContextId, Contexts};
use et_reader::naming::Naming;
use et_reader::record::ThreadId;
use et_reader::resolve::ExtraField;
use et_reader::source::Source;
use et_reader::types::{TypeId, Types, for_people};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::book::{Book, TableWriter};
use crate::tables::{classes, collections, contexts, fields, methods, monitors, sites, threads};
use et_columns::Word;

/// First thread id of virtual threads.
const FIRST_VIRTUAL: u32 = 1 << 31;
/// First id of fields that are in no names table.
const FIRST_EXTRA: u32 = 1 << 30;
/// `access_flags` (JVMS §4.5).
const ACC_FINAL: u16 = 0x0010;

/// Number of objects and of bytes.
pub type Amount = (i64, i64);

fn sorted<T: Ord + Copy>(all: &FxHashSet<T>) -> Vec<T> {
    let mut all: Vec<T> = all.iter().copied().collect();
    all.sort_unstable();
    all
}

fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Writes the classes of objects and those that the run loaded, with their superclasses.
pub fn classes(book: &mut Book, source: &Source, types: &Types, used: &FxHashSet<TypeId>) -> io::Result<()> {
    let mut writer: TableWriter<classes::Rows> = book.table()?;
    let mut all = used.clone();
    let mut loaders: FxHashMap<TypeId, i64> = FxHashMap::default();
    if let Source::Trace(trace) = source {
        for class in trace.classes.iter() {
            all.insert(class.ty);
            *loaders.entry(class.ty).or_default() += 1;
        }
    }
    for class in sorted(&all) {
        let descriptor = types.descriptor(class);
        let name = for_people(descriptor);
        let known = source
            .trace()
            .and_then(|trace| trace.classes.of_type(class).map(|index| (trace, trace.classes.get(index))));
        let is_array = descriptor.starts_with('[');
        let package = name.rsplit_once('.').filter(|_| !is_array).map(|(package, _)| package.to_owned());
        writer.push(classes::Row {
            class: class.0.into(),
            package: package.unwrap_or_default(),
            name,
            descriptor: descriptor.to_owned(),
            superclass: known
                .and_then(|(trace, class)| class.superclass.map(|index| trace.classes.get(index).ty.0.into())),
            is_array,
            is_hidden: known.is_some_and(|(_, class)| class.record.flags & class_flags::HIDDEN != 0),
            instance_bytes: known
                .map(|(_, class)| i64::from(class.record.instance_size))
                .filter(|&bytes| bytes > 0 && !is_array),
            loaders: loaders.get(&class).copied().unwrap_or_default(),
        });
    }
    writer.finish();
    Ok(())
}

/// Writes the methods by their ids.
pub fn methods(book: &mut Book, source: &Source, used: &FxHashSet<MethodId>) -> io::Result<()> {
    let mut writer: TableWriter<methods::Rows> = book.table()?;
    let naming = source.naming();
    for id in sorted(used) {
        let known = source.trace().and_then(|trace| trace.names.method(id));
        let code = naming.code_of_method(id);
        writer.push(methods::Row {
            method: id.0.into(),
            name: naming.method(id),
            class: naming.class_of_method(id).map(|class| class.replace('/', ".")),
            descriptor: known.map(|(table, method)| table.str(method.descriptor).to_owned()),
            file: code.as_ref().and_then(|code| optional(&code.file)),
            line: code.map(|code| code.line.into()).filter(|&line: &i64| line > 0),
            is_static: known.map(|(_, method)| method.is_static()),
            artifact: known.map(|(table, _)| table.artifact.name.clone()),
        });
    }
    writer.finish();
    Ok(())
}

/// Writes the fields by their ids, including those that are in no names table.
pub fn fields(book: &mut Book, source: &Source, used: &FxHashSet<FieldId>, extra: &[ExtraField]) -> io::Result<()> {
    let mut writer: TableWriter<fields::Rows> = book.table()?;
    let naming = source.naming();
    for id in sorted(used) {
        let known = source.trace().and_then(|trace| trace.names.field(id));
        let beyond = id.0.checked_sub(FIRST_EXTRA).and_then(|at| extra.get(at as usize)).filter(|_| known.is_none());
        let row = match (known, beyond) {
            (Some((table, field)), _) => fields::Row {
                field: id.0.into(),
                name: naming.field(id),
                class: Some(table.str(table.classes[field.class as usize].name).replace('/', ".")),
                descriptor: Some(table.str(field.descriptor).to_owned()),
                is_static: Some(field.is_static()),
                is_final: Some(field.access & ACC_FINAL != 0),
            },
            (None, Some(field)) => fields::Row {
                field: id.0.into(),
                name: format!("{}.{}", field.class.replace('/', "."), field.name),
                class: Some(field.class.replace('/', ".")),
                descriptor: Some(field.descriptor.clone()),
                is_static: Some(field.is_static),
                is_final: None,
            },
            (None, None) => {
                let name = naming.field(id);
                let class = name.rsplit_once('.').map(|(class, _)| class.to_owned());
                fields::Row { field: id.0.into(), name, class, descriptor: None, is_static: None, is_final: None }
            }
        };
        writer.push(row);
    }
    writer.finish();
    Ok(())
}

/// Writes the sites by their ids.
pub fn sites(
    book: &mut Book,
    source: &Source,
    used: &FxHashSet<SiteId>,
    places: &FxHashMap<MadeIn, i64>,
) -> io::Result<()> {
    let mut writer: TableWriter<sites::Rows> = book.table()?;
    let naming = source.naming();
    for id in sorted(used) {
        writer.push(sites::Row {
            site: id.0.into(),
            name: naming.site(id),
            method: naming.method_of_site(id).map(|method| method.0.into()),
            line: naming.line_of_site(id).map(Into::into),
            allocates: naming.type_of_site(id).map(for_people),
        });
    }
    let mut places: Vec<(i64, MadeIn)> = places.iter().map(|(&place, &number)| (number, place)).collect();
    places.sort_unstable();
    for (site, place) in places {
        let method = place.method(naming).map(|method| method.0.into());
        writer.push(sites::Row { site, name: place.text(naming), method, line: None, allocates: None });
    }
    writer.finish();
    Ok(())
}

/// Writes the tree of calling contexts.
pub fn contexts(book: &mut Book, naming: Naming<'_>, contexts: &Contexts) -> io::Result<()> {
    let mut writer: TableWriter<contexts::Rows> = book.table()?;
    for (id, context) in contexts.iter() {
        let is_empty = id == ContextId::EMPTY;
        writer.push(contexts::Row {
            context: id.0.into(),
            caller: (!is_empty).then_some(context.caller.0.into()),
            method: (!is_empty).then_some(context.method.0.into()),
            depth: context.depth.into(),
            line: (context.at.0 != 0).then(|| naming.line_of_site(context.at).map(i64::from)).flatten(),
        });
    }
    writer.finish();
    Ok(())
}

/// Writes the threads of the run and those that rows refer to.
pub fn threads(
    book: &mut Book,
    source: &Source,
    used: &FxHashSet<ThreadId>,
    allocated: &FxHashMap<ThreadId, Amount>,
) -> io::Result<()> {
    let mut writer: TableWriter<threads::Rows> = book.table()?;
    let mut all: FxHashSet<u32> = used.iter().map(|thread| thread.0).filter(|&thread| thread != 0).collect();
    if let Source::Trace(trace) = source {
        all.extend(trace.threads.iter().map(|thread| thread.index));
    }
    for id in sorted(&all) {
        let known = source.trace().and_then(|trace| trace.thread(id));
        let (objects, bytes) = allocated.get(&ThreadId(id)).copied().unwrap_or_default();
        writer.push(threads::Row {
            thread: id.into(),
            name: known.and_then(|thread| optional(&thread.name)),
            is_daemon: known.map_or(id >= FIRST_VIRTUAL, |thread| thread.is_daemon),
            is_virtual: id >= FIRST_VIRTUAL,
            ran_before: known.map(|thread| thread.from_start),
            has_ended: known.map(|thread| thread.end.is_some()),
            allocated_objects: objects,
            allocated_bytes: bytes,
        });
    }
    writer.finish();
    Ok(())
}

/// Writes the garbage collections; returns whether there are any.
pub fn collections(book: &mut Book, source: &Source) -> io::Result<bool> {
    let mut writer: TableWriter<collections::Rows> = book.table()?;
    let all: &[GcRecord] = match source {
        Source::Trace(trace) => &trace.gcs,
        Source::Text(_) => &[],
    };
    let known = |bytes: u64| (bytes > 0).then_some(bytes.cast_signed());
    for (number, gc) in (0..).zip(all) {
        writer.push(collections::Row {
            number,
            start_nanos: gc.start_nanos.cast_signed(),
            finish_nanos: gc.finish_nanos.cast_signed(),
            pause_nanos: gc.finish_nanos.saturating_sub(gc.start_nanos).cast_signed(),
            heap_used_bytes: known(gc.heap_used),
            heap_committed_bytes: known(gc.heap_committed),
        });
    }
    writer.finish();
    Ok(!all.is_empty())
}

/// Writes contention and waits; returns whether there are any.
pub fn monitors(book: &mut Book, source: &Source) -> io::Result<bool> {
    let mut writer: TableWriter<monitors::Rows> = book.table()?;
    let all = source.trace().map(|trace| blocked::all(&trace.monitors).all).unwrap_or_default();
    for (number, blocked) in (0..).zip(&all) {
        let (kind, owner, wait) = match blocked.cause {
            Cause::Contention { owner } => ("contended", Some(owner).filter(|owner| *owner != 0), None),
            Cause::Wait { timeout_millis, is_timed_out } => ("wait", None, Some((timeout_millis, is_timed_out))),
        };
        writer.push(monitors::Row {
            number,
            kind: Word(kind),
            thread: blocked.thread.into(),
            owner: owner.map(i64::from),
            object: blocked.object.0.into(),
            class: for_people(&blocked.place.monitor_class),
            site: site(&blocked.place),
            begin_nanos: blocked.begin_nanos.cast_signed(),
            end_nanos: blocked.end_nanos.map(u64::cast_signed),
            timeout_millis: wait.map(|(millis, _)| millis.cast_signed()),
            is_timed_out: wait.filter(|_| blocked.end_nanos.is_some()).map(|(_, is_timed_out)| is_timed_out),
        });
    }
    writer.finish();
    Ok(!all.is_empty())
}
