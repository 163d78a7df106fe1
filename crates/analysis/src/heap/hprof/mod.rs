//! A snapshot as a heap dump for other tools.
//!
//! References, classes, array lengths and roots are those of the trace. The contents of primitive fields and of
//! primitive arrays are not recorded: they are zero.

mod format;
mod layout;
#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};

use rustc_hash::{FxHashMap, FxHashSet};

use super::snapshot::{Object, RootKind, Snapshot, Via};
use et_names::MethodId;
use et_reader::Trace;
use et_reader::model::Node;
use et_reader::record::ThreadId;
use et_reader::source::Source;
use et_reader::types::class_name;
use format::{Basic, ClassDump, GcRoot, INSTANCE_HEAD, NUMBERS_HEAD, OBJECTS_HEAD, StaticField, Writer};
use layout::Layouts;

/// The size of a heap dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dumped {
    pub classes: u64,
    /// Objects, mirrors included, which the dump has as classes.
    pub objects: u64,
    /// Arrays that are longer than the format allows.
    pub cut_arrays: u64,
}

/// Says what is not in the dump; it is its first string.
const NOTE: &str = "Written by et-trace from a trace: references and lengths of arrays are exact; contents of primitive fields and of \
                    arrays of numbers, and so of strings, are not recorded and are zero";

/// Parts of the dump are this long, or as long as one array. Tests make them small.
const SEGMENT: u64 = 1 << 30;
/// Names in angle brackets are not static fields of the program; HotSpot uses such names as well.
const FIELD_OF_MIRROR: &str = "Class";

/// Writes a snapshot of that source.
pub fn write(source: &Source, snapshot: &Snapshot<'_>, out: impl Write) -> io::Result<Dumped> {
    write_in_segments(source, snapshot, out, SEGMENT)
}

fn write_in_segments(source: &Source, snapshot: &Snapshot<'_>, out: impl Write, segment: u64) -> io::Result<Dumped> {
    let trace = source.trace();
    let millis = trace.map_or(0, |trace| trace.file.meta().start_unix_millis);
    let seconds = snapshot.taken().seconds.unwrap_or_default();
    let out = Writer::new(BufWriter::with_capacity(1 << 18, out), millis.saturating_add((seconds * 1000.0) as u64))?;
    let layouts = Layouts::of(snapshot, trace);
    let mut dump = Dump { trace, snapshot, layouts, out, segment, dumped: Dumped::default() };
    dump.out.string(NOTE)?;
    let mirrors = dump.load_classes()?;
    let traces = dump.stacks()?;
    let live = (snapshot.bytes(), snapshot.len() as u64);
    dump.out.summary(live, snapshot.taken().allocated_bytes)?;
    dump.roots_and_classes(&mirrors, &traces)?;
    dump.objects(&mirrors)?;
    dump.out.finish()?;
    Ok(dump.dumped)
}

struct Dump<'s, 'a, W> {
    trace: Option<&'s Trace>,
    snapshot: &'s Snapshot<'a>,
    layouts: Layouts,
    out: Writer<W>,
    segment: u64,
    dumped: Dumped,
}

/// Mirrors that the dump has as classes, each with which layout is that of its class.
type Mirrors = Vec<(Node, usize)>;

impl<W: Write> Dump<'_, '_, W> {
    /// Names of classes, and the mirrors that are dumped as such.
    fn load_classes(&mut self) -> io::Result<Mirrors> {
        let mut mirrors = Vec::new();
        for (node, descriptor) in &self.snapshot.mirrors {
            if let Some(layout) = self.layouts.find(descriptor) {
                mirrors.push((*node, layout));
            }
        }
        let without_mirror = self.layouts.all.iter().filter(|layout| layout.mirror.is_none());
        let ids = mirrors.iter().map(|&(node, layout)| (self.snapshot.object(node).id.0, layout));
        let without = without_mirror.filter_map(|layout| Some((layout.id, self.layouts.find(&layout.descriptor)?)));
        let all: Vec<(u64, usize)> = ids.chain(without).collect();
        for (serial, (id, layout)) in (1..).zip(all) {
            let descriptor = &self.layouts.all[layout].descriptor;
            self.out.load_class(serial, id, class_name(descriptor).unwrap_or(descriptor))?;
        }
        Ok(mirrors)
    }

