//! The table: vectors of entries. An id is the artifact's base plus an index, unless classes are missing ([`Gaps`]).

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::gaps::{Counts, Gaps, Kind};
use crate::strings::length;
use crate::{ClassId, EventSet, FieldId, FieldRefId, MethodId, SiteId, Str, StringTable};

/// The kind of artifact that a table belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactKind {
    /// A JDK image, or the boot classes of JDK 8.
    Jdk,
    /// Jars, folders or class files.
    Application,
    /// Created by the runtime: a class defined at run time, or fields that native code stores to. A trace may contain
    /// thousands of these.
    Dynamic,
    /// Also created by the runtime: new methods of a class that an agent redefined. The class keeps the ids of its
    /// fields.
    Redefined,
}

impl ArtifactKind {
    /// Whether the runtime created the table during the run.
    pub fn is_made_at_run_time(self) -> bool {
        matches!(self, Self::Dynamic | Self::Redefined)
    }
}

/// The output of an instrumentation, with its block of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Hash of the input and of the options with which it was instrumented.
    pub hash: u64,
    /// First id of the block, the same for each kind of id.
    pub base: u32,
    /// File name, for display.
    pub name: String,
    pub kind: ArtifactKind,
    /// The events that its classes have hooks for. Classes created at run time get the same hooks as the JDK, but their
    /// tables always say all.
    pub events: EventSet,
}

/// The range of ids of an artifact, for all kinds of ids: `base..base + size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdBlock {
    pub base: u32,
    /// Number of ids: the largest number of entries of any kind.
    pub size: u32,
}

impl IdBlock {
    /// Returns the block of an artifact with these numbers of entries.
    pub(crate) fn of(artifact: &Artifact, sizes: Counts) -> Self {
        Self { base: artifact.base, size: sizes.0.into_iter().max().unwrap_or(0) }
    }

    /// Whether the two blocks have an id in common.
    pub fn overlaps(self, other: IdBlock) -> bool {
        self.base < other.base.saturating_add(other.size) && other.base < self.base.saturating_add(self.size)
    }
}

/// Bits of [`Class::flags`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassFlags(pub u8);

impl ClassFlags {
    /// The class is an interface.
    pub const INTERFACE: u8 = 1;
    /// The class has no hooks: it was excluded, or the rewriter rejected it.
    pub const NOT_HOOKED: u8 = 2;
    /// Whether this flag is set.
    pub fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// A class or interface. Its methods, fields, sites and field references are consecutive in the vectors of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Binary name in internal form: `java/lang/String`.
    pub name: Str,
    /// Superclass in internal form; empty for `java/lang/Object` and module-info.
    pub super_name: Str,
    /// Direct superinterfaces in internal form.
    pub interfaces: Vec<Str>,
    /// See the constants of [`ClassFlags`].
    pub flags: ClassFlags,
    /// `SourceFile` attribute; empty if there is none.
    pub source_file: Str,
    /// Index of the first method in [`NamesTable::methods`].
    pub first_method: u32,
    /// Index of the first field in [`NamesTable::fields`].
    pub first_field: u32,
    /// Index of the first site in [`NamesTable::sites`].
    pub first_site: u32,
    /// Index of the first field reference in [`NamesTable::field_refs`].
    pub first_field_ref: u32,
}

/// A method, including abstract and native ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Index into [`NamesTable::classes`].
    pub class: u32,
    /// Unqualified name; `<init>` for a constructor.
    pub name: Str,
    /// Method descriptor (JVMS §4.3.3).
    pub descriptor: Str,
    /// `access_flags` (JVMS §4.6).
    pub access: u16,
    /// First source line of its code; 0 if unknown.
    pub line: u32,
}

impl Method {
    pub fn is_static(&self) -> bool {
        self.access & 0x0008 != 0
    }
    pub fn is_native(&self) -> bool {
        self.access & 0x0100 != 0
    }
}

/// A field, listed with the class that declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Index into [`NamesTable::classes`].
    pub class: u32,
    pub name: Str,
    /// Field descriptor (JVMS §4.3.2).
    pub descriptor: Str,
    /// `access_flags` (JVMS §4.5).
    pub access: u16,
}

