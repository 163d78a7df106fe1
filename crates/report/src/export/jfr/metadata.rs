//! The types of a recording. A chunk describes all of its types, so readers know them by their names, and fields that they do
//! not know are displayed all the same.

use rustc_hash::FxHashMap;

use super::encode::{event, number, numbers, string};

/// Numbers of types; those of the metadata and of the pools are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Type {
    Metadata = 0,
    Pools = 1,
    Boolean = 10,
    Int,
    Long,
    Short,
    String,
    Class,
    Thread,
    ThreadGroup,
    Symbol,
    ClassLoader,
    Package,
    Module,
    Method,
    FrameKind,
    StackFrame,
    StackTrace,
    GcName,
    GcCause,
    GcWhen,
    VirtualSpace,
    OldObject,
    OldObjectArray,
    OldObjectField,
    OldObjectRootSystem,
    OldObjectRootKind,
    OldObjectGcRoot,
    Reference,
    Label,
    Description,
    Category,
    Timestamp,
    Timespan,
    DataAmount,
    MemoryAddress,
    Allocation,
    Survivor,
    Collection,
    Heap,
    ThreadStart,
    ThreadEnd,
    Jvm,
    Note,
}

/// How a field is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Inline,
    InPool,
    Array,
}

/// What a number measures.
#[derive(Clone, Copy)]
enum Unit {
    Nothing,
    /// A point in time in ticks of the recording.
    Moment,
    /// A point in time in milliseconds since 1970.
    Epoch,
    /// A duration in ticks.
    Span,
    Bytes,
    Address,
}

struct Field {
    name: &'static str,
    ty: Type,
    stored: Stored,
    unit: Unit,
    label: &'static str,
}

const fn field(name: &'static str, ty: Type) -> Field {
    Field { name, ty, stored: Stored::Inline, unit: Unit::Nothing, label: "" }
}

const fn pooled(name: &'static str, ty: Type) -> Field {
    Field { stored: Stored::InPool, ..field(name, ty) }
}

impl Field {
    const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    const fn label(self, label: &'static str) -> Self {
        Self { label, ..self }
    }
}

const START: Field = field("startTime", Type::Long).unit(Unit::Moment).label("Start Time");
const DURATION: Field = field("duration", Type::Long).unit(Unit::Span).label("Duration");
const THREAD: Field = pooled("eventThread", Type::Thread).label("Event Thread");
const STACK: Field = pooled("stackTrace", Type::StackTrace).label("Stack Trace");

enum Kind {
    /// A type with fields of its own, or none: numbers and strings.
    Plain,
    /// A type that stands for its only field.
    Simple,
    Annotation,
    /// Label, description and category.
    Event(&'static str, &'static str, &'static [&'static str]),
}

struct Declared {
    ty: Type,
    name: &'static str,
    kind: Kind,
    fields: &'static [Field],
}

const fn plain(ty: Type, name: &'static str, fields: &'static [Field]) -> Declared {
    Declared { ty, name, kind: Kind::Plain, fields }
}

const fn simple(ty: Type, name: &'static str, fields: &'static [Field]) -> Declared {
    Declared { ty, name, kind: Kind::Simple, fields }
}

const fn annotation(ty: Type, name: &'static str, fields: &'static [Field]) -> Declared {
    Declared { ty, name, kind: Kind::Annotation, fields }
}