    /// The stacks of all threads; the serial number of each thread's trace.
    fn stacks(&mut self) -> io::Result<FxHashMap<ThreadId, u32>> {
        self.out.trace(format::NO_TRACE, 0, &[])?;
        let mut frames: FxHashMap<MethodId, u64> = FxHashMap::default();
        let mut traces = FxHashMap::default();
        for (serial, (thread, stack)) in (format::NO_TRACE + 1..).zip(self.snapshot.stacks()) {
            let mut ids = Vec::with_capacity(stack.frames.len());
            for frame in stack.frames.iter().rev() {
                let id = match frames.get(&frame.method) {
                    Some(&id) => id,
                    None => {
                        let id = frames.len() as u64 + 1;
                        frames.insert(frame.method, id);
                        self.frame(id, frame.method)?;
                        id
                    }
                };
                ids.push(id);
            }
            self.out.trace(serial, thread.0, &ids)?;
            traces.insert(*thread, serial);
        }
        // Threads without a stack have an empty trace.
        let without = self.snapshot.threads().iter().filter(|(thread, _)| !traces.contains_key(thread));
        let without: Vec<ThreadId> = without.map(|&(thread, _)| thread).collect();
        for (serial, thread) in (format::NO_TRACE + 1 + traces.len() as u32..).zip(without) {
            self.out.trace(serial, thread.0, &[])?;
            traces.insert(thread, serial);
        }
        Ok(traces)
    }

    fn frame(&mut self, id: u64, method: MethodId) -> io::Result<()> {
        let Some((table, entry)) = self.trace.and_then(|trace| trace.names.method(method)) else {
            let text = self.snapshot.naming().method(method);
            return self.out.frame(id, (&text, "", ""), 0);
        };
        let class = &table.classes[entry.class as usize];
        let texts = (table.str(entry.name), table.str(entry.descriptor), table.str(class.source_file));
        let descriptor = format!("L{};", table.str(class.name));
        // Serial numbers of classes begin with those that have a mirror, in order.
        let serial = self.layouts.find(&descriptor).and_then(|layout| self.layouts.all[layout].mirror);
        let serial =
            serial.and_then(|mirror| self.snapshot.mirrors.binary_search_by_key(&mirror, |(node, _)| *node).ok());
        self.out.frame(id, texts, serial.map_or(0, |at| at as u32 + 1))
    }

    fn roots_and_classes(&mut self, mirrors: &Mirrors, traces: &FxHashMap<ThreadId, u32>) -> io::Result<()> {
        let mut body = Vec::new();
        let snapshot = self.snapshot;
        let dumped: FxHashSet<Node> = mirrors.iter().map(|&(node, _)| node).collect();
        let running: FxHashSet<ThreadId> = snapshot.threads().iter().map(|&(thread, _)| thread).collect();
        let depths: FxHashMap<ThreadId, u32> =
            snapshot.stacks().iter().map(|(thread, stack)| (*thread, stack.frames.len() as u32)).collect();
        for root in snapshot.roots() {
            // Innermost first, as the trace has them.
            let place = |thread: ThreadId, depth: u32| depths.get(&thread).map_or(0, |all| all - 1 - depth);
            let kind = match root.kind {
                // The class dump has them, and is a root itself.
                RootKind::Static(_) => continue,
                RootKind::Class if dumped.contains(&root.node) => continue,
                RootKind::Class => GcRoot::StickyClass,
                RootKind::Receiver { thread, depth, .. } | RootKind::Exception { thread, depth, .. } => {
                    GcRoot::Frame(thread.0, place(thread, depth))
                }
                RootKind::Thread(thread) => {
                    GcRoot::Thread(thread.0, traces.get(&thread).copied().unwrap_or(format::NO_TRACE))
                }
                RootKind::Loader | RootKind::Constant | RootKind::Vm => GcRoot::JniGlobal,
                RootKind::Local(thread) if running.contains(&thread) => GcRoot::JniLocal(thread.0),
                RootKind::Local(_) | RootKind::Unrecorded(_) => GcRoot::Unknown,
            };
            kind.write(&mut body, snapshot.object(root.node).id.0);
        }
        let loaders = self.loaders();
        let statics: FxHashMap<u32, Node> =
            snapshot.statics().iter().map(|&(field, _, target)| (field.0, target)).collect();
        for &(node, layout) in mirrors {
            self.class(&mut body, Some(node), layout, &loaders, &statics)?;
        }
        for layout in
            (0..self.layouts.all.len()).filter(|&at| self.layouts.all[at].mirror.is_none()).collect::<Vec<_>>()
        {
            self.class(&mut body, None, layout, &loaders, &statics)?;
        }
        let length =
            u32::try_from(body.len()).map_err(|_| io::Error::other("more classes than a heap dump can have"))?;
        self.out.segment(length)?.write_all(&body)
    }

