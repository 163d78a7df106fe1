//! The names tables of all artifacts of a trace combined: resolves every static id.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use et_format::event::ObjectHash;
use et_names::{ClassFlags, ClassId, FieldId, FieldRefId, MethodId, NamesTable, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dynamic::{Origins, Redefines};
use crate::types::{TypeId, Types};

/// A class in one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassRef {
    table: u32,
    index: u32,
}

/// Maximum number of superclasses and superinterfaces searched for a field.
const MOST_ANCESTORS: usize = 1 << 12;

/// What resolving needs to know about a method.
#[derive(Clone, Copy, Debug, Default)]
pub struct MethodInfo {
    pub class: TypeId,
    /// Whether it is an `<init>`.
    pub is_constructor: bool,
}

#[derive(Debug)]
struct Table {
    names: NamesTable,
    /// Start of this table's entries in the vectors over all tables.
    first_method: usize,
    first_field: usize,
    first_site: usize,
    first_field_ref: usize,
    class_types: Vec<TypeId>,
    /// Defining loader of a class created at run time; `None` for artifacts, whose loaders are unknown.
    loader: Option<ObjectHash>,
    /// For a redefined class: the original class, which has the same fields.
    redefines: Option<ClassRef>,
}

/// Two artifacts that use the same ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Name of the artifact to which the ids are resolved.
    pub kept: String,
    /// Name of the other artifact.
    pub shadowed: String,
}

impl Display for Overlap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Overlap { kept, shadowed } = self;
        write!(
            f,
            "artifacts {kept} and {shadowed} use the same ids: instrument one of them again with another --id-base"
        )
    }
}

/// All names tables of a trace. Ids also have an *index*, which is dense over all tables, for vectors indexed by id.
#[derive(Debug, Default)]
pub struct Names {
    tables: Vec<Table>,
    /// First id and index of each table, in order: a trace may have thousands of tables.
    blocks: Vec<(u32, u32)>,
    /// Tables that share ids with another one; searched last.
    shadowed: Vec<u32>,
    overlaps: Vec<Overlap>,
    methods: Vec<MethodInfo>,
    site_types: Vec<TypeId>,
    /// Types of the inner arrays allocated by a `multianewarray`, by site index and depth.
    inner_types: FxHashMap<(u32, u8), TypeId>,
    fields: usize,
    field_refs: usize,
    by_type: FxHashMap<TypeId, Vec<ClassRef>>,
    /// If there are several classes of a type: the first of each loader, `None` for artifacts. A name may be defined by
    /// thousands of loaders.
    by_loader: FxHashMap<(TypeId, Option<ObjectHash>), ClassRef>,
    /// Types of hooked classes in artifacts.
    hooked: FxHashSet<TypeId>,
}

impl Names {
    /// Combines tables; duplicates are ignored.
    pub fn new(tables: Vec<NamesTable>, types: &mut Types) -> Self {
        let mut all = Self::default();
        let mut seen = FxHashSet::default();
        let mut blocks = BTreeMap::new();
        for names in tables {
            if !seen.insert((names.artifact.hash, names.artifact.base)) {
                continue;
            }
            let index = all.tables.len() as u32;
            let block = names.block();
            // Blocks in the map do not overlap: of those that begin earlier, only the last can extend into this one.
            let before = blocks.range(..block.base).next_back();
            let inside = blocks.range(block.base..block.base.saturating_add(block.size));
            let near = before.into_iter().chain(inside).map(|(_, table)| *table).chain(all.shadowed.iter().copied());
            let overlaps: Vec<Overlap> = near
                .map(|other| &all.tables[other as usize].names)
                .filter(|other| other.block().overlaps(block))
                .map(|other| Overlap { kept: other.artifact.name.clone(), shadowed: names.artifact.name.clone() })
                .collect();
            if overlaps.is_empty() && !blocks.contains_key(&block.base) {
                blocks.insert(block.base, index);
            } else {
                all.shadowed.push(index);
            }
            all.overlaps.extend(overlaps);
            all.add(names, types);
        }
        all.blocks = blocks.into_iter().collect();
        all.index_loaders();
        all
    }