/// All types; fields are in the order in which [`super`] writes them. Names are those of HotSpot's recordings.
const TYPES: &[Declared] = &[
    plain(Type::Boolean, "boolean", &[]),
    plain(Type::Int, "int", &[]),
    plain(Type::Long, "long", &[]),
    plain(Type::Short, "short", &[]),
    plain(Type::String, "java.lang.String", &[]),
    plain(
        Type::Class,
        "java.lang.Class",
        &[
            pooled("classLoader", Type::ClassLoader),
            pooled("name", Type::Symbol),
            pooled("package", Type::Package),
            field("modifiers", Type::Int),
            field("hidden", Type::Boolean),
        ],
    ),
    plain(
        Type::Thread,
        "java.lang.Thread",
        &[
            field("osName", Type::String),
            field("osThreadId", Type::Long),
            field("javaName", Type::String),
            field("javaThreadId", Type::Long),
            pooled("group", Type::ThreadGroup),
            field("virtual", Type::Boolean),
        ],
    ),
    plain(
        Type::ThreadGroup,
        "jdk.types.ThreadGroup",
        &[pooled("parent", Type::ThreadGroup), field("name", Type::String)],
    ),
    simple(Type::Symbol, "jdk.types.Symbol", &[field("string", Type::String)]),
    plain(Type::ClassLoader, "jdk.types.ClassLoader", &[pooled("type", Type::Class), pooled("name", Type::Symbol)]),
    plain(
        Type::Package,
        "jdk.types.Package",
        &[pooled("name", Type::Symbol), pooled("module", Type::Module), field("exported", Type::Boolean)],
    ),
    plain(
        Type::Module,
        "jdk.types.Module",
        &[
            pooled("name", Type::Symbol),
            pooled("version", Type::Symbol),
            pooled("location", Type::Symbol),
            pooled("classLoader", Type::ClassLoader),
        ],
    ),
    plain(
        Type::Method,
        "jdk.types.Method",
        &[
            pooled("type", Type::Class),
            pooled("name", Type::Symbol),
            pooled("descriptor", Type::Symbol),
            field("modifiers", Type::Int),
            field("hidden", Type::Boolean),
        ],
    ),
    simple(Type::FrameKind, "jdk.types.FrameType", &[field("description", Type::String)]),
    plain(
        Type::StackFrame,
        "jdk.types.StackFrame",
        &[
            pooled("method", Type::Method),
            field("lineNumber", Type::Int),
            field("bytecodeIndex", Type::Int),
            pooled("type", Type::FrameKind),
        ],
    ),
    plain(
        Type::StackTrace,
        "jdk.types.StackTrace",
        &[field("truncated", Type::Boolean), Field { stored: Stored::Array, ..field("frames", Type::StackFrame) }],
    ),
    simple(Type::GcName, "jdk.types.GCName", &[field("name", Type::String)]),
    simple(Type::GcCause, "jdk.types.GCCause", &[field("cause", Type::String)]),
    simple(Type::GcWhen, "jdk.types.GCWhen", &[field("when", Type::String)]),
    plain(
        Type::VirtualSpace,
        "jdk.types.VirtualSpace",
        &[field("committedSize", Type::Long).unit(Unit::Bytes), field("reservedSize", Type::Long).unit(Unit::Bytes)],
    ),
    plain(
        Type::OldObject,
        "jdk.types.OldObject",
        &[
            field("address", Type::Long).unit(Unit::Address).label("Object Id of the Trace"),
            pooled("type", Type::Class).label("Java Class"),
            field("description", Type::String).label("Object Description"),
            pooled("referrer", Type::Reference).label("Referrer Object"),
        ],
    ),
    plain(
        Type::OldObjectArray,
        "jdk.types.OldObjectArray",
        &[field("size", Type::Int).label("Array Size"), field("index", Type::Int).label("Index")],
    ),
    plain(
        Type::OldObjectField,
        "jdk.types.OldObjectField",
        &[field("name", Type::String).label("Field"), field("modifiers", Type::Short).label("Field Modifiers")],
    ),
    simple(Type::OldObjectRootSystem, "jdk.types.OldObjectRootSystem", &[field("system", Type::String)]),
    simple(Type::OldObjectRootKind, "jdk.types.OldObjectRootType", &[field("type", Type::String)]),
    plain(
        Type::OldObjectGcRoot,
        "jdk.types.OldObjectGcRoot",
        &[
            field("description", Type::String).label("Root Description"),
            pooled("system", Type::OldObjectRootSystem).label("System"),
            pooled("type", Type::OldObjectRootKind).label("Type"),
        ],
    ),
    plain(
        Type::Reference,
        "jdk.types.Reference",
        &[
            pooled("array", Type::OldObjectArray).label("Array Information"),
            pooled("field", Type::OldObjectField).label("Field Information"),
            pooled("object", Type::OldObject).label("Object"),
            field("skip", Type::Int).label("Skip Value"),
        ],
    ),
    annotation(Type::Label, "jdk.jfr.Label", &[field("value", Type::String)]),
    annotation(Type::Description, "jdk.jfr.Description", &[field("value", Type::String)]),
    annotation(Type::Category, "jdk.jfr.Category", &[Field { stored: Stored::Array, ..field("value", Type::String) }]),
    annotation(Type::Timestamp, "jdk.jfr.Timestamp", &[field("value", Type::String)]),
    annotation(Type::Timespan, "jdk.jfr.Timespan", &[field("value", Type::String)]),
    annotation(Type::DataAmount, "jdk.jfr.DataAmount", &[field("value", Type::String)]),
    annotation(Type::MemoryAddress, "jdk.jfr.MemoryAddress", &[]),
    Declared {
        ty: Type::Allocation,
        name: "jdk.ObjectAllocationSample",
        kind: Kind::Event(
            "Object Allocation Sample",
            "All objects of a class that a thread allocated with one stack in a span of time",
            &["Java Application"],
        ),
        fields: &[
            START,
            THREAD,
            STACK,
            pooled("objectClass", Type::Class).label("Object Class"),
            field("weight", Type::Long).label("Sample Weight"),
            field("objects", Type::Long).label("Objects Allocated"),
            field("bytes", Type::Long).unit(Unit::Bytes).label("Bytes Allocated"),
            field("aliveObjects", Type::Long).label("Of Them Alive at the End"),
            field("aliveBytes", Type::Long).unit(Unit::Bytes).label("Bytes Alive at the End"),
            field("site", Type::String).label("Allocation Site"),
        ],
    },
    Declared {
        ty: Type::Survivor,
        name: "jdk.OldObjectSample",
        kind: Kind::Event(
            "Old Object Sample",
            "An object that is alive at the end, with what holds it",
            &["Java Virtual Machine", "Profiling"],
        ),
        fields: &[
            START,
            THREAD,
            STACK,
            field("allocationTime", Type::Long).unit(Unit::Moment).label("Allocation Time"),
            field("objectSize", Type::Long).unit(Unit::Bytes).label("Object Size"),
            field("objectAge", Type::Long).unit(Unit::Span).label("Object Age"),
            field("lastKnownHeapUsage", Type::Long).unit(Unit::Bytes).label("Last Known Heap Usage"),
            pooled("object", Type::OldObject).label("Object"),
            field("arrayElements", Type::Int).label("Array Elements"),
            pooled("root", Type::OldObjectGcRoot).label("GC Root"),
            field("retainedSize", Type::Long).unit(Unit::Bytes).label("Retained Size"),
            field("site", Type::String).label("Allocation Site"),
        ],
    },
    Declared {
        ty: Type::Collection,
        name: "jdk.GarbageCollection",
        kind: Kind::Event(
            "Garbage Collection",
            "Garbage collection performed by the JVM",
            &["Java Virtual Machine", "GC", "Collector"],
        ),
        fields: &[
            START,
            DURATION,
            field("gcId", Type::Int).label("GC Identifier"),
            pooled("name", Type::GcName).label("Name"),
            pooled("cause", Type::GcCause).label("Cause"),
            field("sumOfPauses", Type::Long).unit(Unit::Span).label("Sum of Pauses"),
            field("longestPause", Type::Long).unit(Unit::Span).label("Longest Pause"),
        ],
    },
    Declared {
        ty: Type::Heap,
        name: "jdk.GCHeapSummary",
        kind: Kind::Event("Heap Summary", "The heap after a collection", &["Java Virtual Machine", "GC", "Heap"]),
        fields: &[
            START,
            field("gcId", Type::Int).label("GC Identifier"),
            pooled("when", Type::GcWhen).label("When"),
            field("heapSpace", Type::VirtualSpace).label("Heap Space"),
            field("heapUsed", Type::Long).unit(Unit::Bytes).label("Heap Used"),
        ],
    },
    Declared {
        ty: Type::ThreadStart,
        name: "jdk.ThreadStart",
        kind: Kind::Event("Java Thread Start", "", &["Java Application"]),
        fields: &[START, THREAD, STACK, pooled("thread", Type::Thread).label("New Java Thread")],
    },
    Declared {
        ty: Type::ThreadEnd,
        name: "jdk.ThreadEnd",
        kind: Kind::Event("Java Thread End", "", &["Java Application"]),
        fields: &[START, THREAD, pooled("thread", Type::Thread).label("Java Thread")],
    },
    Declared {
        ty: Type::Jvm,
        name: "jdk.JVMInformation",
        kind: Kind::Event("JVM Information", "Description of JVM and the Java application", &["Java Virtual Machine"]),
        fields: &[
            START,
            field("jvmName", Type::String).label("JVM Name"),
            field("jvmVersion", Type::String).label("JVM Version"),
            field("jvmArguments", Type::String).label("JVM Command Line Arguments"),
            field("jvmFlags", Type::String).label("JVM Settings File Arguments"),
            field("javaArguments", Type::String).label("Java Application Arguments"),
            field("jvmStartTime", Type::Long).unit(Unit::Epoch).label("JVM Start Time"),
            field("pid", Type::Long).label("Process Identifier"),
        ],
    },
    Declared {
        ty: Type::Note,
        name: "org.elephanttracks.Note",
        kind: Kind::Event("Note", "What this recording is of, and what it lacks", &["Elephant Tracks"]),
        fields: &[START, field("text", Type::String).label("Text")],
    },
];