    /// Objects by their hashes, of those that are class loaders.
    fn loaders(&self) -> FxHashMap<u32, u64> {
        let wanted: FxHashSet<u32> =
            self.layouts.all.iter().map(|layout| layout.loader).filter(|&hash| hash != 0).collect();
        let mut found: FxHashMap<u32, u64> = FxHashMap::default();
        let hashed = self.snapshot.nodes().filter_map(|(_, object)| Some((object.id.identity_hash()?, object.id.0)));
        for (hash, id) in hashed.filter(|(hash, _)| wanted.contains(hash)) {
            let known = found.entry(hash).or_default();
            *known = (*known).max(id);
        }
        found
    }

    fn class(
        &mut self,
        body: &mut Vec<u8>,
        mirror: Option<Node>,
        layout: usize,
        loaders: &FxHashMap<u32, u64>,
        held: &FxHashMap<u32, Node>,
    ) -> io::Result<()> {
        let snapshot = self.snapshot;
        let id = |node: Node| snapshot.object(node).id.0;
        let Layouts { all, .. } = &self.layouts;
        let class = &all[layout];
        // Of classes of one name the first has the static fields.
        let is_first = mirror == class.mirror;
        let mut statics = Vec::new();
        for (name, basic, field) in class.statics.iter().filter(|_| is_first) {
            let value = held.get(field).filter(|_| *basic == Basic::Object).map_or(0, |&target| id(target));
            statics.push(StaticField { name: self.out.string(name)?, basic: *basic, value });
        }
        // Other references of the mirror have no other place, since a mirror is not an instance here.
        for reference in mirror.iter().flat_map(|&mirror| snapshot.references(mirror)) {
            if let Via::Field(field) = reference.via {
                let text = snapshot.field_text(field);
                let name = text.rsplit_once('.').map_or(text.as_str(), |(_, name)| name);
                let name = self.out.string(&format!("<{FIELD_OF_MIRROR}.{name}>"))?;
                statics.push(StaticField { name, basic: Basic::Object, value: id(reference.target) });
            }
        }
        let mut fields = Vec::with_capacity(class.fields.len());
        for (name, basic, _) in &class.fields {
            fields.push((self.out.string(name)?, *basic));
        }
        let dump = ClassDump {
            id: mirror.map_or(class.id, id),
            super_id: class.above.map_or(0, |above| all[above].id),
            loader: loaders.get(&class.loader).copied().unwrap_or_default(),
            instance_size: class.length,
            statics: &statics,
            fields: &fields,
        };
        dump.write(body);
        GcRoot::StickyClass.write(body, dump.id);
        self.dumped.classes += 1;
        self.dumped.objects += u64::from(mirror.is_some());
        Ok(())
    }

