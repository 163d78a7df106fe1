//! One class in, one class out: decides the hooks of a class, hands out its ids, writes it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use et_names::{ClassFlags, ClassNames, FieldNames, FieldRefNames, MethodNames, ShortfallNames, SiteNames};
use rustc_hash::FxHasher;
use thiserror::Error;

use crate::classfile::{
    Attribute, ClassFile, Malformed, Member, PoolBuilder, PoolFull, Reader, access, to_string, write_attribute,
};
use crate::code::opcode::{self, *};
use crate::code::{
    CodeAttribute, CodeEditor, EditError, Flow, LineTable, StackMap, Value, VerificationType, parameter_slots,
};
use crate::hooks::{self, ArrayAllocation, Constructor, Emitter};

/// Which events are hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet(u8);

impl EventSet {
    /// Objects and arrays come to be, with their sites.
    pub const ALLOC: EventSet = EventSet(1);
    /// Reference slots change.
    pub const UPDATE: EventSet = EventSet(2);
    /// Methods are entered and left.
    pub const METHOD: EventSet = EventSet(4);
    /// Exceptions are thrown and caught.
    pub const EXCEPTION: EventSet = EventSet(8);
    /// All of them.
    pub const ALL: EventSet = EventSet(15);

    /// Whether all events of `other` are in this set.
    pub fn has(self, other: EventSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as bits, for the class attribute and for hashes.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The set that [`bits`](Self::bits) made these of.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The events that are in both sets.
    pub fn and(self, other: EventSet) -> Self {
        Self(self.0 & other.0)
    }

    /// The events of both sets.
    pub fn or(self, other: EventSet) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::str::FromStr for EventSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = 0;
        for word in text.split(',') {
            set |= match word.trim() {
                "all" => Self::ALL.0,
                "alloc" => Self::ALLOC.0,
                "update" => Self::UPDATE.0,
                "method" => Self::METHOD.0,
                "exception" => Self::EXCEPTION.0,
                other => {
                    return Err(format!("unknown event {other:?}: use alloc, update, method, exception or all"));
                }
            };
        }
        Ok(Self(set))
    }
}

/// What holds for every class of an artifact.
#[derive(Clone, Debug)]
pub struct Options {
    /// Events to hook.
    pub events: EventSet,
    /// The classes are a JDK's own: the special cases of `java.base` apply.
    pub jdk: bool,
    /// Content hash of the artifact, for the class attribute.
    pub artifact_hash: u64,
    /// First id of the artifact's block, for the class attribute.
    pub base: u32,
}

/// How many ids a class needs (and one class id).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IdCounts {
    pub methods: u32,
    pub fields: u32,
    pub sites: u32,
    pub field_refs: u32,
}

/// The first id of each kind that a class may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FirstIds {
    pub class: u32,
    pub method: u32,
    pub field: u32,
    pub site: u32,
    pub field_ref: u32,
}

/// Hooks inserted, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HookCounts {
    pub entries: u64,
    pub exits: u64,
    pub exit_throws: u64,
    pub throws: u64,
    pub handlers: u64,
    pub sites: u64,
    pub objects: u64,
    pub arrays: u64,
    pub field_updates: u64,
    pub static_updates: u64,
    pub array_updates: u64,
}

/// Why a class cannot be rewritten. Reads as the end of a sentence: "app.jar: a/B.class: …".
#[derive(Debug, Error)]
pub enum ClassError {
    /// Not a class file, cut off, of a version too new, or not as JVMS §4 wants it.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// As above, inside a method.
    #[error("method {method}: {error}")]
    InMethod {
        /// Name and descriptor.
        method: String,
        /// Where and what.
        error: Malformed,
    },
    /// It carries our attribute.
    #[error("already instrumented (artifact {0:016x}): instrument the original instead")]
    AlreadyInstrumented(u64),
}

/// Name of the class attribute that says by what a class was rewritten: version u8, artifact hash u64, base u32,
/// events u8.
pub const ATTRIBUTE: &str = "org.elephanttracks.Instrumented";
const ATTRIBUTE_VERSION: u8 = 1;

