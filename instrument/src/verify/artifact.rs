//! Classes against the names table of their artifact.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use et_names::mutf8::decode;
use et_names::{ClassFlags, MethodId, NamesTable};

use super::class::{Checked, Fault, Method};

/// A names table, indexed by class name. A name may have any number of classes (multi-release jars, modules, fat jars),
/// so trying them one by one would be too slow.
pub(super) struct Artifact<'t> {
    table: &'t NamesTable,
    size: u32,
    names: HashMap<&'t str, Named>,
    /// The first class of a name with the same methods in the same order.
    shapes: HashMap<(&'t str, u64), usize>,
    /// Classes compared with the table, method by method.
    #[cfg(test)]
    compared: std::sync::atomic::AtomicUsize,
}

/// The classes with one name.
struct Named {
    first: usize,
    /// Any of them is listed as one that got no hooks: its methods may be missing from the table.
    not_hooked: bool,
}

impl<'t> Artifact<'t> {
    pub(super) fn new(table: &'t NamesTable) -> Self {
        let mut names: HashMap<&str, Named> = HashMap::new();
        let mut shapes = HashMap::new();
        for (index, class) in table.classes.iter().enumerate() {
            let name = table.str(class.name);
            let named = names.entry(name).or_insert(Named { first: index, not_hooked: false });
            named.not_hooked |= class.flags.has(ClassFlags::NOT_HOOKED);
            let methods = table.methods[methods_of(table, index)].iter();
            let methods = methods.map(|method| (table.str(method.name), table.str(method.descriptor)));
            shapes.entry((name, shape(methods))).or_insert(index);
        }
        Self {
            table,
            size: table.block().size,
            names,
            shapes,
            #[cfg(test)]
            compared: Default::default(),
        }
    }

    /// Adds what does not agree to the class's faults.
    pub(super) fn check(&self, checked: &mut Checked) {
        let fault = |what: String| Fault { method: None, offset: None, what };
        let Some(mark) = checked.mark else {
            if checked.faults.is_empty() {
                checked.faults.push(fault("it carries no mark of instrumentation".into()));
            }
            return;
        };
        let artifact = &self.table.artifact;
        if (mark.artifact, mark.base) != (artifact.hash, artifact.base) {
            checked.faults.push(fault(format!(
                "it belongs to artifact {:016x} with ids from {}, the names table to {:016x} with ids from {}",
                mark.artifact, mark.base, artifact.hash, artifact.base
            )));
            return;
        }
        let name = decode(&checked.name);
        let Some(named) = self.names.get(name.as_str()) else {
            checked.faults.push(fault("the names table does not know it".into()));
            return;
        };
        if named.not_hooked && checked.methods.iter().all(|method| method.ids.is_none()) {
            return;
        }
        let class = self.by_id(&name, &checked.methods).or_else(|| self.by_shape(&name, &checked.methods));
        checked.faults.extend(self.methods(class.unwrap_or(named.first), &checked.methods));
    }

    /// The class that its hooks say it is, if that has its name.
    fn by_id(&self, name: &str, methods: &[Method]) -> Option<usize> {
        let id = *methods.iter().find_map(|method| method.method_ids.first())?;
        let listed = self.table.method(MethodId(id))?;
        let class = listed.class as usize;
        (self.table.str(self.table.classes[class].name) == name).then_some(class)
    }

    /// A class of this name that has these methods. Without an id in its hooks it may be any of them.
    fn by_shape(&self, name: &str, methods: &[Method]) -> Option<usize> {
        let names: Vec<(String, String)> =
            methods.iter().map(|method| (decode(&method.name), decode(&method.descriptor))).collect();
        let shape = shape(names.iter().map(|(name, descriptor)| (name.as_str(), descriptor.as_str())));
        self.shapes.get(&(name, shape)).copied()
    }

