//! Instruments one class: selects its hooks, assigns its ids, and writes it.

mod class;
mod counts;
mod events;
mod method;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use et_names::{ClassFlags, ClassNames, FieldNames, FieldRefNames, MethodNames, ShortfallNames, SiteNames};
use rustc_hash::FxHasher;
use thiserror::Error;

pub use counts::HookCounts;
pub use et_names::{EventSet, Witness};

use crate::classfile::{Attribute, ClassFile, Malformed, Member, Reader, access, to_string};
use crate::hooks::{self, Calls};
use class::{Work, WriteError};
use events::Wanted;

/// Options that apply to all classes of an artifact.
#[derive(Clone, Debug)]
pub struct Options {
    pub events: EventSet,
    /// Whether the classes belong to a JDK, so that the special cases of `java.base` apply.
    pub jdk: bool,
    /// Content hash of the artifact, for the class attribute.
    pub artifact_hash: u64,
    /// First id of the artifact's block, for the class attribute.
    pub base: u32,
    /// Whether leaf methods get one hook for entry and exit. Without it, for tests, they get both.
    pub leaves: bool,
    /// Whether no class is left without hooks by choice: calls of a line then share one store of the stack's value.
    pub all_hooked: bool,
}

/// Number of ids of each kind that a class needs, in addition to one class id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdCounts {
    pub methods: u32,
    pub fields: u32,
    pub sites: u32,
    pub field_refs: u32,
}

/// The first id of each kind that is assigned to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstIds {
    pub class: u32,
    pub method: u32,
    pub field: u32,
    pub site: u32,
    pub field_ref: u32,
}

/// Why a class cannot be instrumented. The message reads as the end of a sentence: "app.jar: a/B.class: …".
#[derive(Debug, Error)]
pub enum ClassError {
    /// Not a class file, truncated, of an unsupported version, or in violation of JVMS §4.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// The same inside a method.
    #[error("method {method}: {error}")]
    InMethod {
        /// Name and descriptor of the method.
        method: String,
        error: Malformed,
    },
    /// The class has our attribute.
    #[error("already instrumented (artifact {artifact:016x}): instrument the original instead")]
    AlreadyInstrumented {
        /// Hash of the artifact for which it was instrumented.
        artifact: u64,
        /// Name of the class, which may have been renamed since.
        class: String,
    },
}

/// Name of the class attribute that marks an instrumented class. Content: version u8, artifact hash u64, base u32,
/// events u8.
pub const ATTRIBUTE: &str = "org.elephanttracks.Instrumented";

/// A class that has been parsed and measured, but has no ids yet.
#[derive(Debug)]
pub struct Plan<'a> {
    bytes: &'a [u8],
    class: ClassFile<'a>,
    name: String,
    events: Wanted,
    calls: Calls,
    counts: IdCounts,
    /// Fields whose updates are reported, as constant pool indexes in order of first use.
    field_refs: Vec<u16>,
    /// Position of each field in `field_refs`.
    field_places: HashMap<u16, u32, BuildHasherDefault<FxHasher>>,
}

/// An instrumented class.
#[derive(Debug)]
pub struct Rewritten {
    /// The new class file.
    pub bytes: Vec<u8>,
    /// Its entries in the names table.
    pub names: ClassNames,
    /// Number of inserted hooks.
    pub hooks: HookCounts,
    /// Number of methods with code.
    pub methods_with_code: u32,
}

impl Rewritten {
    /// Whether the class has used exactly the number of ids that the plan requested.
    pub fn fits(&self, asked: IdCounts) -> bool {
        let names = &self.names;
        let found = [names.methods.len(), names.fields.len(), names.sites.len(), names.field_refs.len()];
        let asked = [asked.methods, asked.fields, asked.sites, asked.field_refs];
        found.into_iter().zip(asked).all(|(found, asked)| found == asked as usize)
    }
}

impl<'a> Plan<'a> {
    /// Parses a class file. With `hooked` false (an excluded class) only those hooks are inserted that the events of
    /// other classes depend on; its names are still listed because field resolution needs them.
    pub fn new(bytes: &'a [u8], hooked: bool, options: &Options) -> Result<Self, ClassError> {
        let class = ClassFile::read(bytes)?;
        if let Some(attribute) = class.attribute(ATTRIBUTE) {
            let hash = attribute.info.get(1..9).and_then(|hash| hash.try_into().ok()).map_or(0, u64::from_be_bytes);
            return Err(ClassError::AlreadyInstrumented { artifact: hash, class: to_string(class.name) });
        }
        let name = to_string(class.name);
        let is_proxy = options.jdk && name.starts_with(hooks::HEAP_PROXY);
        let mut events = match hooked && !is_proxy {
            true => Wanted::of(options.events),
            // The constructor of `Object` reports the objects of all other classes.
            false if is_object(&name, options) => {
                Wanted { sites: options.events.has(EventSet::ALLOC), ..Wanted::NOTHING }
            }
            false => Wanted::NOTHING,
        };
        if options.jdk && matches!(name.as_str(), "jdk/internal/misc/Unsafe" | "sun/misc/Unsafe") {
            // HeapProxy calls these methods: an event about them would be an event about an event.
            (events.methods, events.exceptions) = (false, false);
            // Calls of `allocateUninitializedArray` are hooked; its compiled intrinsic has no `newarray`.
            events.arrays = false;
            events.witness = Witness::None;
            events.stacks = false;
        }
        let calls = if events.calls {
            let (allocations, updates) = (options.events.has(EventSet::ALLOC), options.events.has(EventSet::UPDATE));
            Calls::new(&class, options.jdk, allocations, updates)
        } else {
            Calls::default()
        };
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
                    counts.sites += hooks::count_sites(code, events.stacks).map_err(in_method)?;
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
        Ok(Self { bytes, class, name, events, calls, counts, field_refs, field_places })
    }

    /// Binary name of the class in internal form.
    pub fn class_name(&self) -> &str {
        &self.name
    }

    /// Whether the class is a compiled form of method handles. Its frames are hidden and only implement calls, so
    /// entries and exits are not reported. Allocations and stores are.
    pub fn is_lambda_form(&self) -> bool {
        self.name.starts_with("java/lang/invoke/LambdaForm$")
    }

    /// Number of ids that the class needs.
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
        let mut work =
            Work { plan: self, ids, options, names, hooks: HookCounts::default(), next_site: 0, classes: None };
        match work.write(adds_fields) {
            Ok(bytes) => Ok(Rewritten { bytes, names: work.names, hooks: work.hooks, methods_with_code }),
            Err(WriteError::Class(error)) => Err(error),
            Err(WriteError::NoRoom { why }) => {
                let mut names = self.names();
                names.flags.0 |= ClassFlags::NOT_HOOKED;
                names.shortfalls = (0..names.methods.len() as u32)
                    .map(|method| ShortfallNames { method, hooks: "all hooks".into(), why: why.clone() })
                    .collect();
                // The ids have been assigned already, so sites and field references are listed even though no event
                // refers to them.
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

/// Whether this is the class whose constructor every object allocation runs.
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