/// A class read and measured, before it is given ids.
#[derive(Debug)]
pub struct Plan<'a> {
    bytes: &'a [u8],
    class: ClassFile<'a>,
    name: String,
    events: Wanted,
    counts: IdCounts,
    /// Constant pool indexes of the fields whose updates are reported, in order of first use.
    field_refs: Vec<u16>,
    /// Their places in `field_refs`.
    field_places: HashMap<u16, u32, BuildHasherDefault<FxHasher>>,
}

/// A rewritten class.
#[derive(Debug)]
pub struct Rewritten {
    /// The class file.
    pub bytes: Vec<u8>,
    /// Its part of the names table.
    pub names: ClassNames,
    /// What was inserted.
    pub hooks: HookCounts,
    /// Methods that have code.
    pub methods_with_code: u32,
}

impl Rewritten {
    /// Whether the names use as many ids as the plan had asked for.
    pub fn fits(&self, asked: IdCounts) -> bool {
        let names = &self.names;
        let found = [names.methods.len(), names.fields.len(), names.sites.len(), names.field_refs.len()];
        let asked = [asked.methods, asked.fields, asked.sites, asked.field_refs];
        found.into_iter().zip(asked).all(|(found, asked)| found == asked as usize)
    }
}

/// The hooks a class or a method is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    sites: bool,
    arrays: bool,
    fields: bool,
    elements: bool,
    /// Array updates in the short form.
    short_elements: bool,
    methods: bool,
    exceptions: bool,
}

impl Wanted {
    const NOTHING: Wanted = Wanted {
        sites: false,
        arrays: false,
        fields: false,
        elements: false,
        short_elements: false,
        methods: false,
        exceptions: false,
    };

    fn of(events: EventSet) -> Self {
        let (alloc, update) = (events.has(EventSet::ALLOC), events.has(EventSet::UPDATE));
        Self {
            sites: alloc,
            arrays: alloc,
            fields: update,
            elements: update,
            short_elements: false,
            methods: events.has(EventSet::METHOD),
            exceptions: events.has(EventSet::EXCEPTION),
        }
    }

    /// What a method that outgrows its bounds goes without, step by step: first the hooks that fill the huge
    /// table initialisers for which this happens, last what the stacks of the trace hang on.
    fn sacrifices(self) -> impl Iterator<Item = Self> {
        let short_elements = Self { short_elements: self.elements, ..self };
        let no_elements = Self { elements: false, ..self };
        let no_exceptions = Self { exceptions: false, ..no_elements };
        let no_fields = Self { fields: false, ..no_exceptions };
        let no_arrays = Self { arrays: false, ..no_fields };
        let no_sites = Self { sites: false, ..no_arrays };
        let steps = [self, short_elements, no_elements, no_exceptions, no_fields, no_arrays, no_sites, Self::NOTHING];
        let mut before = None;
        // What was not asked for cannot be given up.
        steps.into_iter().filter(move |&step| before.replace(step) != Some(step))
    }

    /// Names the hooks that are wanted and not in `given`; empty if there are none.
    fn missing_from(self, given: Self) -> String {
        if given == Self::NOTHING {
            return "all hooks".into();
        }
        let updates = match (self.fields && !given.fields, self.elements && !given.elements) {
            (true, true) => "updates",
            (true, false) => "field updates",
            (false, true) => "array updates",
            (false, false) => "",
        };
        let lists = [
            (self.sites && !given.sites, "allocation sites"),
            (self.arrays && !given.arrays, "array allocations"),
            (!updates.is_empty(), updates),
            (self.exceptions && !given.exceptions, "throws and handlers"),
        ];
        let missing: Vec<&str> =
            lists.into_iter().filter(|&(is_missing, _)| is_missing).map(|(_, what)| what).collect();
        missing.join(", ")
    }
}

