//! Writes the names file: what the ids in a text mean.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, Write};

use et_format::class_flags;
use et_names::escape::{word, word_of_odd_start};
use et_names::{ClassFlags, ClassId, FieldId, ID_LIMIT, MethodId, NamesTable, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::dialect::Dialect;
use super::number::Radix;
use super::starts::{IDS_DECIMAL, NAMES};
use super::type_number::type_number;
use crate::classes::Class;
use crate::names::ClassRef;
use crate::resolve::ExtraField;
use crate::resolve::recent::Recent;
use crate::trace::Trace;
use crate::types::{TypeId, class_name};

/// The names that a text uses.
#[derive(Debug)]
pub struct NamesUse {
    types: Vec<bool>,
    methods: Vec<bool>,
    fields: Vec<bool>,
    sites: Vec<bool>,
    unknown_methods: FxHashSet<MethodId>,
    /// What has been marked: most records name what others have named shortly before.
    marked_methods: Recent<()>,
    marked_fields: Recent<()>,
    marked_sites: Recent<()>,
    /// Whether types, including array types, are written as numbers.
    types_by_number: bool,
}

fn mark(flags: &mut [bool], index: Option<usize>) -> bool {
    match index {
        Some(index) => {
            flags[index] = true;
            true
        }
        None => false,
    }
}

impl NamesUse {
    pub fn new(trace: &Trace, types_by_number: bool) -> Self {
        let (methods, sites, fields, _) = trace.names.counts();
        Self {
            types: vec![false; trace.types.len()],
            methods: vec![false; methods],
            fields: vec![false; fields],
            sites: vec![false; sites],
            unknown_methods: FxHashSet::default(),
            marked_methods: Recent::default(),
            marked_fields: Recent::default(),
            marked_sites: Recent::default(),
            types_by_number,
        }
    }

    /// Records the use of a type.
    pub fn ty(&mut self, ty: TypeId) {
        self.types[ty.0 as usize] = true;
    }

    /// Records the use of a method.
    pub fn method(&mut self, id: MethodId, trace: &Trace) {
        let Self { marked_methods, methods, unknown_methods, .. } = self;
        marked_methods.get(id.0, || {
            if !mark(methods, trace.names.method_index(id)) {
                unknown_methods.insert(id);
            }
            Some(())
        });
    }

    /// Records the use of a field.
    pub fn field(&mut self, id: FieldId, trace: &Trace) {
        let Self { marked_fields, fields, .. } = self;
        marked_fields.get(id.0, || {
            mark(fields, trace.names.field_index(id));
            Some(())
        });
    }

    /// Records the use of a site.
    pub fn site(&mut self, id: SiteId, trace: &Trace) {
        if id.0 != 0 {
            let Self { marked_sites, sites, .. } = self;
            marked_sites.get(id.0, || {
                mark(sites, trace.names.site_index(id));
                Some(())
            });
        }
    }
}

/// Writes the names file for a text in that dialect. Without `used`, all names of the trace are written.
pub fn write_names<W: Write>(
    trace: &Trace,
    dialect: Dialect,
    used: Option<&NamesUse>,
    extra_fields: &[ExtraField],
    out: W,
) -> io::Result<()> {
    let mut file = NamesFile {
        trace,
        radix: if dialect == Dialect::Et { Radix::Hexadecimal } else { Radix::Decimal },
        out: BufWriter::with_capacity(1 << 16, out),
        written: FxHashMap::default(),
        bare: FxHashMap::default(),
        // After those that are numbered by their types.
        next_bare: ID_LIMIT + trace.types.len() as u32,
        visited: FxHashSet::default(),
    };
    writeln!(file.out, "{NAMES}{}", if file.radix == Radix::Decimal { IDS_DECIMAL } else { "" })?;
    file.write(used, extra_fields)?;
    file.out.flush()
}

/// An id in the radix of the text that the names are for.
#[derive(Clone, Copy)]
struct Id(u64, Radix);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Radix::Hexadecimal => write!(f, "{:x}", self.0),
            Radix::Decimal => write!(f, "{}", self.0),
        }
    }
}

/// The name of a class in the file. A name that starts like a descriptor, or stands for an unknown class, is escaped.
fn class_word(name: &str) -> Cow<'_, str> {
    if name == "?" || name.starts_with('[') { word_of_odd_start(name).into() } else { word(name) }
}