impl Field {
    pub fn is_static(&self) -> bool {
        self.access & 0x0008 != 0
    }
}

/// An instruction that allocates, or, in artifacts with stacks, one that calls a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index into [`NamesTable::methods`].
    pub method: u32,
    /// Descriptor of the allocated type: `Ljava/lang/String;`, `[[I`; of a call, the method that it names: `java/util/Map.get`.
    pub descriptor: Str,
    /// Number of array dimensions that the instruction allocates; 0 for an object, [`CALL`](Self::CALL) for a call.
    pub dimensions: u8,
    /// Source line; 0 if unknown.
    pub line: u32,
}

impl Site {
    /// In place of the number of dimensions: the site is a call. No array has so many.
    pub const CALL: u8 = u8::MAX;

    /// Whether it is a call and allocates nothing.
    pub fn is_call(&self) -> bool {
        self.dimensions == Self::CALL
    }
}

/// A field as an instruction names it (JVMS §4.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef {
    /// The class that the instruction names, in internal form. The field may be declared in a superclass.
    pub class: Str,
    pub name: Str,
    pub descriptor: Str,
    /// Whether the instruction is a `putstatic`.
    pub is_static: bool,
}

/// A method for which some hooks were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Index into [`NamesTable::methods`].
    pub method: u32,
    /// The hooks that are missing, for display: `array updates`.
    pub hooks: Str,
    /// The reason, for display: `the method would pass 65535 bytes`.
    pub why: Str,
}

/// What the rewriter found in a class, before it is added to a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassNames {
    /// Binary name in internal form.
    pub name: String,
    /// Superclass in internal form; empty if there is none.
    pub super_name: String,
    /// Direct superinterfaces in internal form.
    pub interfaces: Vec<String>,
    /// See the constants of [`ClassFlags`].
    pub flags: ClassFlags,
    /// `SourceFile` attribute; empty if there is none.
    pub source_file: String,
    /// All methods in class file order.
    pub methods: Vec<MethodNames>,
    /// All fields in class file order.
    pub fields: Vec<FieldNames>,
    /// Sites, ordered by method and then by offset in the code.
    pub sites: Vec<SiteNames>,
    /// Field references in order of first use.
    pub field_refs: Vec<FieldRefNames>,
    /// Hooks that were left out.
    pub shortfalls: Vec<ShortfallNames>,
}

/// A [`Method`] before it is added to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodNames {
    pub name: String,
    pub descriptor: String,
    pub access: u16,
    pub line: u32,
}

/// A [`Field`] before it is added to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldNames {
    pub name: String,
    pub descriptor: String,
    pub access: u16,
}

/// A [`Site`] before it is added to a table; `method` is an index into [`ClassNames::methods`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteNames {
    pub method: u32,
    pub descriptor: String,
    pub dimensions: u8,
    pub line: u32,
}

/// A [`FieldRef`] before it is added to a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRefNames {
    pub class: String,
    pub name: String,
    pub descriptor: String,
    pub is_static: bool,
}

/// A [`Shortfall`] before it is added to a table; `method` is an index into [`ClassNames::methods`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortfallNames {
    pub method: u32,
    pub hooks: String,
    pub why: String,
}

/// The names table of an artifact, or of those of its classes that a run loaded.
#[derive(Clone, Debug)]
pub struct NamesTable {
    pub artifact: Artifact,
    /// `None` if the table has all classes of the artifact.
    pub(crate) gaps: Option<Gaps>,
    /// The table was read from a file of version 1, which does not say to which class field references and sites
    /// belong.
    pub(crate) is_whole: bool,
    pub strings: StringTable,
    pub classes: Vec<Class>,
    pub methods: Vec<Method>,
    pub fields: Vec<Field>,
    pub sites: Vec<Site>,
    pub field_refs: Vec<FieldRef>,
    /// Ordered by method.
    pub shortfalls: Vec<Shortfall>,
}