impl<'a> Plan<'a> {
    /// Reads a class file. With `hooked` false (an excluded class) nothing is inserted but what others rely
    /// on; its names are listed all the same, field resolution needs them.
    pub fn new(bytes: &'a [u8], hooked: bool, options: &Options) -> Result<Self, ClassError> {
        let class = ClassFile::read(bytes)?;
        if let Some(attribute) = class.attribute(ATTRIBUTE) {
            let hash = attribute.info.get(1..9).and_then(|hash| hash.try_into().ok()).map_or(0, u64::from_be_bytes);
            return Err(ClassError::AlreadyInstrumented(hash));
        }
        let name = to_string(class.name);
        let is_proxy = options.jdk && name.starts_with(hooks::HEAP_PROXY);
        let mut events = match hooked && !is_proxy {
            true => Wanted::of(options.events),
            // All other classes' objects are reported by its constructor.
            false if is_object(&name, options) => {
                Wanted { sites: options.events.has(EventSet::ALLOC), ..Wanted::NOTHING }
            }
            false => Wanted::NOTHING,
        };
        if options.jdk && matches!(name.as_str(), "jdk/internal/misc/Unsafe" | "sun/misc/Unsafe") {
            // HeapProxy calls its methods: an event about them would be an event about the event.
            (events.methods, events.exceptions) = (false, false);
        }
        let mut counts =
            IdCounts { methods: class.methods.len() as u32, fields: class.fields.len() as u32, ..IdCounts::default() };
        let mut field_refs = Vec::new();
        let mut field_places = HashMap::default();
        if events != Wanted::NOTHING {
            for method in &class.methods {
                let Some(attribute) = method.attribute("Code") else { continue };
                let in_method = |error: Malformed| in_method(method, error.or_at(attribute.offset));
                let code = code_bytes(attribute).map_err(in_method)?;
                if events.sites {
                    counts.sites += hooks::count_sites(code).map_err(in_method)?;
                }
                if events.fields {
                    for instruction in crate::code::Instructions::new(code) {
                        let instruction = instruction.map_err(in_method)?;
                        if let Some(index) = hooks::field_ref_of(&instruction, &class.pool).map_err(in_method)? {
                            field_places.entry(index).or_insert_with(|| {
                                field_refs.push(index);
                                field_refs.len() as u32 - 1
                            });
                        }
                    }
                }
            }
        }
        counts.field_refs = field_refs.len() as u32;
        Ok(Self { bytes, class, name, events, counts, field_refs, field_places })
    }

    /// The class's name in internal form.
    pub fn class_name(&self) -> &str {
        &self.name
    }

    /// The ids it needs.
    pub fn counts(&self) -> IdCounts {
        self.counts
    }

    /// Writes the class with its hooks.
    pub fn rewrite(&self, ids: FirstIds, options: &Options) -> Result<Rewritten, ClassError> {
        let methods_with_code =
            self.class.methods.iter().filter(|method| method.attribute("Code").is_some()).count() as u32;
        let mut names = self.names();
        let adds_fields = options.jdk && self.name == "java/lang/Thread";
        if self.events == Wanted::NOTHING {
            names.flags.0 |= ClassFlags::NOT_HOOKED;
        }
        let mut work = Work { plan: self, ids, options, names, hooks: HookCounts::default(), next_site: 0 };
        match work.write(adds_fields) {
            Ok(bytes) => Ok(Rewritten { bytes, names: work.names, hooks: work.hooks, methods_with_code }),
            Err(WriteError::Class(error)) => Err(error),
            Err(WriteError::NoRoom { why }) => {
                let mut names = self.names();
                names.flags.0 |= ClassFlags::NOT_HOOKED;
                names.shortfalls = (0..names.methods.len() as u32)
                    .map(|method| ShortfallNames { method, hooks: "all hooks".into(), why: why.clone() })
                    .collect();
                // The ids were given out already: sites and field references are listed though no event names them.
                names.sites = work.names.sites;
                names.sites.resize(
                    self.counts.sites as usize,
                    SiteNames { method: 0, descriptor: "Ljava/lang/Object;".into(), dimensions: 0, line: 0 },
                );
                Ok(Rewritten { bytes: self.bytes.to_vec(), names, hooks: HookCounts::default(), methods_with_code })
            }
        }
    }