/// An element of the description, which is a tree as in XML.
#[derive(Default)]
struct Element {
    name: &'static str,
    attributes: Vec<(String, String)>,
    children: Vec<Element>,
}

impl Element {
    fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    fn with(mut self, attribute: impl Into<String>, value: impl ToString) -> Self {
        self.attributes.push((attribute.into(), value.to_string()));
        self
    }

    fn containing(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children);
        self
    }

    fn encode(&self, strings: &mut Strings, out: &mut Vec<u8>) {
        number(out, strings.of(self.name));
        number(out, self.attributes.len() as u64);
        for (attribute, value) in &self.attributes {
            number(out, strings.of(attribute));
            number(out, strings.of(value));
        }
        number(out, self.children.len() as u64);
        self.children.iter().for_each(|child| child.encode(strings, out));
    }
}

/// An annotation with a value; without text there is none.
fn annotated(ty: Type, value: &str) -> Option<Element> {
    let annotation = || Element::new("annotation").with("class", ty as u8).with("value", value);
    (!value.is_empty()).then(annotation)
}

impl Field {
    fn element(&self) -> Element {
        let mut element = Element::new("field").with("name", self.name).with("class", self.ty as u8);
        match self.stored {
            Stored::Inline => {}
            Stored::InPool => element = element.with("constantPool", true),
            Stored::Array => element = element.with("dimension", 1),
        }
        let unit = match self.unit {
            Unit::Nothing => None,
            Unit::Moment => annotated(Type::Timestamp, "TICKS"),
            Unit::Epoch => annotated(Type::Timestamp, "MILLISECONDS_SINCE_EPOCH"),
            Unit::Span => annotated(Type::Timespan, "TICKS"),
            Unit::Bytes => annotated(Type::DataAmount, "BYTES"),
            Unit::Address => Some(Element::new("annotation").with("class", Type::MemoryAddress as u8)),
        };
        element.containing(annotated(Type::Label, self.label)).containing(unit)
    }
}