impl NamesTable {
    /// Creates an empty table.
    pub fn new(artifact: Artifact) -> Self {
        Self {
            artifact,
            gaps: None,
            is_whole: false,
            strings: StringTable::default(),
            classes: Vec::new(),
            methods: Vec::new(),
            fields: Vec::new(),
            sites: Vec::new(),
            field_refs: Vec::new(),
            shortfalls: Vec::new(),
        }
    }

    /// Appends a class. It gets the next ids of the table, so classes must be pushed in the order in which the rewriter
    /// assigned their ids.
    pub fn push(&mut self, class: &ClassNames) {
        let class_index = length(self.classes.len());
        let first_method = length(self.methods.len());
        let (first_site, first_field_ref) = (length(self.sites.len()), length(self.field_refs.len()));
        let strings = &mut self.strings;
        self.classes.push(Class {
            name: strings.intern(&class.name),
            super_name: strings.intern(&class.super_name),
            interfaces: class.interfaces.iter().map(|name| strings.intern(name)).collect(),
            flags: class.flags,
            source_file: strings.intern(&class.source_file),
            first_method,
            first_field: length(self.fields.len()),
            first_site,
            first_field_ref,
        });
        self.methods.extend(class.methods.iter().map(|method| Method {
            class: class_index,
            name: strings.intern(&method.name),
            descriptor: strings.intern(&method.descriptor),
            access: method.access,
            line: method.line,
        }));
        self.fields.extend(class.fields.iter().map(|field| Field {
            class: class_index,
            name: strings.intern(&field.name),
            descriptor: strings.intern(&field.descriptor),
            access: field.access,
        }));
        self.sites.extend(class.sites.iter().map(|site| Site {
            method: first_method + site.method,
            descriptor: strings.intern(&site.descriptor),
            dimensions: site.dimensions,
            line: site.line,
        }));
        class.field_refs.iter().for_each(|field| self.push_field_ref(field));
        let strings = &mut self.strings;
        let first_shortfall = self.shortfalls.len();
        self.shortfalls.extend(class.shortfalls.iter().map(|short| Shortfall {
            method: first_method + short.method,
            hooks: strings.intern(&short.hooks),
            why: strings.intern(&short.why),
        }));
        self.sort_shortfalls(first_shortfall);
    }

    /// Sorts the shortfalls from index `first` on, which belong to the classes added last, by method.
    pub(crate) fn sort_shortfalls(&mut self, first: usize) {
        self.shortfalls[first..].sort_by_key(|short| short.method);
    }

    /// Shortfalls in the methods of the class at `index`.
    pub(crate) fn shortfalls_of(&self, index: u32) -> &[Shortfall] {
        let methods = self.methods_of(index);
        let before = |method: usize| self.shortfalls.partition_point(|short| (short.method as usize) < method);
        &self.shortfalls[before(methods.start)..before(methods.end)]
    }

    /// Appends a class of another table. `known` maps handles of that table to handles of this one, for strings copied
    /// before.
    pub(crate) fn push_of(&mut self, from: &NamesTable, index: u32, known: &mut FxHashMap<Str, Str>) {
        let first = self.counts();
        let (class, methods) = (&from.classes[index as usize], from.methods_of(index));
        let strings = &mut self.strings;
        let mut string = |other: Str| *known.entry(other).or_insert_with(|| strings.intern(from.str(other)));
        self.classes.push(Class {
            name: string(class.name),
            super_name: string(class.super_name),
            interfaces: class.interfaces.iter().map(|name| string(*name)).collect(),
            flags: class.flags,
            source_file: string(class.source_file),
            first_method: first[Kind::Method],
            first_field: first[Kind::Field],
            first_site: first[Kind::Site],
            first_field_ref: first[Kind::FieldRef],
        });
        let own = |method: u32| first[Kind::Method] + (method - methods.start as u32);
        self.methods.extend(from.methods[methods.clone()].iter().map(|method| Method {
            class: first[Kind::Class],
            name: string(method.name),
            descriptor: string(method.descriptor),
            ..*method
        }));
        self.fields.extend(from.fields[from.fields_of(index)].iter().map(|field| Field {
            class: first[Kind::Class],
            name: string(field.name),
            descriptor: string(field.descriptor),
            ..*field
        }));
        self.sites.extend(from.sites[from.sites_of(index)].iter().map(|site| Site {
            method: own(site.method),
            descriptor: string(site.descriptor),
            ..*site
        }));
        self.field_refs.extend(from.field_refs[from.field_refs_of(index)].iter().map(|field| FieldRef {
            class: string(field.class),
            name: string(field.name),
            descriptor: string(field.descriptor),
            ..*field
        }));
        self.shortfalls.extend(from.shortfalls_of(index).iter().map(|short| Shortfall {
            method: own(short.method),
            hooks: string(short.hooks),
            why: string(short.why),
        }));
    }