    fn names(&self) -> ClassNames {
        let class = &self.class;
        let source_file = class
            .attribute("SourceFile")
            .and_then(|attribute| attribute.reader().u16().and_then(|index| class.pool.utf8(index)).ok())
            .map(to_string)
            .unwrap_or_default();
        let is_interface = class.access & access::INTERFACE != 0;
        ClassNames {
            name: self.name.clone(),
            super_name: to_string(class.super_name),
            interfaces: class.interfaces.iter().map(|name| to_string(name)).collect(),
            flags: ClassFlags(if is_interface { ClassFlags::INTERFACE } else { 0 }),
            source_file,
            methods: class
                .methods
                .iter()
                .map(|method| MethodNames {
                    name: to_string(method.name),
                    descriptor: to_string(method.descriptor),
                    access: method.access,
                    line: 0,
                })
                .collect(),
            fields: class
                .fields
                .iter()
                .map(|field| FieldNames {
                    name: to_string(field.name),
                    descriptor: to_string(field.descriptor),
                    access: field.access,
                })
                .collect(),
            sites: Vec::with_capacity(self.counts.sites as usize),
            field_refs: self
                .field_refs
                .iter()
                .filter_map(|&index| class.pool.member_ref(index).ok())
                .map(|member| FieldRefNames {
                    class: to_string(member.class),
                    name: to_string(member.name),
                    descriptor: to_string(member.descriptor),
                    is_static: false,
                })
                .collect(),
            shortfalls: Vec::new(),
        }
    }
}

/// The class whose constructor every scalar allocation runs.
fn is_object(name: &str, options: &Options) -> bool {
    options.jdk && name == "java/lang/Object"
}

fn in_method(method: &Member<'_>, error: Malformed) -> ClassError {
    ClassError::InMethod { method: to_string(&[method.name, method.descriptor].concat()), error }
}

fn code_bytes<'a>(attribute: &Attribute<'a>) -> Result<&'a [u8], Malformed> {
    let mut reader: Reader<'a> = attribute.reader();
    reader.take(4)?;
    let length = reader.u32()? as usize;
    reader.take(length)
}

enum WriteError {
    Class(ClassError),
    /// The class file format has no room for what is to be added.
    NoRoom {
        why: String,
    },
}

impl From<ClassError> for WriteError {
    fn from(error: ClassError) -> Self {
        Self::Class(error)
    }
}

impl From<PoolFull> for WriteError {
    fn from(error: PoolFull) -> Self {
        Self::NoRoom { why: error.to_string() }
    }
}

/// One class being written.
struct Work<'p, 'a> {
    plan: &'p Plan<'a>,
    ids: FirstIds,
    options: &'p Options,
    names: ClassNames,
    hooks: HookCounts,
    next_site: u32,
}

/// A method being written, with what its attempts share.
struct Body<'b, 'a> {
    member: &'b Member<'a>,
    index: u32,
    id: u32,
    code: &'b CodeAttribute<'a>,
    frames: Option<StackMap>,
    constructor: Option<Constructor>,
    /// (pc of the allocating instruction, site id)
    sites: Vec<(u32, u32)>,
    /// (instruction index of the `invokespecial <init>`, pc of its `new`)
    initialised: Vec<(usize, u32)>,
}

