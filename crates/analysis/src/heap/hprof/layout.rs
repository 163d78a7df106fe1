//! The fields of each class's objects, and their offsets in a heap dump.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::snapshot::{Snapshot, Via};
use super::format::Basic;
use et_names::FieldId;
use et_reader::Trace;
use et_reader::model::Node;
use et_reader::types::class_name;

/// A class of a heap dump.
#[derive(Clone, Debug)]
pub struct Layout {
    pub descriptor: String,
    /// Its mirror if it is known, else a number that no object has.
    pub id: u64,
    pub mirror: Option<Node>,
    /// Hash of its class loader.
    pub loader: u32,
    /// Which layout is that of the superclass.
    pub above: Option<usize>,
    /// Its own: name, type, and the id by which records name them.
    pub fields: Vec<(String, Basic, u32)>,
    pub statics: Vec<(String, Basic, u32)>,
    /// Bytes of the fields of an object, those of superclasses included.
    pub length: u32,
    /// Offset of each reference field in an instance, by field id.
    pub offsets: FxHashMap<u32, u32>,
}

#[derive(Debug, Default)]
pub struct Layouts {
    pub all: Vec<Layout>,
    /// By number of the class in the snapshot.
    pub of_class: Vec<usize>,
    by_descriptor: FxHashMap<String, usize>,
    /// Mirrors by the class that they are of, the first of each.
    mirrors: FxHashMap<String, Node>,
}

/// Classes without a known mirror are numbered from here: no object has such an id.
const FIRST_MADE_UP: u64 = 7 << 60;
/// No class has more superclasses: a damaged table could make one its own ancestor.
const MOST_ABOVE: usize = 1000;

impl Layouts {
    /// Computes the layouts of all classes of objects in a snapshot, and of all classes whose mirrors are in it.
    pub fn of(snapshot: &Snapshot<'_>, trace: Option<&Trace>) -> Self {
        let mut layouts = Self::default();
        for (node, descriptor) in &snapshot.mirrors {
            layouts.mirrors.entry(descriptor.clone()).or_insert(*node);
        }
        for (_, class) in snapshot.classes() {
            let layout = layouts.add(snapshot, trace, &class.descriptor);
            layouts.of_class.push(layout);
        }
        for descriptor in ["Ljava/lang/Object;", "Ljava/lang/Class;"] {
            layouts.add(snapshot, trace, descriptor);
        }
        for (_, descriptor) in &snapshot.mirrors {
            layouts.add(snapshot, trace, descriptor);
        }
        layouts.add_statics(snapshot, trace);
        layouts.add_unknown_fields(snapshot);
        layouts.place();
        layouts
    }

    /// Index of the layout of a class.
    pub fn find(&self, descriptor: &str) -> Option<usize> {
        self.by_descriptor.get(descriptor).copied()
    }

    fn add(&mut self, snapshot: &Snapshot<'_>, trace: Option<&Trace>, descriptor: &str) -> usize {
        if let Some(known) = self.find(descriptor) {
            return known;
        }
        let index = self.all.len();
        let mirror = self.mirrors.get(descriptor).copied();
        let id = mirror.map_or(FIRST_MADE_UP + index as u64, |mirror| snapshot.object(mirror).id.0);
        self.by_descriptor.insert(descriptor.to_owned(), index);
        self.all.push(Layout {
            descriptor: descriptor.to_owned(),
            id,
            mirror,
            loader: 0,
            above: None,
            fields: Vec::new(),
            statics: Vec::new(),
            length: 0,
            offsets: FxHashMap::default(),
        });
        let mut above = (descriptor != "Ljava/lang/Object;").then(|| "Ljava/lang/Object;".to_owned());
        if let Some(trace) = trace {
            if let Some(class) = trace.types.get(descriptor).and_then(|ty| trace.classes.of_type(ty)) {
                let class = trace.classes.get(class);
                self.all[index].loader = class.record.loader.0;
                if let Some(superclass) = class.superclass {
                    above = Some(trace.classes.get(superclass).record.signature.clone());
                }
            }
            let class = class_name(descriptor).and_then(|name| trace.names.class_near(name, None, &trace.types));
            if let Some(class) = class {
                let (table, entry, _) = trace.names.class(class);
                let name = table.str(entry.super_name);
                if !name.is_empty() {
                    above = Some(format!("L{name};"));
                }
                let layout = &mut self.all[index];
                for at in table.fields_of(trace.names.index_of(class)) {
                    let field = &table.fields[at];
                    let basic = Basic::of(table.str(field.descriptor));
                    let fields = if field.is_static() { &mut layout.statics } else { &mut layout.fields };
                    fields.push((table.str(field.name).to_owned(), basic, table.field_id(at as u32).0));
                }
            }
        }
        if let Some(above) = above {
            let above = self.add(snapshot, trace, &above);
            // Down to up, none is above itself.
            if !self.chain(above).any(|at| at == index) {
                self.all[index].above = Some(above);
            }
        }
        index
    }

