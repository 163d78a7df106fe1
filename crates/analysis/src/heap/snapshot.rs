//! The heap at a moment.

use et_names::{FieldId, MethodId, SiteId};
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::graph::Graph;
use super::moment::Moment;
use et_reader::model::{Node, Stack};
use et_reader::naming::Naming;
use et_reader::record::{AllocKind, ObjectId, ThreadId};
use et_reader::resolve::{ExtraField, Lost};
use et_reader::types::for_people;

/// When a snapshot is of, and how much had happened by then.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// The moment as the user specified it.
    pub moment: String,
    pub tick: u64,
    /// Bytes of all objects that had been allocated while tracing was on.
    pub allocated_bytes: u64,
    /// Since the start, accurate to one chunk of events; `None` where the trace does not say.
    pub seconds: Option<f64>,
    /// What happened to the watched object.
    #[serde(skip)]
    pub watched: Watched,
    /// Warnings about anything unusual.
    pub warnings: Vec<String>,
    /// What was lost, if the whole trace was read.
    #[serde(skip)]
    pub lost: Lost,
}

/// What happened to an object up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watched {
    /// No record had mentioned it.
    #[default]
    Unknown,
    Alive,
    Dead {
        tick: u64,
    },
}

/// A class of the objects of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassNumber(pub u32);

/// A live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub id: ObjectId,
    /// Bytes as the VM counts them.
    pub size: u64,
    pub class: ClassNumber,
    /// Length of an array; 0 for other objects.
    pub length: u32,
    pub site: SiteId,
    /// The last thread that mentioned it.
    pub thread: ThreadId,
    pub kind: AllocKind,
    /// The clock before its allocation.
    pub born: u64,
}

#[derive(Clone, Debug)]
pub struct Class {
    pub descriptor: String,
    /// Whether it is an array class, whose slots are elements.
    pub is_array: bool,
}

/// The slot through which an object is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Via {
    /// An instance field.
    Field(FieldId),
    /// A static field of the class whose mirror the object is.
    Static(FieldId),
    /// An array element.
    Element(u32),
}

/// A slot that holds an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    pub via: Via,
    pub target: Node,
    /// It does not keep the object alive.
    pub is_weak: bool,
}

/// Why an object is alive though no object needs to hold it. The most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootKind {
    Static(FieldId),
    /// The receiver of a running method.
    Receiver {
        /// The thread that the stack belongs to.
        thread: ThreadId,
        /// Place in the stack, 0 the outermost.
        depth: u32,
        method: MethodId,
    },
    /// It is an exception in flight.
    Exception {
        /// The thread that the stack belongs to.
        thread: ThreadId,
        /// Index in the stack.
        depth: u32,
        /// The innermost method.
        method: MethodId,
    },
    /// The `Thread` of a running thread.
    Thread(ThreadId),
    /// A class loader; the VM holds it with its classes.
    Loader,
    /// A constant of a class.
    Constant,
    /// The VM, since before tracing began.
    Vm,
    /// The mirror of a class.
    Class,
    /// Nothing that is recorded: a later record mentions it, so a local variable, an operand or a native handle held it, or an object that one of
    /// these held. The thread is the last one that mentioned it before.
    Local(ThreadId),
    /// Nothing that tables tell: what a stack, a local variable or the VM holds is not in them. The thread is the one that made it.
    Unrecorded(ThreadId),
}

impl RootKind {
    /// Whether it is a frame of a running method that holds the object, for as long as it runs.
    pub fn is_on_stack(self) -> bool {
        matches!(self, Self::Receiver { .. } | Self::Exception { .. } | Self::Local(_) | Self::Unrecorded(_))
    }
}

/// A way into the heap from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    pub kind: RootKind,
    pub node: Node,
}

/// The heap at one moment: objects, references, and what held them from outside.
#[derive(Debug)]
pub struct Snapshot<'a> {
    pub(super) naming: Naming<'a>,
    pub(super) extra_fields: Vec<ExtraField>,
    pub(super) objects: Vec<Object>,
    pub(super) classes: Vec<Class>,
    /// The references that keep objects alive. Mirrors have the static fields of their classes; weak references are not
    /// included.
    pub(super) graph: Graph,
    /// Slots that do not keep what they hold, in order of the objects.
    pub(super) weak: Vec<(Node, FieldId, Node)>,
    /// Roots in order.
    pub(super) roots: Vec<Root>,
    /// Static fields that hold something, with the mirror of the class if that is known.
    pub(super) statics: Vec<(FieldId, Option<Node>, Node)>,
    pub(super) static_fields: FxHashSet<u32>,
    /// Mirrors by node, with what class of the trace each is of.
    pub(super) mirrors: Vec<(Node, String)>,
    pub(super) stacks: Vec<(ThreadId, Stack)>,
    /// Running threads in the trace, with their `Thread` objects if known.
    pub(super) threads: Vec<(ThreadId, Option<Node>)>,
    pub(super) thread_names: Vec<(ThreadId, String)>,
    pub(super) taken: Taken,
}

