//! Classes against the names table of their artifact.

use std::collections::HashMap;

use et_names::mutf8::decode;
use et_names::{ClassFlags, NamesTable};

use super::class::{Checked, Fault, Method};

/// A names table, by class name.
pub(super) struct Artifact<'t> {
    table: &'t NamesTable,
    size: u32,
    /// A name may stand for several classes: multi-release jars, modules, fat jars.
    classes: HashMap<&'t str, Vec<usize>>,
}

impl<'t> Artifact<'t> {
    pub(super) fn new(table: &'t NamesTable) -> Self {
        let mut classes: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, class) in table.classes.iter().enumerate() {
            classes.entry(table.str(class.name)).or_default().push(index);
        }
        Self { table, size: table.block().size, classes }
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
        let candidates = self.classes.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        if candidates.is_empty() {
            checked.faults.push(fault("the names table does not know it".into()));
            return;
        }
        // The class among those of its name that its own methods fit.
        let mut faults = None;
        for class in candidates {
            let found = self.methods(*class, &checked.methods);
            if found.is_empty() {
                return;
            }
            faults.get_or_insert(found);
        }
        checked.faults.extend(faults.unwrap_or_default());
    }

    fn methods(&self, class: usize, methods: &[Method]) -> Vec<Fault> {
        let table = self.table;
        let first = table.classes[class].first_method;
        let end = table.classes.get(class + 1).map_or(table.methods.len() as u32, |next| next.first_method);
        if table.classes[class].flags.has(ClassFlags::NOT_HOOKED) && methods.iter().all(|method| method.ids.is_none()) {
            return Vec::new();
        }
        let mut faults = Vec::new();
        if (end - first) as usize != methods.len() {
            let what = format!("it has {} methods, the names table {}", methods.len(), end - first);
            faults.push(Fault { method: None, offset: None, what });
            return faults;
        }
        let (base, limit) = (table.artifact.base, table.artifact.base + self.size);
        for (index, method) in (first..).zip(methods) {
            let listed = &table.methods[index as usize];
            let (name, descriptor) = (decode(&method.name), decode(&method.descriptor));
            let mut fault =
                |what: String| faults.push(Fault { method: Some(format!("{name}{descriptor}")), offset: None, what });
            // Bytes that are no modified UTF-8 are replaced in the table.
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