    /// Appends a field reference that belongs to no class of the table.
    pub fn push_field_ref(&mut self, field: &FieldRefNames) {
        let strings = &mut self.strings;
        self.field_refs.push(FieldRef {
            class: strings.intern(&field.class),
            name: strings.intern(&field.name),
            descriptor: strings.intern(&field.descriptor),
            is_static: field.is_static,
        });
    }

    /// Renames the class at `index` wherever the table refers to it: the name of a hidden class differs from the one in
    /// its class file. Descriptors are left as they are in the class file.
    pub fn rename_class(&mut self, index: u32, name: &str) {
        let old = self.classes[index as usize].name;
        let new = self.strings.add(name);
        self.classes[index as usize].name = new;
        self.field_refs.iter_mut().filter(|field| field.class == old).for_each(|field| field.class = new);
        let old = format!("L{};", self.str(old));
        for at in 0..self.sites.len() {
            let descriptor = self.str(self.sites[at].descriptor);
            let element = descriptor.trim_start_matches('[');
            if element == old {
                let descriptor = format!("{}L{name};", &descriptor[..descriptor.len() - element.len()]);
                self.sites[at].descriptor = self.strings.add(&descriptor);
            }
        }
    }

    /// Number of entries of each kind.
    pub(crate) fn counts(&self) -> Counts {
        let counts =
            [self.classes.len(), self.methods.len(), self.fields.len(), self.sites.len(), self.field_refs.len()];
        Counts(counts.map(|count| count as u32))
    }

    /// Number of ids of each kind in the artifact, including those of missing classes.
    pub(crate) fn sizes(&self) -> Counts {
        self.gaps.as_ref().map_or_else(|| self.counts(), Gaps::sizes)
    }

    /// Number of classes in the artifact, including missing ones.
    pub fn classes_of_artifact(&self) -> u32 {
        self.sizes()[Kind::Class]
    }

    /// The range of ids of the artifact.
    pub fn block(&self) -> IdBlock {
        IdBlock::of(&self.artifact, self.sizes())
    }

    /// Returns the string of a handle.
    pub fn str(&self, handle: Str) -> &str {
        self.strings.get(handle)
    }

    fn index(&self, kind: Kind, id: u32) -> Option<usize> {
        let offset = id.checked_sub(self.artifact.base)?;
        let index = match &self.gaps {
            None => offset,
            Some(gaps) => gaps.index(kind, offset)?,
        };
        (index < self.counts()[kind]).then_some(index as usize)
    }

    fn id(&self, kind: Kind, index: u32) -> u32 {
        let offset = self.gaps.as_ref().map_or(index, |gaps| gaps.offset(kind, index));
        self.artifact.base.wrapping_add(offset)
    }

    /// Index of the class with this id; `None` if it is not in this table.
    pub fn class_index(&self, id: ClassId) -> Option<usize> {
        self.index(Kind::Class, id.0)
    }
    /// Index of the method with this id; `None` if it is not in this table.
    pub fn method_index(&self, id: MethodId) -> Option<usize> {
        self.index(Kind::Method, id.0)
    }
    /// Index of the field with this id; `None` if it is not in this table.
    pub fn field_index(&self, id: FieldId) -> Option<usize> {
        self.index(Kind::Field, id.0)
    }
    /// Index of the site with this id; `None` if it is not in this table.
    pub fn site_index(&self, id: SiteId) -> Option<usize> {
        self.index(Kind::Site, id.0)
    }
    /// Index of the field reference with this id; `None` if it is not in this table.
    pub fn field_ref_index(&self, id: FieldRefId) -> Option<usize> {
        self.index(Kind::FieldRef, id.0)
    }