impl<'p, 'a> Work<'p, 'a> {
    fn write(&mut self, adds_fields: bool) -> Result<Vec<u8>, WriteError> {
        let class = &self.plan.class;
        let mut pool = PoolBuilder::new(&class.pool);
        let mut emit = Emitter::new(&mut pool);
        let mut methods = Vec::with_capacity(self.plan.bytes.len() * 5 / 4);
        for (index, method) in class.methods.iter().enumerate() {
            let Some(attribute) = method.attribute("Code").filter(|_| self.plan.events != Wanted::NOTHING) else {
                methods.extend_from_slice(method.bytes);
                continue;
            };
            let code = CodeAttribute::read(attribute, &class.pool).map_err(|error| in_method(method, error))?;
            match self.method(index as u32, method, &code, &mut emit) {
                Ok(Some(info)) => {
                    // access, name, descriptor as they were, then the attributes.
                    methods.extend_from_slice(&method.bytes[..8]);
                    for other in &method.attributes {
                        if other.offset == attribute.offset {
                            write_attribute(&mut methods, other.name_index, &info);
                        } else {
                            other.write(&mut methods);
                        }
                    }
                }
                Ok(None) => methods.extend_from_slice(method.bytes),
                Err(EditError::Malformed(error)) => {
                    return Err(in_method(method, error.or_at(attribute.offset)).into());
                }
                Err(EditError::PoolFull(error)) => return Err(error.into()),
                Err(
                    EditError::TooLarge(_)
                    | EditError::TooManySlots
                    | EditError::TooManyRows(_)
                    | EditError::NoPlaceForJump,
                ) => {
                    methods.extend_from_slice(method.bytes);
                }
            }
        }
        emit.finish()?;

        let mut fields = (class.fields.len() as u16).to_be_bytes().to_vec();
        for field in &class.fields {
            fields.extend_from_slice(field.bytes);
        }
        if adds_fields {
            let added = hooks::write_thread_fields(&mut pool, self.options.events, &mut fields)?;
            let count = u16::try_from(class.fields.len() + added)
                .map_err(|_| WriteError::NoRoom { why: "the class would have more than 65535 fields".into() })?;
            fields[..2].copy_from_slice(&count.to_be_bytes());
        }

        // A JDK's image is not checked against them, but every other module path is: `Hash of m differs`.
        let keeps = |attribute: &&Attribute<'_>| self.options.jdk || attribute.name != b"ModuleHashes";
        let kept: Vec<&Attribute<'_>> = class.attributes.iter().filter(keeps).collect();
        let count = u16::try_from(kept.len() + 1)
            .map_err(|_| WriteError::NoRoom { why: "the class would have more than 65535 attributes".into() })?;
        let mut attributes = count.to_be_bytes().to_vec();
        for attribute in kept {
            attribute.write(&mut attributes);
        }
        let mut mark = vec![ATTRIBUTE_VERSION];
        mark.extend_from_slice(&self.options.artifact_hash.to_be_bytes());
        mark.extend_from_slice(&self.options.base.to_be_bytes());
        // Excluded classes are marked as well: the runtime must not take them for classes that nobody has seen.
        mark.push(if self.plan.events == Wanted::NOTHING { 0 } else { self.options.events.bits() });
        write_attribute(&mut attributes, pool.utf8(ATTRIBUTE.as_bytes())?, &mark);

        let mut out = Vec::with_capacity(self.plan.bytes.len() + methods.len() / 4 + 1024);
        // Magic and version.
        out.extend_from_slice(&self.plan.bytes[..8]);
        pool.write(&class.pool, &mut out);
        out.extend_from_slice(class.header_bytes);
        out.extend_from_slice(&fields);
        out.extend_from_slice(&(class.methods.len() as u16).to_be_bytes());
        out.extend_from_slice(&methods);
        out.extend_from_slice(&attributes);
        Ok(out)
    }

    /// The new `Code` attribute of a method, `None` if nothing is inserted.
    fn method(
        &mut self,
        index: u32,
        member: &Member<'a>,
        code: &CodeAttribute<'a>,
        emit: &mut Emitter<'_>,
    ) -> Result<Option<Vec<u8>>, EditError> {
        let lines = LineTable::of(&code.attributes);
        self.names.methods[index as usize].line = lines.line(0);
        let sites = self.sites(index, code, &lines)?;
        for instruction in code.instructions.iter().filter(|instruction| instruction.opcode == PUTSTATIC) {
            if let Some(&field) = self.plan.field_places.get(&instruction.pool_index()) {
                self.names.field_refs[field as usize].is_static = true;
            }
        }

        if is_object(&self.plan.name, self.options) && member.name == b"<init>" {
            if !self.plan.events.sites {
                return Ok(None);
            }
            let mut editor = CodeEditor::new(code);
            hooks::object_init(&mut editor, emit);
            self.hooks.objects += 1;
            return editor.finish(None, emit.pool()).map(Some);
        }
        // HotSpot makes every instance of a class finalizable whose finalize() is more than a return.
        let is_empty_finalizer = member.name == b"finalize"
            && member.descriptor == b"()V"
            && matches!(code.instructions.as_slice(), [only] if only.opcode == RETURN);
        if is_empty_finalizer {
            return Ok(None);
        }

        let mut body = Body {
            member,
            index,
            id: self.ids.method + index,
            code,
            frames: None,
            constructor: None,
            sites,
            initialised: Vec::new(),
        };
        self.analyse(&mut body, emit)?;
        let mut last = None;
        for wanted in self.plan.events.sacrifices() {
            let before = self.hooks;
            match self.attempt(&body, wanted, emit) {
                Err(
                    error @ (EditError::TooLarge(_)
                    | EditError::TooManySlots
                    | EditError::TooManyRows(_)
                    | EditError::NoPlaceForJump),
                ) => {
                    self.hooks = before;
                    // The first failure says why, the later ones only that it was not enough.
                    last.get_or_insert(error);
                }
                Err(error) => return Err(error),
                Ok(info) => {
                    let without = self.plan.events.missing_from(wanted);
                    if let Some(error) = last.filter(|_| !without.is_empty()) {
                        self.shortfall(index, &without, error.to_string());
                    }
                    return Ok(info);
                }
            }
        }
        // Not reached: the last attempt inserts nothing and cannot outgrow anything.
        Ok(None)
    }