struct NamesFile<'a, W: Write> {
    trace: &'a Trace,
    radix: Radix,
    out: BufWriter<W>,
    written: FxHashMap<ClassRef, ClassId>,
    /// Classes that are in no table, by name.
    bare: FxHashMap<String, ClassId>,
    next_bare: u32,
    /// Classes whose lines have been written, or are about to be after those of their ancestors.
    visited: FxHashSet<Named>,
}

/// A class with a line of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Named {
    Table(ClassRef),
    /// A class that is in no table.
    Bare(Box<str>),
}

/// The superclass, then the superinterfaces.
type Parents = Vec<Option<Named>>;

impl<'a, W: Write> NamesFile<'a, W> {
    fn shown(&self, id: impl Into<u64>) -> Id {
        Id(id.into(), self.radix)
    }

    /// The class of methods that are in no table.
    fn unknown_class(&mut self) -> io::Result<ClassId> {
        let id = ClassId(self.next_bare);
        self.next_bare += 1;
        let (class, none) = (self.shown(id.0), self.shown(0u32));
        writeln!(self.out, "C {class} ? {none} I:")?;
        Ok(id)
    }

    fn write(&mut self, used: Option<&NamesUse>, extra_fields: &[ExtraField]) -> io::Result<()> {
        let trace = self.trace;
        let names = &trace.names;
        // Classes whose members are used, and those that are only used as types.
        let mut wanted: FxHashSet<ClassRef> = FxHashSet::default();
        if let Some(used) = used {
            for class in names.all_classes() {
                let (table, index) = (names.class(class).0, names.index_of(class));
                let base = |first: Option<usize>| first.unwrap_or(usize::MAX);
                let methods = table.methods_of(index);
                let start = base(names.method_index(table.method_id(methods.start as u32)));
                let fields = table.fields_of(index);
                let field_start = base(names.field_index(table.field_id(fields.start as u32)));
                let has_method = used.methods.get(start..).is_some_and(|m| m.iter().take(methods.len()).any(|&u| u));
                let has_field = used.fields.get(field_start..).is_some_and(|f| f.iter().take(fields.len()).any(|&u| u));
                let is_type = used.types[names.type_of(class).0 as usize];
                if has_method || has_field || is_type {
                    wanted.insert(class);
                }
            }
            for table in names.tables() {
                for (index, site) in table.sites.iter().enumerate() {
                    let id = table.site_id(index as u32);
                    if names.site_index(id).is_some_and(|index| used.sites[index])
                        && let Some(class) = names.class_of_method(table.method_id(site.method))
                    {
                        wanted.insert(class);
                    }
                }
            }
        } else {
            wanted.extend(names.all_classes());
        }
        for class in names.all_classes() {
            if wanted.contains(&class) {
                self.class(class)?;
                self.members(class)?;
            }
        }
        for table in names.tables() {
            self.sites(table, used)?;
        }
        for class in trace.classes.iter() {
            let is_used = used.is_none_or(|used| used.types[class.ty.0 as usize]);
            if is_used
                && names.classes_of(class.ty).is_empty()
                && let Some(name) = class_name(&class.record.signature)
            {
                self.bare_class(name)?;
            }
        }
        if let Some(used) = used.filter(|used| used.types_by_number) {
            self.other_types(used)?;
        }
        for (index, field) in extra_fields.iter().enumerate() {
            let id = self.class_by_name(&field.class, None)?;
            let kind = if field.is_static { 'S' } else { 'I' };
            let (field_id, class_id) = (self.shown(ID_LIMIT + index as u32), self.shown(id.0));
            let (name, class, descriptor) = (word(&field.name), class_word(&field.class), word(&field.descriptor));
            writeln!(self.out, "F {kind} {field_id} {name} {class_id} {class} {descriptor}")?;
        }
        if let Some(used) = used.filter(|used| !used.unknown_methods.is_empty()) {
            let mut unknown: Vec<_> = used.unknown_methods.iter().collect();
            unknown.sort();
            let class = self.unknown_class()?;
            for method in unknown {
                let (method, class) = (self.shown(method.0), self.shown(class.0));
                writeln!(self.out, "N {method} {class} ? ? ()V S")?;
            }
        }
        Ok(())
    }