    /// The class with this id; `None` if it is not in this table.
    pub fn class(&self, id: ClassId) -> Option<&Class> {
        self.class_index(id).map(|index| &self.classes[index])
    }
    /// The method with this id; `None` if it is not in this table.
    pub fn method(&self, id: MethodId) -> Option<&Method> {
        self.method_index(id).map(|index| &self.methods[index])
    }
    /// The field with this id; `None` if it is not in this table.
    pub fn field(&self, id: FieldId) -> Option<&Field> {
        self.field_index(id).map(|index| &self.fields[index])
    }
    /// The site with this id; `None` if it is not in this table.
    pub fn site(&self, id: SiteId) -> Option<&Site> {
        self.site_index(id).map(|index| &self.sites[index])
    }
    /// The field reference with this id; `None` if it is not in this table.
    pub fn field_ref(&self, id: FieldRefId) -> Option<&FieldRef> {
        self.field_ref_index(id).map(|index| &self.field_refs[index])
    }

    /// The id of the class at `index`.
    pub fn class_id(&self, index: u32) -> ClassId {
        ClassId(self.id(Kind::Class, index))
    }
    /// The id of the method at `index`.
    pub fn method_id(&self, index: u32) -> MethodId {
        MethodId(self.id(Kind::Method, index))
    }
    /// The id of the field at `index`.
    pub fn field_id(&self, index: u32) -> FieldId {
        FieldId(self.id(Kind::Field, index))
    }
    /// The id of the site at `index`.
    pub fn site_id(&self, index: u32) -> SiteId {
        SiteId(self.id(Kind::Site, index))
    }
    /// The id of the field reference at `index`.
    pub fn field_ref_id(&self, index: u32) -> FieldRefId {
        FieldRefId(self.id(Kind::FieldRef, index))
    }

    /// Qualified name of the method at `index`, for display: `java.util.HashMap.put`. `None` if there is no such
    /// method.
    pub fn method_text(&self, index: u32) -> Option<String> {
        let method = self.methods.get(index as usize)?;
        let class = self.str(self.classes.get(method.class as usize)?.name).replace('/', ".");
        Some(format!("{class}.{}", self.str(method.name)))
    }

    /// Indexes of the methods of the class at `index`.
    pub fn methods_of(&self, index: u32) -> Range<usize> {
        self.members(index, self.methods.len(), |class| class.first_method)
    }

    /// Indexes of the fields of the class at `index`.
    pub fn fields_of(&self, index: u32) -> Range<usize> {
        self.members(index, self.fields.len(), |class| class.first_field)
    }

    /// Indexes of the sites in the methods of the class at `index`.
    pub fn sites_of(&self, index: u32) -> Range<usize> {
        self.members(index, self.sites.len(), |class| class.first_site)
    }

    /// Indexes of the field references of the class at `index`.
    pub fn field_refs_of(&self, index: u32) -> Range<usize> {
        self.members(index, self.field_refs.len(), |class| class.first_field_ref)
    }

    fn members(&self, index: u32, count: usize, first: impl Fn(&Class) -> u32) -> Range<usize> {
        let next = self.classes.get(index as usize + 1).map_or(count, |class| first(class) as usize);
        first(&self.classes[index as usize]) as usize..next
    }

    /// First ids of the class at `index`, relative to the artifact's base.
    pub(crate) fn first_offsets(&self, index: u32) -> Counts {
        let class = &self.classes[index as usize];
        let own = Counts([index, class.first_method, class.first_field, class.first_site, class.first_field_ref]);
        self.gaps.as_ref().map_or(own, |gaps| gaps.first_offsets(own))
    }
}