impl Declared {
    fn element(&self) -> Element {
        let mut element = Element::new("class").with("id", self.ty as u8).with("name", self.name);
        match self.kind {
            Kind::Plain => {}
            Kind::Simple => element = element.with("simpleType", true),
            Kind::Annotation => element = element.with("superType", "java.lang.annotation.Annotation"),
            Kind::Event(label, description, categories) => {
                let mut category = Element::new("annotation").with("class", Type::Category as u8);
                for (index, name) in categories.iter().enumerate() {
                    category = category.with(format!("value-{index}"), name);
                }
                element = element
                    .with("superType", "jdk.jfr.Event")
                    .containing(annotated(Type::Label, label))
                    .containing(annotated(Type::Description, description))
                    .containing([category]);
            }
        }
        element.containing(self.fields.iter().map(Field::element))
    }
}

#[derive(Default)]
struct Strings {
    all: Vec<String>,
    index: FxHashMap<String, u64>,
}

impl Strings {
    fn of(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.index.get(text) {
            return known;
        }
        let index = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.index.insert(text.to_owned(), index);
        index
    }
}

/// Appends the description of all types.
pub fn write(out: &mut Vec<u8>, start: u64, duration: u64) {
    let types = Element::new("metadata").containing(TYPES.iter().map(Declared::element));
    let region = Element::new("region").with("locale", "en_US").with("gmtOffset", 0);
    let root = Element::new("root").containing([types, region]);
    let (mut strings, mut tree) = (Strings::default(), Vec::new());
    root.encode(&mut strings, &mut tree);
    let mut content = Vec::new();
    // After the times, the number of this description.
    numbers(&mut content, &[Type::Metadata as u64, start, duration, 1, strings.all.len() as u64]);
    strings.all.iter().for_each(|text| string(&mut content, text));
    content.extend(tree);
    event(out, &content);
}