    /// Writes all types that have no line yet: array types as classes with their descriptors as names.
    fn other_types(&mut self, used: &NamesUse) -> io::Result<()> {
        let (types, names) = (&self.trace.types, &self.trace.names);
        let object = self.class_by_name("java/lang/Object", None)?;
        for ty in (0..types.len() as u32).map(TypeId).filter(|ty| used.types[ty.0 as usize]) {
            let descriptor = types.descriptor(ty);
            match class_name(descriptor) {
                Some(name) if names.classes_of(ty).is_empty() => drop(self.bare_class(name)?),
                Some(_) => {}
                None => {
                    let (number, object) = (self.shown(type_number(self.trace, ty)), self.shown(object.0));
                    writeln!(self.out, "C {number} {} {object} I:", word(descriptor))?;
                }
            }
        }
        Ok(())
    }

    fn class_by_name(&mut self, name: &str, near: Option<ClassRef>) -> io::Result<ClassId> {
        self.write_class(self.find(name, near))
    }

    /// The class with that name; `None` if the name is empty.
    fn find(&self, name: &str, near: Option<ClassRef>) -> Option<Named> {
        if name.is_empty() {
            return None;
        }
        Some(match self.trace.names.class_near(name, near, &self.trace.types) {
            Some(class) => Named::Table(class),
            None => Named::Bare(name.into()),
        })
    }

    fn class(&mut self, class: ClassRef) -> io::Result<ClassId> {
        self.write_class(Some(Named::Table(class)))
    }

    fn bare_class(&mut self, name: &str) -> io::Result<ClassId> {
        self.write_class(Some(Named::Bare(name.into())))
    }

    /// The id of a class whose line has been written, or which is its own ancestor in a damaged table.
    fn id(&self, class: &Option<Named>) -> ClassId {
        let known = match class {
            None => None,
            Some(Named::Table(class)) => self.written.get(class),
            Some(Named::Bare(name)) => self.bare.get(&**name),
        };
        known.copied().unwrap_or(ClassId(0))
    }

    /// Writes a class's `C` or `I` line after those of its ancestors, of which there may be very many.
    fn write_class(&mut self, class: Option<Named>) -> io::Result<ClassId> {
        let mut next: Vec<(Named, Option<Parents>)> = class.iter().map(|class| (class.clone(), None)).collect();
        while let Some((class, parents)) = next.pop() {
            match parents {
                Some(parents) => self.class_line(&class, &parents)?,
                None if !self.visited.insert(class.clone()) => {}
                None => {
                    if let Named::Bare(name) = &class {
                        self.number(name);
                    }
                    let parents = self.parents(&class);
                    let all: Vec<Named> = parents.iter().flatten().cloned().collect();
                    next.push((class, Some(parents)));
                    next.extend(all.into_iter().rev().map(|parent| (parent, None)));
                }
            }
        }
        Ok(self.id(&class))
    }

    /// Assigns an id to a class that is in no table.
    fn number(&mut self, name: &str) {
        let id = match self.trace.types.get_class(name) {
            Some(ty) => ClassId(ID_LIMIT + ty.0),
            None => {
                self.next_bare += 1;
                ClassId(self.next_bare - 1)
            }
        };
        self.bare.insert(name.to_owned(), id);
    }

    /// The superclass, then the superinterfaces.
    fn parents(&self, class: &Named) -> Parents {
        match class {
            Named::Table(class) => {
                let (table, entry, _) = self.trace.names.class(*class);
                let all = [entry.super_name].into_iter().chain(entry.interfaces.iter().copied());
                all.map(|name| self.find(table.str(name), Some(*class))).collect()
            }
            Named::Bare(name) => {
                let trace = self.trace;
                let parent = self.record(name).and_then(|class| class.superclass);
                let parent = parent.and_then(|parent| class_name(&trace.classes.get(parent).record.signature));
                vec![parent.filter(|parent| *parent != &**name).and_then(|parent| self.find(parent, None))]
            }
        }
    }

