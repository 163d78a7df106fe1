//! Makes a [`Snapshot`] of objects and references, wherever they come from: nodes without gaps, and few bytes for each.

use et_names::{FieldId, MethodId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::Graph;
use super::snapshot::{Class, ClassNumber, Object, Root, RootKind, Snapshot, Taken};
use et_reader::Trace;
use et_reader::lifetimes::WeakFields;
use et_reader::model::{Node, Stack};
use et_reader::record::ThreadId;
use et_reader::resolve::ExtraField;
use et_reader::source::Source;
use et_reader::types::{TypeId, Types};

/// What the slots hold.
pub(super) struct References<F> {
    /// Static fields with what they hold, in no particular order.
    pub statics: Vec<(FieldId, Node)>,
    /// About how many references the other slots hold.
    pub count: usize,
    /// Appends slots and targets of the next object, in order of the slots. Called once for each.
    pub next_slots: F,
}

/// References that are known all at once: origin, slot and target of each, in order of the origins.
pub(super) fn references(
    statics: Vec<(FieldId, Node)>,
    edges: Vec<(u32, u32, u32)>,
) -> References<impl FnMut(&mut Vec<(u32, u32)>)> {
    let (count, mut left, mut node) = (edges.len(), edges.into_iter().peekable(), 0);
    let next_slots = move |slots: &mut Vec<(u32, u32)>| {
        while let Some((_, slot, target)) = left.next_if(|&(origin, ..)| origin == node) {
            slots.push((slot, target));
        }
        node += 1;
    };
    References { statics, count, next_slots }
}

/// What holds objects from outside.
pub(super) struct Outside<R> {
    /// All that is known to, but for static fields and mirrors.
    pub roots: Vec<Root>,
    pub stacks: Vec<(ThreadId, Stack)>,
    pub threads: Vec<(ThreadId, Option<Node>)>,
    /// What holds an object that is alive though nothing that is recorded holds it, given its thread.
    pub unheld: R,
}

/// A snapshot under construction.
pub(super) struct Freezing<'w, 'a> {
    source: &'a Source,
    weak: &'w WeakFields,
    objects: Vec<Object>,
    classes: Vec<Class>,
    numbers: FxHashMap<TypeId, ClassNumber>,
    /// By class: whether the referent of its objects is weak.
    has_weak: Vec<bool>,
    class_class: Option<ClassNumber>,
}

impl<'w, 'a> Freezing<'w, 'a> {
    /// With room for so many objects.
    pub fn new(source: &'a Source, weak: &'w WeakFields, objects: usize) -> Self {
        Self {
            source,
            weak,
            objects: Vec::with_capacity(objects),
            classes: Vec::new(),
            numbers: FxHashMap::default(),
            has_weak: Vec::new(),
            class_class: None,
        }
    }

    /// Number of objects so far, which is the node of the next.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Adds an object of a class.
    pub fn object(&mut self, class: TypeId, types: &Types, make: impl FnOnce(ClassNumber) -> Object) {
        let class = match self.numbers.get(&class) {
            Some(&number) => number,
            None => {
                let number = self.class(types.descriptor(class));
                self.numbers.insert(class, number);
                number
            }
        };
        self.objects.push(make(class));
    }

    fn class(&mut self, descriptor: &str) -> ClassNumber {
        let number = ClassNumber(self.classes.len() as u32);
        let is_array = descriptor.starts_with('[');
        self.has_weak.push(!is_array && !self.weak.final_references.contains(descriptor));
        self.classes.push(Class { descriptor: descriptor.to_owned(), is_array });
        if descriptor == "Ljava/lang/Class;" {
            self.class_class = Some(number);
        }
        number
    }

    /// Where the mirrors of classes are, and objects with these hashes: the youngest of each.
    pub fn named(&self, hashes: impl Iterator<Item = u32>) -> FxHashMap<u32, Node> {
        let mut wanted: FxHashSet<u32> = hashes.collect();
        let trace = self.source.trace();
        wanted.extend(trace.into_iter().flat_map(|trace| trace.classes.iter().map(|class| class.record.class.0)));
        wanted.remove(&0);
        let mut found: FxHashMap<u32, Node> = FxHashMap::default();
        for (node, object) in (0..).map(Node).zip(&self.objects) {
            let Some(hash) = object.id.identity_hash().filter(|hash| wanted.contains(hash)) else { continue };
            let known = found.entry(hash).or_insert(node);
            if self.objects[known.0 as usize].id < object.id {
                *known = node;
            }
        }
        found
    }

    /// Completes it. `named`: where mirrors are.
    pub fn freeze(
        self,
        named: &FxHashMap<u32, Node>,
        references: References<impl FnMut(&mut Vec<(u32, u32)>)>,
        outside: Outside<impl Fn(Node, ThreadId) -> RootKind>,
        extra_fields: &[ExtraField],
        taken: Taken,
    ) -> Snapshot<'a> {
        let trace = self.source.trace();
        let mirrors = trace.map(|trace| self.mirrors(trace, named)).unwrap_or_default();
        let statics = statics(trace, &references.statics, &mirrors);
        let (graph, weak) = self.graph(references.count, references.next_slots, &statics);
        let Outside { mut roots, stacks, threads, unheld } = outside;
        roots.extend(statics.iter().map(|&(field, _, node)| Root { kind: RootKind::Static(field), node }));
        let nodes = (0..).map(Node).zip(&self.objects);
        let all_mirrors = nodes.filter(|(_, object)| Some(object.class) == self.class_class);
        roots.extend(all_mirrors.map(|(node, _)| Root { kind: RootKind::Class, node }));
        let mut snapshot = Snapshot {
            naming: self.source.naming(),
            extra_fields: extra_fields.to_vec(),
            roots,
            objects: self.objects,
            classes: self.classes,
            graph,
            weak,
            static_fields: statics.iter().map(|(field, ..)| field.0).collect(),
            statics,
            mirrors,
            stacks,
            threads,
            thread_names: thread_names(trace),
            taken,
        };
        add_unheld(&mut snapshot, unheld);
        snapshot.roots.sort_unstable();
        // What a mirror holds needs no root of its own.
        for root in &snapshot.roots {
            let through_mirror = |field| {
                let at = snapshot.statics.binary_search_by_key(&field, |(field, ..)| *field);
                at.is_ok_and(|at| snapshot.statics[at].1.is_some())
            };
            if !matches!(root.kind, RootKind::Static(field) if through_mirror(field)) {
                snapshot.graph.edge(0, root.node.0);
            }
        }
        snapshot.graph.end_node();
        snapshot
    }

    fn mirrors(&self, trace: &Trace, named: &FxHashMap<u32, Node>) -> Vec<(Node, String)> {
        let mut mirrors: Vec<(Node, String)> = Vec::new();
        for class in trace.classes.iter() {
            if let Some(&node) = named.get(&class.record.class.0)
                && Some(self.objects[node.0 as usize].class) == self.class_class
            {
                mirrors.push((node, class.record.signature.clone()));
            }
        }
        // If mirrors of several classes had the same id one after the other, the last counts.
        mirrors.reverse();
        mirrors.sort_by_key(|&(node, _)| node);
        mirrors.dedup_by_key(|(node, _)| *node);
        mirrors
    }

    /// The references, all but those from the root.
    fn graph(
        &self,
        count: usize,
        mut next_slots: impl FnMut(&mut Vec<(u32, u32)>),
        statics: &[(FieldId, Option<Node>, Node)],
    ) -> (Graph, Vec<(Node, FieldId, Node)>) {
        let referent = self.weak.referent.map(|field| field.0);
        let mut of_mirrors: Vec<(Node, FieldId, Node)> =
            statics.iter().filter_map(|&(field, mirror, target)| Some((mirror?, field, target))).collect();
        of_mirrors.sort_unstable();
        let mut of_mirrors = of_mirrors.into_iter().peekable();
        let (mut graph, mut weak) = (Graph::with_capacity(self.objects.len(), count + statics.len()), Vec::new());
        let mut slots = Vec::new();
        for (from, object) in (0..).map(Node).zip(&self.objects) {
            next_slots(&mut slots);
            for (slot, target) in slots.drain(..) {
                if Some(slot) == referent && self.has_weak[object.class.0 as usize] {
                    weak.push((from, FieldId(slot), Node(target)));
                } else {
                    graph.edge(slot, target);
                }
            }
            while let Some((_, field, target)) = of_mirrors.next_if(|&(mirror, ..)| mirror == from) {
                graph.edge(field.0, target.0);
            }
            graph.end_node();
        }
        (graph, weak)
    }
}