    fn add(&mut self, names: NamesTable, types: &mut Types) {
        let table = self.tables.len() as u32;
        let class_types: Vec<_> = names.classes.iter().map(|class| types.intern_class(names.str(class.name))).collect();
        for (index, &ty) in class_types.iter().enumerate() {
            self.by_type.entry(ty).or_default().push(ClassRef { table, index: index as u32 });
        }
        let first_method = self.methods.len();
        // Comparing handles is cheaper than comparing the text of every name.
        let constructor = names.methods.iter().map(|m| m.name).find(|&name| names.str(name) == "<init>");
        self.methods.extend(names.methods.iter().map(|method| MethodInfo {
            class: class_types[method.class as usize],
            is_constructor: Some(method.name) == constructor,
        }));
        let first_site = self.site_types.len();
        let mut by_handle: FxHashMap<u32, TypeId> = FxHashMap::default();
        for (index, site) in names.sites.iter().enumerate() {
            let descriptor = names.str(site.descriptor);
            if site.is_call() {
                self.site_types.push(TypeId::UNKNOWN);
                continue;
            }
            let ty = *by_handle.entry(site.descriptor.0).or_insert_with(|| types.intern(descriptor));
            self.site_types.push(ty);
            for depth in 1..site.dimensions {
                if let Some(inner) = descriptor.get(depth.into()..) {
                    self.inner_types.insert(((first_site + index) as u32, depth), types.intern(inner));
                }
            }
        }
        let (first_field, first_field_ref) = (self.fields, self.field_refs);
        self.fields += names.fields.len();
        self.field_refs += names.field_refs.len();
        self.tables.push(Table {
            names,
            first_method,
            first_field,
            first_site,
            first_field_ref,
            class_types,
            loader: None,
            redefines: None,
        });
    }

    /// Sets the origins of dynamic tables.
    pub fn set_origins(&mut self, origins: &Origins) {
        for table in &mut self.tables {
            table.loader = origins.get(&table.names.artifact.base).map(|origin| origin.loader);
        }
        let by_base: FxHashMap<u32, u32> = (0..self.tables.len() as u32)
            .zip(&self.tables)
            .rev()
            .map(|(index, table)| (table.names.artifact.base, index))
            .collect();
        let mut in_artifacts: FxHashMap<TypeId, ClassRef> = FxHashMap::default();
        for class in self.all_classes() {
            if !self.tables[class.table as usize].names.artifact.kind.is_made_at_run_time() {
                in_artifacts.entry(self.type_of(class)).or_insert(class);
            }
        }
        for at in 0..self.tables.len() {
            let table = &self.tables[at];
            let redefines = origins.get(&table.names.artifact.base).and_then(|origin| origin.redefines);
            let (Some(redefines), Some(&ty)) = (redefines, table.class_types.first()) else { continue };
            let known = match redefines {
                Redefines::Artifact => in_artifacts.get(&ty).copied(),
                Redefines::Table(base) => by_base.get(&base).and_then(|&table| self.class_in(table, ty)),
            };
            self.tables[at].redefines = known;
        }
        self.index_loaders();
    }

    /// The class of that type in a table.
    fn class_in(&self, table: u32, ty: TypeId) -> Option<ClassRef> {
        let all = self.classes_of(ty);
        let start = all.partition_point(|class| class.table < table);
        all.get(start).copied().filter(|class| class.table == table)
    }

    fn index_loaders(&mut self) {
        (self.by_loader, self.hooked) = Default::default();
        for (&ty, classes) in &self.by_type {
            for &class in classes {
                let table = &self.tables[class.table as usize];
                if classes.len() > 1 {
                    self.by_loader.entry((ty, table.loader)).or_insert(class);
                }
                let flags = table.names.classes[class.index as usize].flags;
                if table.loader.is_none() && !flags.has(ClassFlags::NOT_HOOKED) {
                    self.hooked.insert(ty);
                }
            }
        }
    }

    /// Artifacts whose id blocks overlap, so that their ids are ambiguous.
    pub fn overlaps(&self) -> &[Overlap] {
        &self.overlaps
    }

    pub fn tables(&self) -> impl Iterator<Item = &NamesTable> {
        self.tables.iter().map(|table| &table.names)
    }

    /// The table of an id, and the index in it that `index` returns.
    #[inline]
    fn find(&self, id: u32, index: impl Fn(&NamesTable) -> Option<usize>) -> Option<(&Table, usize)> {
        self.find_table(id, index).map(|(table, index)| (&self.tables[table as usize], index))
    }

    #[inline]
    fn find_table(&self, id: u32, index: impl Fn(&NamesTable) -> Option<usize>) -> Option<(u32, usize)> {
        self.candidates(id).find_map(|table| index(&self.tables[table as usize].names).map(|index| (table, index)))
    }