    /// All objects but the mirrors, in parts of a length that is known before they are written.
    fn objects(&mut self, mirrors: &Mirrors) -> io::Result<()> {
        let classes: FxHashSet<Node> = mirrors.iter().map(|&(node, _)| node).collect();
        let nodes: Vec<Node> =
            self.snapshot.nodes().map(|(node, _)| node).filter(|node| !classes.contains(node)).collect();
        let (mut from, mut length) = (0, 0);
        for (at, &node) in nodes.iter().enumerate() {
            let bytes = self.form(node).bytes;
            if length > 0 && length + bytes > self.segment {
                self.part(&nodes[from..at], length)?;
                (from, length) = (at, 0);
            }
            length += bytes;
        }
        if length > 0 {
            self.part(&nodes[from..], length)?;
        }
        Ok(())
    }

    fn part(&mut self, nodes: &[Node], length: u64) -> io::Result<()> {
        let length = u32::try_from(length).map_err(|_| io::Error::other("an object is too large for a heap dump"))?;
        self.out.segment(length)?;
        let mut fields = Vec::new();
        for &node in nodes {
            self.object(node, &mut fields)?;
        }
        Ok(())
    }

    /// How an object is written, and in how many bytes.
    fn form(&self, node: Node) -> Form {
        let object = self.snapshot.object(node);
        let layout = &self.layouts.all[self.layouts.of_class[object.class.0 as usize]];
        let Some(element) = layout.descriptor.strip_prefix('[') else {
            return Form {
                basic: None,
                length: layout.length,
                bytes: INSTANCE_HEAD + u64::from(layout.length),
                is_cut: false,
            };
        };
        let basic = Basic::of(element);
        let head = if basic == Basic::Object { OBJECTS_HEAD } else { NUMBERS_HEAD };
        let most = ((u64::from(u32::MAX) - head) / basic.bytes() as u64) as u32;
        let asked = self.length(node, object);
        let length = asked.min(most);
        let bytes = head + u64::from(length) * basic.bytes() as u64;
        Form { basic: Some(basic), length, bytes, is_cut: asked > most }
    }

    /// A text may not say how long an array is: then it is as long as what it holds.
    fn length(&self, node: Node, object: &Object) -> u32 {
        let last = self.snapshot.graph().slots(node.0).last();
        last.map_or(0, |(index, _)| index.saturating_add(1)).max(object.length)
    }

    fn object(&mut self, node: Node, fields: &mut Vec<u8>) -> io::Result<()> {
        let Form { basic, length, is_cut, .. } = self.form(node);
        let snapshot = self.snapshot;
        let object = snapshot.object(node);
        let layout = &self.layouts.all[self.layouts.of_class[object.class.0 as usize]];
        let out = self.out.body();
        self.dumped.objects += 1;
        self.dumped.cut_arrays += u64::from(is_cut);
        match basic {
            None => {
                format::instance(out, object.id.0, layout.id, length)?;
                fields.clear();
                fields.resize(length as usize, 0);
                for reference in snapshot.references(node) {
                    let Via::Field(field) = reference.via else { continue };
                    if let Some(&offset) = layout.offsets.get(&field.0) {
                        let value = snapshot.object(reference.target).id.0.to_be_bytes();
                        fields[offset as usize..offset as usize + format::ID].copy_from_slice(&value);
                    }
                }
                out.write_all(fields)
            }
            Some(Basic::Object) => {
                format::objects(out, object.id.0, layout.id, length)?;
                let mut next = 0;
                for (index, target) in snapshot.graph().slots(node.0).filter(|&(index, _)| index < length) {
                    format::zeros(out, u64::from(index - next) * format::ID as u64)?;
                    out.write_all(&snapshot.object(Node(target)).id.0.to_be_bytes())?;
                    next = index + 1;
                }
                format::zeros(out, u64::from(length - next) * format::ID as u64)
            }
            Some(basic) => {
                format::numbers(out, object.id.0, basic, length)?;
                format::zeros(out, u64::from(length) * basic.bytes() as u64)
            }
        }
    }
}

struct Form {
    /// Of an array that of its elements.
    basic: Option<Basic>,
    /// Elements, or bytes of fields.
    length: u32,
    bytes: u64,
    is_cut: bool,
}