/// The threads that run behind the events of a ticket.
pub(super) fn threads_running(trace: &Trace, ticket: u64) -> impl Iterator<Item = &et_reader::Thread> {
    let is_running =
        move |thread: &&et_reader::Thread| thread.start.0 <= ticket && thread.end.is_none_or(|end| end.0 > ticket);
    trace.threads.iter().filter(is_running)
}

/// The roots that a stack is: receivers of its methods, outermost first, and the exception in flight on it.
pub(super) fn stack_roots(
    thread: ThreadId,
    frames: impl Iterator<Item = (MethodId, Option<Node>)>,
    in_flight: Option<Node>,
) -> Vec<Root> {
    let (mut roots, mut top) = (Vec::new(), None);
    for (depth, (method, receiver)) in (0..).zip(frames) {
        top = Some((depth, method));
        roots.extend(receiver.map(|node| Root { kind: RootKind::Receiver { thread, depth, method }, node }));
    }
    if let (Some((depth, method)), Some(node)) = (top, in_flight) {
        roots.push(Root { kind: RootKind::Exception { thread, depth, method }, node });
    }
    roots
}

/// Static fields with the mirrors of their classes, in order of the fields.
fn statics(
    trace: Option<&Trace>,
    held: &[(FieldId, Node)],
    mirrors: &[(Node, String)],
) -> Vec<(FieldId, Option<Node>, Node)> {
    // The first class of a name is the one that its fields count for.
    let mut of_type: FxHashMap<&str, Node> = FxHashMap::default();
    mirrors.iter().for_each(|(node, descriptor)| _ = of_type.entry(descriptor).or_insert(*node));
    let mirror = |field| {
        let trace = trace?;
        let class = trace.names.class_of_field(field)?;
        of_type.get(trace.types.descriptor(trace.names.type_of(class))).copied()
    };
    let mut statics: Vec<_> = held.iter().map(|&(field, target)| (field, mirror(field), target)).collect();
    statics.sort_unstable();
    statics
}