    /// The tables that may contain an id.
    #[inline]
    fn candidates(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let before = self.blocks.partition_point(|(base, _)| *base <= id);
        let nearest = before.checked_sub(1).map(|before| self.blocks[before].1);
        nearest.into_iter().chain(self.shadowed.iter().copied())
    }

    fn find_method(&self, id: MethodId) -> Option<(&Table, usize)> {
        self.find(id.0, |table| table.method_index(id))
    }

    fn find_field(&self, id: FieldId) -> Option<(&Table, usize)> {
        self.find(id.0, |table| table.field_index(id))
    }

    fn find_site(&self, id: SiteId) -> Option<(&Table, usize)> {
        self.find(id.0, |table| table.site_index(id))
    }

    fn find_field_ref(&self, id: FieldRefId) -> Option<(&Table, usize)> {
        self.find(id.0, |table| table.field_ref_index(id))
    }

    /// Dense index of a method; `None` if the id is unknown.
    #[inline]
    pub fn method_index(&self, id: MethodId) -> Option<usize> {
        self.find_method(id).map(|(table, index)| table.first_method + index)
    }

    /// Dense index of a site; `None` if the id is unknown.
    #[inline]
    pub fn site_index(&self, id: SiteId) -> Option<usize> {
        self.find_site(id).map(|(table, index)| table.first_site + index)
    }

    /// Dense index of a field; `None` if the id is unknown.
    pub fn field_index(&self, id: FieldId) -> Option<usize> {
        self.find_field(id).map(|(table, index)| table.first_field + index)
    }

    /// Dense index of a field reference; `None` if the id is unknown.
    #[inline]
    pub fn field_ref_index(&self, id: FieldRefId) -> Option<usize> {
        self.find_field_ref(id).map(|(table, index)| table.first_field_ref + index)
    }

    /// Number of methods, sites, fields and field references: the exclusive upper limits of the dense indexes.
    pub fn counts(&self) -> (usize, usize, usize, usize) {
        (self.methods.len(), self.site_types.len(), self.fields, self.field_refs)
    }

    #[inline]
    pub fn method_info(&self, id: MethodId) -> Option<MethodInfo> {
        self.method_index(id).map(|index| self.methods[index])
    }

    /// The type that a site allocates, `depth` array dimensions down (`multianewarray`).
    #[inline]
    pub fn site_type(&self, id: SiteId, depth: u8) -> Option<TypeId> {
        let index = self.site_index(id)?;
        if depth == 0 {
            return Some(self.site_types[index]);
        }
        self.inner_types.get(&(index as u32, depth)).copied()
    }

    /// Entry of a method, with its table.
    pub fn method(&self, id: MethodId) -> Option<(&NamesTable, &et_names::Method)> {
        self.find_method(id).map(|(table, index)| (&table.names, &table.names.methods[index]))
    }

    /// Entry of a field, with its table.
    pub fn field(&self, id: FieldId) -> Option<(&NamesTable, &et_names::Field)> {
        self.find_field(id).map(|(table, index)| (&table.names, &table.names.fields[index]))
    }

    /// Entry of a site, with its table.
    pub fn site(&self, id: SiteId) -> Option<(&NamesTable, &et_names::Site)> {
        self.find_site(id).map(|(table, index)| (&table.names, &table.names.sites[index]))
    }

    /// Entry of a field reference, with its table.
    pub fn field_ref(&self, id: FieldRefId) -> Option<(&NamesTable, &et_names::FieldRef)> {
        self.find_field_ref(id).map(|(table, index)| (&table.names, &table.names.field_refs[index]))
    }

    /// Display name of a method: `java.util.HashMap.put`, or `method 12` if the id is unknown.
    pub fn method_text(&self, id: MethodId) -> String {
        let text = self.find_method(id).and_then(|(table, index)| table.names.method_text(index as u32));
        text.unwrap_or_else(|| format!("method {:x}", id.0))
    }

    /// Display name of a site: `java.util.HashMap.put:123`.
    pub fn site_text(&self, id: SiteId) -> String {
        match self.site(id) {
            Some((table, site)) => {
                let method = self.method_text(table.method_id(site.method));
                if site.line == 0 { method } else { format!("{method}:{}", site.line) }
            }
            None => format!("site {:x}", id.0),
        }
    }