    fn methods(&self, class: usize, methods: &[Method]) -> Vec<Fault> {
        #[cfg(test)]
        self.compared.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let table = self.table;
        let listed = methods_of(table, class);
        let first = listed.start as u32;
        let mut faults = Vec::new();
        if listed.len() != methods.len() {
            let what = format!("it has {} methods, the names table {}", methods.len(), listed.len());
            faults.push(Fault { method: None, offset: None, what });
            return faults;
        }
        let (base, limit) = (table.artifact.base, table.artifact.base + self.size);
        for (index, method) in (first..).zip(methods) {
            let listed = &table.methods[index as usize];
            let (name, descriptor) = (decode(&method.name), decode(&method.descriptor));
            let mut fault =
                |what: String| faults.push(Fault { method: Some(format!("{name}{descriptor}")), offset: None, what });
            // Bytes that are not valid modified UTF-8 are replaced in the table.
            if table.str(listed.name) != name && !name.contains('\u{fffd}') {
                fault(format!("the names table has {} in its place", table.str(listed.name)));
                continue;
            }
            if let Some(id) = method.method_ids.iter().find(|id| **id != base + index) {
                fault(format!("its hooks say that it is method {id}, the names table {}", base + index));
            }
            if let Some((low, high)) = method.ids.filter(|(low, high)| *low < base || *high >= limit) {
                fault(format!("its hooks use ids {low} to {high}, its artifact has {base} to {}", limit - 1));
            }
        }
        faults
    }
}

/// The places of a class's methods in the table.
fn methods_of(table: &NamesTable, class: usize) -> Range<usize> {
    let end = table.classes.get(class + 1).map_or(table.methods.len(), |next| next.first_method as usize);
    table.classes[class].first_method as usize..end
}

/// A hash of names and descriptors of methods in order. Obfuscated names may not be valid Unicode, and readers replace
/// invalid characters differently: all replacements are treated alike.
fn shape<'m>(methods: impl Iterator<Item = (&'m str, &'m str)>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, descriptor) in methods {
        if name.contains('\u{fffd}') {
            '\u{fffd}'.hash(&mut hasher)
        } else {
            name.hash(&mut hasher)
        }
        if descriptor.contains('\u{fffd}') { '\u{fffd}'.hash(&mut hasher) } else { descriptor.hash(&mut hasher) }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use et_names::{ArtifactKind, ClassNames, EventSet, MethodNames};

    use super::*;
    use crate::verify::class::Mark;

    const BASE: u32 = 5000;

    /// A table of classes that are all called `a/Same`, with one method of these names each.
    fn table(methods: impl Iterator<Item = String>) -> NamesTable {
        let (name, kind) = ("same.jar".into(), ArtifactKind::Application);
        let mut table = NamesTable::new(et_names::Artifact { hash: 7, base: BASE, name, kind, events: EventSet::ALL });
        for name in methods {
            let method = MethodNames { name, descriptor: "()V".into(), access: 0, line: 0 };
            table.push(&ClassNames { name: "a/Same".into(), methods: vec![method], ..ClassNames::default() });
        }
        table
    }

    fn class(method: &str, id: Option<u32>) -> Checked {
        let method_ids = id.into_iter().collect();
        let (name, descriptor) = (method.as_bytes().to_vec(), b"()V".to_vec());
        Checked {
            name: b"a/Same".to_vec(),
            mark: Some(Mark { artifact: 7, base: BASE }),
            methods: vec![Method { name, descriptor, method_ids, ids: id.map(|id| (id, id)) }],
            ..Checked::default()
        }
    }

    #[test]
    fn each_class_of_many_with_one_name_is_compared_once() {
        const CLASSES: u32 = 2000;
        let table = table((0..CLASSES).map(|number| format!("m{number}")));
        let artifact = Artifact::new(&table);
        for number in 0..CLASSES {
            for id in [Some(BASE + number), None] {
                let mut checked = class(&format!("m{number}"), id);
                artifact.check(&mut checked);
                assert_eq!(checked.faults, []);
            }
        }
        assert_eq!(artifact.compared.load(Ordering::Relaxed), 2 * CLASSES as usize);
    }

    #[test]
    fn a_class_of_many_with_one_name_is_distinguished() {
        let table = table(["m", "n", "m"].into_iter().map(str::to_owned));
        let faults = |method: &str, id| {
            let mut checked = class(method, id);
            Artifact::new(&table).check(&mut checked);
            checked.faults.into_iter().map(|fault| fault.what).collect::<Vec<_>>()
        };
        assert_eq!(faults("n", Some(BASE + 1)), [""; 0]);
        assert_eq!(faults("m", Some(BASE + 2)), [""; 0]);
        assert_eq!(faults("x", None), ["the names table has m in its place"]);
        assert_eq!(faults("m", Some(BASE + 1)), ["the names table has n in its place"]);
        let beyond = faults("m", Some(BASE + 9));
        assert_eq!(beyond[0], "its hooks say that it is method 5009, the names table 5000");
    }
}