    fn shortfall(&mut self, method: u32, hooks: &str, why: String) {
        self.names.shortfalls.push(ShortfallNames { method, hooks: hooks.into(), why });
    }

    /// Hands out the sites of a method.
    fn sites(
        &mut self,
        method: u32,
        code: &CodeAttribute<'a>,
        lines: &LineTable,
    ) -> Result<Vec<(u32, u32)>, Malformed> {
        let mut sites = Vec::new();
        if !self.plan.events.sites {
            return Ok(sites);
        }
        for instruction in &code.instructions {
            let at = code.offset + instruction.pc as usize;
            let made = ArrayAllocation::of(instruction, &self.plan.class.pool).map_err(|error| error.or_at(at))?;
            if let Some(made) = made {
                sites.push((instruction.pc, self.ids.site + self.next_site));
                self.next_site += 1;
                self.names.sites.push(SiteNames {
                    method,
                    descriptor: to_string(&made.descriptor),
                    dimensions: made.dimensions,
                    line: lines.line(instruction.pc),
                });
            }
        }
        Ok(sites)
    }

    /// Frames, data flow and what hangs on it.
    fn analyse(&mut self, body: &mut Body<'_, 'a>, emit: &mut Emitter<'_>) -> Result<(), EditError> {
        let class = &self.plan.class;
        let (code, member) = (body.code, body.member);
        let is_constructor = member.name == b"<init>" && class.super_name != b"";
        let receiver = match (member.is_static(), is_constructor) {
            (true, _) => None,
            (false, true) => Some(Value::UninitializedThis),
            (false, false) => Some(Value::Reference),
        };
        let receiver_type = receiver.map(|value| match value {
            Value::UninitializedThis => VerificationType::UninitializedThis,
            _ => VerificationType::Object(class.this_class),
        });

        // JVMS §4.10: version 50 and later are checked with frames; one of version 50 without a StackMapTable that
        // would need one is checked the old way, and adding frames would not help it.
        let table = code.attribute("StackMapTable");
        let needs_table = || {
            !code.exceptions.is_empty()
                || code.instructions.iter().any(|instruction| instruction.targets().next().is_some())
        };
        let has_frames = class.major >= 51 || (class.major == 50 && (table.is_some() || !needs_table()));
        let handlers_shared = self.plan.events.exceptions && hooks::handlers(code).values().any(|&shared| shared);
        // New frames are copied from old ones where a jump must be led over an island or a handler shared. No
        // instruction grows more than an `aastore` with a scratch variable above 255: from 1 byte to 17.
        const MAY_NEED_ISLANDS: usize = i16::MAX as usize / 17;
        let exact = is_constructor || handlers_shared || code.code.len() > MAY_NEED_ISLANDS;
        if has_frames {
            let initial = StackMap::initial_locals(receiver_type, member.descriptor, |name| {
                if exact && table.is_some() { emit.pool().class(name) } else { Ok(0) }
            })?;
            body.frames = Some(match table {
                Some(table) => StackMap::read(table, initial, code)?,
                None => StackMap { initial_locals: initial, frames: Vec::new() },
            });
        }

        let makes_objects =
            self.plan.events.sites && code.instructions.iter().any(|instruction| instruction.opcode == NEW);
        if !is_constructor && !makes_objects {
            return Ok(());
        }
        let at_code = |error: Malformed| Malformed { offset: error.offset.saturating_add(code.offset), ..error };
        let flow = Flow::new(code, &class.pool, receiver, member.descriptor, class.name, body.frames.as_ref())
            .map_err(at_code)?;
        if is_constructor {
            body.constructor = Some(Constructor::new(code, &flow, &class.pool).map_err(at_code)?);
        }
        if makes_objects {
            let mut unpaired = 0;
            let initialised = &mut body.initialised;
            flow.visit(|index, state| {
                let instruction = &code.instructions[index];
                let Some(state) = state.filter(|_| instruction.opcode == INVOKESPECIAL) else { return };
                let Ok(called) = class.pool.member_ref(instruction.pool_index()) else { return };
                if called.name == b"<init>" {
                    match state.from_top(parameter_slots(called.descriptor)) {
                        Value::Uninitialized(pc) => initialised.push((index, pc)),
                        Value::UninitializedThis => {}
                        _ => unpaired += 1,
                    }
                }
            })
            .map_err(at_code)?;
            if unpaired > 0 {
                let why = format!("{unpaired} constructor calls cannot be paired with their new");
                self.shortfall(body.index, "allocation sites", why);
            }
        }
        Ok(())
    }