    /// Classes of this type, in order of their tables.
    pub fn classes_of(&self, ty: TypeId) -> &[ClassRef] {
        self.by_type.get(&ty).map_or(&[], Vec::as_slice)
    }

    /// Index of a class in its table.
    pub fn index_of(&self, class: ClassRef) -> u32 {
        class.index
    }

    /// Table, entry and id of a class.
    pub fn class(&self, class: ClassRef) -> (&NamesTable, &et_names::Class, ClassId) {
        let names = &self.tables[class.table as usize].names;
        (names, &names.classes[class.index as usize], names.class_id(class.index))
    }

    pub fn type_of(&self, class: ClassRef) -> TypeId {
        self.tables[class.table as usize].class_types[class.index as usize]
    }

    /// All classes of all tables.
    pub fn all_classes(&self) -> impl Iterator<Item = ClassRef> {
        self.tables.iter().enumerate().flat_map(|(table, t)| {
            (0..t.names.classes.len() as u32).map(move |index| ClassRef { table: table as u32, index })
        })
    }

    /// The class that declares a method.
    pub fn class_of_method(&self, id: MethodId) -> Option<ClassRef> {
        let (table, index) = self.find_table(id.0, |table| table.method_index(id))?;
        Some(ClassRef { table, index: self.tables[table as usize].names.methods[index].class })
    }

    /// The class that declares a field.
    pub fn class_of_field(&self, id: FieldId) -> Option<ClassRef> {
        let (table, index) = self.find_table(id.0, |table| table.field_index(id))?;
        Some(ClassRef { table, index: self.tables[table as usize].names.fields[index].class })
    }

    /// Whether a table has a class of this type with hooks. Tables of single classes that a loader defined at run time
    /// are ignored, since they say nothing about other classes of that name.
    pub fn is_hooked(&self, ty: TypeId) -> bool {
        self.hooked.contains(&ty)
    }

    /// The class named `internal_name` from the point of view of `near`: of the same artifact, of the same loader, or
    /// of an artifact made before the run, in this order. Loaders may delegate in their own way, so the last is a
    /// guess. For a redefined class it is the original class.
    pub fn class_near(&self, internal_name: &str, near: Option<ClassRef>, types: &Types) -> Option<ClassRef> {
        let found = self.entry_near(internal_name, near, types)?;
        Some(self.tables[found.table as usize].redefines.unwrap_or(found))
    }

    fn entry_near(&self, internal_name: &str, near: Option<ClassRef>, types: &Types) -> Option<ClassRef> {
        let ty = types.get_class(internal_name)?;
        let candidates = self.classes_of(ty);
        let (Some(near), [_, _, ..]) = (near, candidates) else { return candidates.first().copied() };
        if let Some(same) = self.class_in(near.table, ty) {
            return Some(same);
        }
        let of_loader = |loader| self.by_loader.get(&(ty, loader)).copied();
        let siblings = self.tables[near.table as usize].loader.and_then(|loader| of_loader(Some(loader)));
        siblings.or_else(|| of_loader(None)).or(candidates.first().copied())
    }

    /// A method by name, as stack walks return it. Methods without hooks are not found.
    pub fn hooked_method(&self, class: &str, name: &str, descriptor: &str, types: &Types) -> Option<MethodId> {
        for &class in self.classes_of(types.get(class)?) {
            let (table, entry, _) = self.class(class);
            if entry.flags.has(ClassFlags::NOT_HOOKED) {
                continue;
            }
            for index in table.methods_of(class.index) {
                let method = &table.methods[index];
                let same = table.str(method.name) == name && table.str(method.descriptor) == descriptor;
                if same && !method.is_native() {
                    return Some(table.method_id(index as u32));
                }
            }
        }
        None
    }

    fn declared_field(&self, class: ClassRef, name: &str, descriptor: &str) -> Option<FieldId> {
        let table = self.class(class).0;
        table.fields_of(class.index).find_map(|index| {
            let field = &table.fields[index];
            let same = table.str(field.name) == name && table.str(field.descriptor) == descriptor;
            same.then(|| table.field_id(index as u32))
        })
    }