    fn record(&self, name: &str) -> Option<&'a Class> {
        let trace = self.trace;
        trace.types.get_class(name).and_then(|ty| trace.classes.of_type(ty)).map(|class| trace.classes.get(class))
    }

    fn class_line(&mut self, class: &Named, parents: &[Option<Named>]) -> io::Result<()> {
        let parent = parents.first().map_or(ClassId(0), |parent| self.id(parent));
        match class {
            Named::Table(class) => {
                let (table, entry, id) = self.trace.names.class(*class);
                let interfaces: String =
                    parents.iter().skip(1).map(|interface| format!(" {}", self.shown(self.id(interface).0))).collect();
                let letter = if entry.flags.has(ClassFlags::INTERFACE) { 'I' } else { 'C' };
                let (shown, parent) = (self.shown(id.0), self.shown(parent.0));
                let name = class_word(table.str(entry.name));
                writeln!(self.out, "{letter} {shown} {name} {parent} I:{interfaces}")?;
                self.written.insert(*class, id);
            }
            Named::Bare(name) => {
                let id = self.id(&Some(class.clone()));
                let is_interface =
                    self.record(name).is_some_and(|class| class.record.flags & class_flags::INTERFACE != 0);
                let letter = if is_interface { 'I' } else { 'C' };
                let (shown, name, parent) = (self.shown(id.0), class_word(name), self.shown(parent.0));
                writeln!(self.out, "{letter} {shown} {name} {parent} I:")?;
            }
        }
        Ok(())
    }

    fn members(&mut self, class_ref: ClassRef) -> io::Result<()> {
        let (table, entry, id) = self.trace.names.class(class_ref);
        let (class, name) = (self.shown(id.0), class_word(table.str(entry.name)));
        let index = self.trace.names.index_of(class_ref);
        for field_index in table.fields_of(index) {
            let field = &table.fields[field_index];
            let kind = if field.is_static() { 'S' } else { 'I' };
            let field_id = self.shown(table.field_id(field_index as u32).0);
            let (field_name, descriptor) = (word(table.str(field.name)), word(table.str(field.descriptor)));
            writeln!(self.out, "F {kind} {field_id} {field_name} {class} {name} {descriptor}")?;
        }
        for method_index in table.methods_of(index) {
            let method = &table.methods[method_index];
            let kind = if method.is_static() { 'S' } else { 'I' };
            let native = if method.is_native() { "N" } else { "" };
            let method_id = self.shown(table.method_id(method_index as u32).0);
            let (method_name, descriptor) = (word(table.str(method.name)), word(table.str(method.descriptor)));
            writeln!(self.out, "N {method_id} {class} {name} {method_name} {descriptor} {kind}{native}")?;
        }
        writeln!(self.out, "E {class} {name}")
    }

    fn sites(&mut self, table: &NamesTable, used: Option<&NamesUse>) -> io::Result<()> {
        for (index, site) in table.sites.iter().enumerate() {
            let id = table.site_id(index as u32);
            let dense = self.trace.names.site_index(id);
            // The format has only sites of allocations.
            if site.is_call() {
                continue;
            }
            if used.is_some_and(|used| !dense.is_some_and(|dense| used.sites[dense])) {
                continue;
            }
            let method = self.shown(table.method_id(site.method).0);
            let class = self.shown(table.class_id(table.methods[site.method as usize].class).0);
            let (id, descriptor) = (self.shown(id.0), word(table.str(site.descriptor)));
            writeln!(self.out, "S {method} {class} {id} {descriptor} {} {}", site.dimensions, site.line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceFile;
    use crate::testing::{TraceBuilder, class, table};
    use et_format::ClassRecord;
    use et_format::event::ObjectHash;

    /// A class's line comes after those of its ancestors, however many there are, and whether or not they are in a
    /// table.
    #[test]
    fn ancestors_come_first_however_many_they_are() {
        const DEPTH: u32 = 50_000;
        let mut builder = TraceBuilder::new();
        let name = |at: u32| format!("C{at}");
        let classes: Vec<_> = (0..DEPTH).map(|at| class(&name(at), &name(at + 1), &[])).collect();
        builder.names(&table("app", 1000, &classes));
        // The others are in no table; the last is its own ancestor.
        let records: Vec<_> = (DEPTH..2 * DEPTH)
            .map(|at| ClassRecord {
                class: ObjectHash(at),
                superclass: ObjectHash(if at + 1 < 2 * DEPTH { at + 1 } else { DEPTH }),
                signature: format!("L{};", name(at)),
                ..ClassRecord::default()
            })
            .collect();
        builder.classes(&records);
        let trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
        let mut out = Vec::new();
        write_names(&trace, Dialect::Et, None, &[], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let written: Vec<&str> =
            text.lines().filter(|line| line.starts_with("C ")).map(|line| line.split(' ').nth(2).unwrap()).collect();
        let expected: Vec<String> = (0..2 * DEPTH).rev().map(name).collect();
        assert!(written == expected, "{:?}", &written[..10]);
    }
}