impl<'a> Snapshot<'a> {
    /// When it was, and how much had happened by then.
    pub fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Names the moment as the user did.
    pub fn called(&mut self, moment: &Moment) {
        self.taken.moment = moment.to_string();
    }

    /// Names of the ids.
    pub fn naming(&self) -> Naming<'a> {
        self.naming
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub fn nodes(&self) -> impl Iterator<Item = (Node, &Object)> {
        (0..).map(Node).zip(&self.objects)
    }

    pub fn object(&self, node: Node) -> &Object {
        &self.objects[node.0 as usize]
    }

    /// The object with that id, if it was alive. Looks through all of them.
    pub fn find(&self, id: ObjectId) -> Option<Node> {
        self.nodes().find(|(_, object)| object.id == id).map(|(node, _)| node)
    }

    pub fn classes(&self) -> impl Iterator<Item = (ClassNumber, &Class)> {
        (0..).map(ClassNumber).zip(&self.classes)
    }

    pub fn class(&self, number: ClassNumber) -> &Class {
        &self.classes[number.0 as usize]
    }

    /// The class of an object as Java source writes it; of a mirror `class` and the class that it is of.
    pub fn class_text(&self, node: Node) -> String {
        match self.mirrors.binary_search_by_key(&node, |(mirror, _)| *mirror) {
            Ok(at) => format!("class {}", for_people(&self.mirrors[at].1)),
            Err(_) => for_people(&self.class(self.object(node).class).descriptor),
        }
    }

    /// Descriptor of the class that a mirror is of.
    pub fn mirrored(&self, node: Node) -> Option<&str> {
        let at = self.mirrors.binary_search_by_key(&node, |(mirror, _)| *mirror).ok()?;
        Some(&self.mirrors[at].1)
    }

    /// All references that keep objects alive, as a graph whose root leads to the [`roots`](Self::roots).
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The slots of an object that hold something. Those of a mirror are also the static fields of its class.
    pub fn references(&self, node: Node) -> impl Iterator<Item = Reference> + '_ {
        let first = self.weak.partition_point(|&(from, ..)| from < node);
        let weak = self.weak[first..].iter().take_while(move |&&(from, ..)| from == node);
        let weak = weak.map(|&(_, field, target)| Reference { via: Via::Field(field), target, is_weak: true });
        let kept = self.graph.slots(node.0);
        kept.map(move |(slot, target)| Reference { via: self.via(node, slot), target: Node(target), is_weak: false })
            .chain(weak)
    }

    /// Describes a slot of an object.
    pub fn via(&self, node: Node, slot: u32) -> Via {
        if self.class(self.object(node).class).is_array {
            Via::Element(slot)
        } else if self.static_fields.contains(&slot) && self.mirrored(node).is_some() {
            Via::Static(FieldId(slot))
        } else {
            Via::Field(FieldId(slot))
        }
    }

    /// All ways into the heap from outside, the most telling first. An object may have several.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The static fields that hold something, each with the mirror of its class, if that is known, and with what it holds.
    pub fn statics(&self) -> &[(FieldId, Option<Node>, Node)] {
        &self.statics
    }

    /// The stacks that have something on them, in order of the threads.
    pub fn stacks(&self) -> &[(ThreadId, Stack)] {
        &self.stacks
    }

    /// The threads that were running, each with its `Thread` object if that is known.
    pub fn threads(&self) -> &[(ThreadId, Option<Node>)] {
        &self.threads
    }

    /// A thread for people: `thread main`, or its number if it has no name.
    pub fn thread_text(&self, thread: ThreadId) -> String {
        let name = self.thread_names.iter().find(|(known, _)| *known == thread).map(|(_, name)| name.as_str());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => format!("thread {name}"),
            None => format!("thread {}", thread.0),
        }
    }

    /// Name of a field, with its class.
    pub fn field_text(&self, field: FieldId) -> String {
        match self.extra_field(field) {
            Some(extra) => format!("{}.{}", extra.class.replace('/', "."), extra.name),
            None => self.naming.field(field),
        }
    }

    /// A field that no names table has.
    pub fn extra_field(&self, field: FieldId) -> Option<&ExtraField> {
        self.extra_fields.get(field.0.checked_sub(et_names::ID_LIMIT)? as usize)
    }

    /// How many slots hold something: weak ones and static fields too.
    pub fn reference_count(&self) -> u64 {
        let of_objects = self.graph.edges() - self.graph.targets(self.graph.root()).len();
        let without_mirror = self.statics.iter().filter(|(_, mirror, _)| mirror.is_none()).count();
        (of_objects + without_mirror + self.weak.len()) as u64
    }

    /// Total size of all objects in bytes.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.size).sum()
    }
}