    /// The declared field to which `class.name:descriptor` resolves (JVMS §5.4.3.2): searches the class, its
    /// superinterfaces and its superclass, in this order. `None` if a class on the way is in no table.
    pub fn resolve_field(&self, class: ClassRef, name: &str, descriptor: &str, types: &Types) -> Option<FieldId> {
        // Each class once: in a damaged table a class may be its own ancestor, and there may be many paths to an
        // ancestor.
        let mut seen = FxHashSet::default();
        let mut next = vec![class];
        while let Some(class) = next.pop().filter(|_| seen.len() < MOST_ANCESTORS) {
            if !seen.insert(class) {
                continue;
            }
            if let Some(own) = self.declared_field(class, name, descriptor) {
                return Some(own);
            }
            let (table, entry, _) = self.class(class);
            let parents = entry.interfaces.iter().copied().chain([entry.super_name]);
            let first = next.len();
            next.extend(parents.filter_map(|parent| self.class_near(table.str(parent), Some(class), types)));
            // The first is searched next, with all its ancestors.
            next[first..].reverse();
        }
        None
    }

    /// The declared field to which a field reference resolves.
    pub fn resolve_field_ref(&self, id: FieldRefId, types: &Types) -> Option<FieldId> {
        let (table, index) = self.find_table(id.0, |table| table.field_ref_index(id))?;
        let names = &self.tables[table as usize].names;
        let reference = &names.field_refs[index];
        let near = ClassRef { table, index: 0 };
        let class = self.class_near(names.str(reference.class), Some(near), types)?;
        self.resolve_field(class, names.str(reference.name), names.str(reference.descriptor), types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamic::Origin;
    use et_names::{Artifact, ArtifactKind, ClassNames, DYNAMIC_BASE, EventSet, FieldNames, FieldRefNames};

    fn table(name: &str, hash: u64, base: u32, classes: &[ClassNames]) -> NamesTable {
        let mut table = NamesTable::new(Artifact {
            hash,
            base,
            name: name.into(),
            kind: ArtifactKind::Application,
            events: EventSet::ALL,
        });
        classes.iter().for_each(|class| table.push(class));
        table
    }

    fn class(name: &str, parent: &str, interfaces: &[&str], fields: &[&str]) -> ClassNames {
        ClassNames {
            name: name.into(),
            super_name: parent.into(),
            interfaces: interfaces.iter().map(|&i| i.into()).collect(),
            fields: fields
                .iter()
                .map(|&f| FieldNames { name: f.into(), descriptor: "LX;".into(), access: 0 })
                .collect(),
            ..ClassNames::default()
        }
    }

    fn with_ref(mut names: ClassNames, class: &str, field: &str) -> ClassNames {
        names.field_refs.push(FieldRefNames {
            class: class.into(),
            name: field.into(),
            descriptor: "LX;".into(),
            is_static: false,
        });
        names
    }

    #[test]
    fn fields_are_found_along_interfaces_and_superclasses() {
        let mut types = Types::default();
        let names = Names::new(
            vec![
                table("jdk", 1, 1, &[class("Base", "", &[], &["x", "y"])]),
                table(
                    "app",
                    2,
                    100,
                    &[
                        with_ref(class("I", "Base", &[], &["y"]), "C", "x"),
                        with_ref(class("C", "Base", &["I"], &["z"]), "C", "y"),
                        with_ref(class("D", "C", &[], &[]), "D", "z"),
                        with_ref(class("E", "Nowhere", &[], &[]), "E", "z"),
                    ],
                ),
            ],
            &mut types,
        );
        let field = |raw| names.resolve_field_ref(FieldRefId(raw), &types);
        assert_eq!(field(100), Some(FieldId(1)), "C.x is Base.x of the other artifact");
        assert_eq!(field(101), Some(FieldId(100)), "C.y is I.y: interfaces come before the superclass");
        assert_eq!(field(102), Some(FieldId(101)), "D.z is C.z");
        assert_eq!(field(103), None);
        assert_eq!(field(104), None);
    }

    #[test]
    fn the_class_of_the_same_artifact_is_preferred() {
        let mut types = Types::default();
        let both = [with_ref(class("C", "", &[], &["x"]), "C", "x")];
        let names = Names::new(vec![table("a", 1, 1, &both), table("b", 2, 50, &both)], &mut types);
        assert_eq!(names.resolve_field_ref(FieldRefId(1), &types), Some(FieldId(1)));
        assert_eq!(names.resolve_field_ref(FieldRefId(50), &types), Some(FieldId(50)));
        assert!(names.overlaps().is_empty());
    }

    #[test]
    fn overlapping_artifacts_are_named_and_equal_ones_count_once() {
        let mut types = Types::default();
        let classes = [class("C", "", &[], &["x", "y"])];
        let tables = vec![table("a", 1, 10, &classes), table("a", 1, 10, &classes), table("b", 2, 11, &classes)];
        let names = Names::new(tables, &mut types);
        assert_eq!(names.overlaps(), [Overlap { kept: "a".into(), shadowed: "b".into() }]);
        assert_eq!(names.tables().count(), 2);
    }

    #[test]
    fn an_id_that_the_kept_artifact_does_not_use_is_the_others() {
        let mut types = Types::default();
        let one = [class("C", "", &[], &["x", "y"])];
        let two = [class("D", "", &[], &["x", "y"])];
        let names = Names::new(vec![table("a", 1, 10, &one), table("b", 2, 11, &two)], &mut types);
        let class_of = |id| names.class_of_field(FieldId(id)).map(|class| names.type_of(class));
        let types = ["C", "C", "D"].map(|name| types.get_class(name));
        assert_eq!([10, 11, 12].map(class_of), types);
        assert_eq!(class_of(13), None);
    }

    #[test]
    fn of_thousands_of_tables_one_is_looked_at() {
        const COUNT: u32 = 20_000;
        let mut types = Types::default();
        let tables = (0..COUNT).rev().map(|n| {
            let name = format!("C{n}");
            table(&name, n.into(), DYNAMIC_BASE + 2 * n, &[with_ref(class(&name, "", &[], &["x"]), &name, "x")])
        });
        let names = Names::new(tables.collect(), &mut types);
        assert!(names.overlaps().is_empty());
        for n in 0..COUNT {
            let id = DYNAMIC_BASE + 2 * n;
            assert_eq!(names.resolve_field_ref(FieldRefId(id), &types), Some(FieldId(id)));
            assert!(names.field_ref(FieldRefId(id + 1)).is_none());
            assert_eq!((names.candidates(id).count(), names.candidates(id + 1).count()), (1, 1));
        }
    }

    #[test]
    fn a_class_that_is_its_own_ancestor_does_no_harm() {
        let mut types = Types::default();
        let classes = [with_ref(class("C", "C", &[], &[]), "C", "x")];
        let names = Names::new(vec![table("a", 1, 10, &classes)], &mut types);
        assert_eq!(names.resolve_field_ref(FieldRefId(10), &types), None);
    }
    /// The number of paths to an ancestor may be exponential in the number of interfaces; each ancestor is searched
    /// once.
    #[test]
    fn ancestors_that_many_ways_lead_to_are_looked_at_once() {
        let mut types = Types::default();
        let mut classes: Vec<ClassNames> = (0..1000)
            .map(|at| {
                let parent = format!("C{}", at + 1);
                class(&format!("C{at}"), &parent, &[&parent, &parent], &[])
            })
            .collect();
        classes.push(class("C1000", "C0", &[], &["f"]));
        let names = Names::new(vec![table("a", 1, 1, &classes)], &mut types);
        let resolve = |from, field| {
            let class = names.class_near(from, None, &types).unwrap();
            names.resolve_field(class, field, "LX;", &types)
        };
        assert!(resolve("C0", "f").is_some());
        assert_eq!(resolve("C0", "g"), None, "it is its own ancestor");
    }

    /// Each of many loaders has classes of the same names.
    #[test]
    fn a_name_may_be_defined_by_very_many_loaders() {
        const LOADERS: u32 = 20_000;
        let mut types = Types::default();
        let base = |loader: u32| DYNAMIC_BASE + loader * 10;
        let tables = (0..LOADERS).flat_map(|loader| {
            let node = class("a/Node", "java/lang/Object", &[], &["next"]);
            let user = with_ref(class("a/User", "java/lang/Object", &[], &[]), "a/Node", "next");
            [(0, node), (5, user)].map(|(at, class)| table("at run time", 1, base(loader) + at, &[class]))
        });
        let mut names = Names::new(tables.collect(), &mut types);
        let origins = (0..LOADERS).flat_map(|loader| {
            let origin = Origin { loader: ObjectHash(loader + 1), redefines: None };
            [(base(loader), origin), (base(loader) + 5, origin)]
        });
        names.set_origins(&origins.collect());
        for loader in 0..LOADERS {
            let field = names.resolve_field_ref(FieldRefId(base(loader) + 5), &types);
            assert_eq!(field, Some(FieldId(base(loader))));
        }
        assert!(!names.is_hooked(types.get("La/Node;").unwrap()));
    }
}