    /// Writes a method with the hooks wanted.
    fn attempt(
        &mut self,
        body: &Body<'_, 'a>,
        wanted: Wanted,
        emit: &mut Emitter<'_>,
    ) -> Result<Option<Vec<u8>>, EditError> {
        let class = &self.plan.class;
        let code = body.code;
        let mut editor = CodeEditor::new(code);
        let has_receiver = !body.member.is_static();
        let mut frames: Option<Cow<'_, StackMap>> = body.frames.as_ref().map(Cow::Borrowed);

        if let Some(constructor) = &body.constructor {
            let keeps_site = constructor.is_complex && (wanted.methods || wanted.sites);
            constructor.entry(&mut editor, emit, body.id, wanted.methods, keeps_site);
            let ids = &self.ids;
            let field_places = &self.plan.field_places;
            constructor.super_calls(code, &mut editor, emit, body.id, wanted.methods, keeps_site, |field| {
                field_places.get(&field).filter(|_| wanted.fields).map(|at| ids.field_ref + at)
            });
            if keeps_site {
                let saved = editor.saved_local();
                if let Some(frames) = &mut frames {
                    constructor.add_saved_local(frames.to_mut(), saved)?;
                }
            }
        } else if wanted.methods {
            hooks::entry(&mut editor, emit, body.id, has_receiver);
        }
        self.hooks.entries += u64::from(wanted.methods);

        let handlers = if wanted.exceptions { hooks::handlers(code) } else { Default::default() };
        let in_continuation = self.options.jdk && self.plan.name == hooks::CONTINUATION && body.member.name == b"run";
        let mut initialised = body.initialised.iter().peekable();
        let mut sites = body.sites.iter().peekable();
        for (index, instruction) in code.instructions.iter().enumerate() {
            if let Some(&is_shared) = handlers.get(&instruction.pc) {
                hooks::handle(&mut editor, emit, instruction, body.id, is_shared);
                self.hooks.handlers += 1;
            }
            let own_site = sites.next_if(|(pc, _)| *pc == instruction.pc).map(|&(_, site)| site);
            match instruction.opcode {
                op if opcode::is_return(op) && wanted.methods => {
                    hooks::exit(&mut editor, emit, instruction, body.id);
                    self.hooks.exits += 1;
                }
                ATHROW if wanted.exceptions => {
                    hooks::throw(&mut editor, emit, instruction, body.id);
                    self.hooks.throws += 1;
                }
                AASTORE if wanted.elements => {
                    if wanted.short_elements {
                        hooks::store_element(&mut editor, emit, instruction);
                    } else {
                        hooks::put_element(&mut editor, emit, instruction);
                    }
                    self.hooks.array_updates += 1;
                }
                NEWARRAY | ANEWARRAY | MULTIANEWARRAY if wanted.arrays => {
                    if let Some(site) = own_site {
                        hooks::array_allocation(&mut editor, emit, instruction, site);
                        self.hooks.arrays += 1;
                    }
                }
                INVOKESPECIAL if wanted.sites => {
                    let new = initialised.next_if(|(at, _)| *at == index).map(|&(_, pc)| pc);
                    let site = new.and_then(|new| body.sites.binary_search_by_key(&new, |&(pc, _)| pc).ok());
                    if let Some(at) = site {
                        hooks::site(&mut editor, emit, instruction, body.sites[at].1);
                        self.hooks.sites += 1;
                    }
                }
                PUTFIELD | PUTSTATIC if wanted.fields => self.field_update(body, instruction, &mut editor, emit)?,
                INVOKESTATIC if in_continuation && wanted.methods => {
                    hooks::switch_stack(&mut editor, emit, instruction, &class.pool)?;
                }
                INVOKESTATIC | INVOKEVIRTUAL if self.options.jdk => {
                    hooks::define_class(&mut editor, emit, instruction, &class.pool)?;
                }
                _ => {}
            }
        }
        if wanted.methods {
            self.exceptional_exits(body, &mut editor, emit);
        }
        if editor.is_empty() {
            return Ok(None);
        }
        editor.finish(frames.map(Cow::into_owned), emit.pool()).map(Some)
    }