fn thread_names(trace: Option<&Trace>) -> Vec<(ThreadId, String)> {
    let threads = trace.map(|trace| &*trace.threads).unwrap_or_default();
    threads.iter().map(|thread| (ThreadId(thread.index), thread.name.clone())).collect()
}

/// Adds roots for what is alive though nothing that is recorded holds it. Of objects that hold each other in a circle it is the first.
fn add_unheld(snapshot: &mut Snapshot<'_>, kind: impl Fn(Node, ThreadId) -> RootKind) {
    let (graph, objects) = (&snapshot.graph, &snapshot.objects);
    let mut reached = vec![false; objects.len()];
    let mut stack: Vec<u32> = Vec::new();
    let mut follow = |from: u32, reached: &mut [bool]| {
        stack.push(from);
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut reached[node as usize], true) {
                stack.extend(graph.targets(node).iter().filter(|&&target| !reached[target as usize]));
            }
        }
    };
    for root in &snapshot.roots {
        follow(root.node.0, &mut reached);
    }
    let mut is_held = vec![false; objects.len()];
    for from in (0..objects.len() as u32).filter(|&from| !reached[from as usize]) {
        for &target in graph.targets(from) {
            is_held[target as usize] |= target != from;
        }
    }
    let mut unheld = Vec::new();
    for in_circles in [false, true] {
        for node in 0..objects.len() as u32 {
            if !reached[node as usize] && (in_circles || !is_held[node as usize]) {
                unheld.push(Root { kind: kind(Node(node), objects[node as usize].thread), node: Node(node) });
                follow(node, &mut reached);
            }
        }
    }
    snapshot.roots.extend(unheld);
}