    /// A class and its superclasses.
    pub fn chain(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(from), |&at| self.all[at].above).take(MOST_ABOVE)
    }

    /// Static fields that hold something and that no names table lists.
    fn add_statics(&mut self, snapshot: &Snapshot<'_>, trace: Option<&Trace>) {
        for &(field, mirror, _) in snapshot.statics() {
            let text = snapshot.field_text(field);
            let (class, name) = text.rsplit_once('.').unwrap_or(("", &text));
            let descriptor = match mirror.and_then(|mirror| snapshot.mirrored(mirror)) {
                Some(descriptor) => descriptor.to_owned(),
                None => format!("L{};", class.replace('.', "/")),
            };
            let layout = self.add(snapshot, trace, &descriptor);
            let statics = &mut self.all[layout].statics;
            if statics.iter().all(|(_, _, known)| *known != field.0) {
                statics.push((name.to_owned(), Basic::Object, field.0));
            }
        }
    }

    /// Fields that objects have and that the names tables of their classes do not list: each becomes one of the object's class.
    fn add_unknown_fields(&mut self, snapshot: &Snapshot<'_>) {
        let known: Vec<FxHashSet<u32>> = (0..self.all.len())
            .map(|at| {
                let fields = self.chain(at).flat_map(|at| self.all[at].fields.iter());
                fields.filter(|(_, basic, _)| *basic == Basic::Object).map(|(_, _, id)| *id).collect()
            })
            .collect();
        let mut missing: Vec<FxHashSet<u32>> = vec![FxHashSet::default(); self.all.len()];
        for (node, object) in snapshot.nodes() {
            let class = self.of_class[object.class.0 as usize];
            if snapshot.class(object.class).is_array {
                continue;
            }
            for reference in snapshot.references(node) {
                if let Via::Field(FieldId(field)) = reference.via
                    && !known[class].contains(&field)
                {
                    missing[class].insert(field);
                }
            }
        }
        for (at, missing) in missing.into_iter().enumerate() {
            let mut missing: Vec<u32> = missing.into_iter().collect();
            missing.sort_unstable();
            for field in missing {
                let text = snapshot.field_text(FieldId(field));
                let name = text.rsplit_once('.').map_or(text.as_str(), |(_, name)| name).to_owned();
                // The same field of a class of that name in another table.
                let same = |at: usize| {
                    let fields = &self.all[at].fields;
                    fields.iter().position(|(known, basic, _)| *known == name && *basic == Basic::Object)
                };
                let declaring = text.rsplit_once('.').map_or("", |(class, _)| class).replace('.', "/");
                let declaring = format!("L{declaring};");
                let there = self.chain(at).find(|&above| self.all[above].descriptor == declaring);
                match there.and_then(|above| Some((above, same(above)?))) {
                    Some((above, position)) => {
                        let id = self.all[above].fields[position].2;
                        self.all[at].offsets.insert(field, id);
                    }
                    None => self.all[at].fields.push((name, Basic::Object, field)),
                }
            }
        }
    }

    /// Fields of the class come first, then those of its superclass.
    fn place(&mut self) {
        for at in 0..self.all.len() {
            // Another name of a field until here.
            let aliases = std::mem::take(&mut self.all[at].offsets);
            let (mut offsets, mut length) = (FxHashMap::default(), 0);
            for above in self.chain(at) {
                for (_, basic, id) in &self.all[above].fields {
                    if *basic == Basic::Object {
                        offsets.entry(*id).or_insert(length);
                    }
                    length += basic.bytes() as u32;
                }
            }
            for (alias, id) in aliases {
                if let Some(&offset) = offsets.get(&id) {
                    offsets.insert(alias, offset);
                }
            }
            let layout = &mut self.all[at];
            (layout.offsets, layout.length) = (offsets, length);
        }
    }
}
