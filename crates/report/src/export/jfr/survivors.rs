//! Objects that are alive at the end, with the ways to them, as the Flight Recorder's own leak profiler tells them.

use et_analysis::heap::paths::root_text;
use et_analysis::heap::{Root, RootKind, Snapshot, Survivor, Via};
use et_reader::model::Node;

use super::encode::{int, numbers, pooled_string};
use super::metadata::Type;
use super::pools::{OldObject, Reference};
use super::{Recording, class_name};

/// So many objects of a way are kept at each of its ends, as the Flight Recorder does it.
const ENDS: usize = 100;

/// Where a root is, and what it is, in the words of the Flight Recorder.
fn words(kind: RootKind) -> (&'static str, &'static str) {
    const UNKNOWN: &str = "<unknown>";
    match kind {
        RootKind::Static(_) | RootKind::Loader | RootKind::Constant | RootKind::Class => ("Class Loader Data", UNKNOWN),
        RootKind::Receiver { .. } | RootKind::Exception { .. } => ("Threads", "Stack Variable"),
        RootKind::Thread(_) => ("Threads", UNKNOWN),
        RootKind::Vm | RootKind::Local(_) | RootKind::Unrecorded(_) => (UNKNOWN, UNKNOWN),
    }
}

impl Recording<'_> {
    /// Adds objects of the heap at the end.
    pub fn add_survivors(&mut self, snapshot: &Snapshot<'_>, survivors: &[Survivor]) {
        let run = self.run;
        let heap_used = run.collections.iter().rev().map(|gc| gc.heap_used).find(|used| *used > 0).unwrap_or(0);
        for survivor in survivors {
            let (stack, _, site) = self.place(&survivor.origin, self.depth);
            let thread = self.thread(survivor.thread.0);
            let object = self.old_object(snapshot, survivor);
            let root = survivor.root.map_or(0, |root| self.root(snapshot, root));
            let known = snapshot.object(survivor.node);
            let is_array = snapshot.class(known.class).is_array;
            let born = survivor.birth_nanos.unwrap_or(0);
            // What has no elements has the least number there is, as the Flight Recorder has it.
            let elements = if is_array { known.length.cast_signed() } else { i32::MIN };
            self.push(Type::Survivor, run.nanos, |out| {
                numbers(out, &[thread, stack, born, known.size, run.nanos.saturating_sub(born), heap_used, object]);
                int(out, elements);
                numbers(out, &[root, survivor.retained]);
                pooled_string(out, site);
            });
        }
    }

    /// Number of an object in its pool, with the way to it.
    fn old_object(&mut self, snapshot: &Snapshot<'_>, survivor: &Survivor) -> u64 {
        let way = &survivor.way;
        let left_out = ENDS..way.len().saturating_sub(ENDS).max(ENDS);
        let mut holder = self.static_holder(snapshot, survivor.root).map(|(object, field)| (object, 0, field));
        let mut before = 0;
        for (at, &(node, _)) in way.iter().enumerate().filter(|(at, _)| !left_out.contains(at)) {
            let skip = if at == left_out.end { left_out.len() as u32 } else { 0 };
            let referrer = holder
                .map_or(0, |(object, array, field)| self.pools.reference(Reference { array, field, object, skip }));
            let descriptor = &snapshot.class(snapshot.object(node).class).descriptor;
            let class = self.pools.class(class_name(descriptor));
            let description = snapshot.mirrored(node).map_or_else(String::new, class_description);
            before = self.pools.old_object(OldObject { id: snapshot.object(node).id.0, class, description, referrer });
            holder = way.get(at + 1).and_then(|(_, via)| *via).map(|via| self.slot(snapshot, node, before, via));
        }
        before
    }

    /// The class of a static field, and the field: ways begin with it.
    fn static_holder(&mut self, snapshot: &Snapshot<'_>, root: Option<Root>) -> Option<(u64, u64)> {
        let RootKind::Static(field) = root?.kind else { return None };
        let text = snapshot.field_text(field);
        let (of, name) = text.rsplit_once('.')?;
        let class = self.pools.class("java/lang/Class");
        let mirror = snapshot.statics().iter().find(|(known, ..)| *known == field).and_then(|(_, mirror, _)| *mirror);
        let id = mirror.map_or(0, |mirror| snapshot.object(mirror).id.0);
        let object =
            self.pools.old_object(OldObject { id, class, description: format!("Class Name: {of}"), referrer: 0 });
        Some((object, self.pools.field_slot(name.to_owned(), true)))
    }

    /// Numbers of an object and of its slot: an element of an array, or a field.
    fn slot(&mut self, snapshot: &Snapshot<'_>, node: Node, object: u64, via: Via) -> (u64, u64, u64) {
        let (field, is_static) = match via {
            Via::Element(index) => return (object, self.pools.array_slot(snapshot.object(node).length, index), 0),
            Via::Field(field) => (field, false),
            Via::Static(field) => (field, true),
        };
        let text = snapshot.field_text(field);
        let name = text.rsplit_once('.').map_or(text.as_str(), |(_, name)| name).to_owned();
        (object, 0, self.pools.field_slot(name, is_static))
    }

    fn root(&mut self, snapshot: &Snapshot<'_>, root: Root) -> u64 {
        let (system, ty) = words(root.kind);
        self.pools.root(root_text(snapshot, root.kind), system, ty)
    }
}

/// What the Flight Recorder says of a mirror.
fn class_description(descriptor: &str) -> String {
    format!("Class Name: {}", et_reader::types::for_people(descriptor))
}