    fn field_update(
        &mut self,
        body: &Body<'_, 'a>,
        instruction: &crate::code::Instruction<'_>,
        editor: &mut CodeEditor<'_, '_>,
        emit: &mut Emitter<'_>,
    ) -> Result<(), EditError> {
        let field = instruction.pool_index();
        let Some(&at) = self.plan.field_places.get(&field) else { return Ok(()) };
        let id = self.ids.field_ref + at;
        if instruction.opcode == PUTSTATIC {
            let is_own = self.plan.class.pool.member_ref(field)?.class == self.plan.class.name;
            hooks::put_static(editor, emit, instruction, id, is_own);
            self.hooks.static_updates += 1;
            return Ok(());
        }
        // A store to `this` before `super(…)` cannot pass `this`: it is reported behind the super call.
        let is_early =
            body.constructor.as_ref().is_some_and(|constructor| constructor.early_stores.contains(&instruction.pc));
        if !is_early {
            hooks::put_field(editor, emit, instruction, id);
        }
        self.hooks.field_updates += 1;
        Ok(())
    }

    fn exceptional_exits(&mut self, body: &Body<'_, 'a>, editor: &mut CodeEditor<'_, '_>, emit: &mut Emitter<'_>) {
        let this_class = VerificationType::Object(self.plan.class.this_class);
        let can_throw = |ranges: &[(u32, u32)]| hooks::can_throw(body.code, ranges, !body.member.is_static());
        let Some(constructor) = &body.constructor else {
            let all = vec![(0, body.code.code.len() as u32)];
            if can_throw(&all) {
                hooks::exceptional_exit(editor, emit, body.id, all, Vec::new(), false);
                self.hooks.exit_throws += 1;
            }
            return;
        };
        // The old verifier has rules of its own for uninitialised objects in protected code (JVMS §4.10.2.4);
        // there the reader pops the frame by matching.
        if can_throw(&constructor.before_super) && constructor.early_this_in_place && body.frames.is_some() {
            let locals = vec![VerificationType::UninitializedThis];
            let ranges = constructor.before_super.clone();
            hooks::exceptional_exit(editor, emit, body.id, ranges, locals, false);
            self.hooks.exit_throws += 1;
        }
        if can_throw(&constructor.after_super) {
            let has_this = constructor.this_in_place && body.frames.is_some();
            let locals = if has_this { vec![this_class] } else { Vec::new() };
            hooks::exceptional_exit(editor, emit, body.id, constructor.after_super.clone(), locals, has_this);
            self.hooks.exit_throws += 1;
        }
    }
}
