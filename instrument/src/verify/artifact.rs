//! Classes against the names table of their artifact.

use std::collections::HashMap;

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
        let name = text(&checked.name);
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
            let (name, descriptor) = (text(&method.name), text(&method.descriptor));
            let mut fault =
                |what: String| faults.push(Fault { method: Some(format!("{name}{descriptor}")), offset: None, what });
            // Obfuscated names may not be Unicode; the table then holds replacements.
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

/// Modified UTF-8 (§4.4.7) to text: surrogates come in pairs of three bytes each, zero in two.
fn text(bytes: &[u8]) -> String {
    if bytes.is_ascii() {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (unit, used) = match (*first, tail) {
            (0..0x80, _) => (u16::from(*first), 1),
            (0xc0..0xe0, [second, ..]) => (u16::from(first & 0x1f) << 6 | u16::from(second & 0x3f), 2),
            (0xe0..0xf0, [second, third, ..]) => {
                (u16::from(first & 0x0f) << 12 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f), 3)
            }
            _ => (0xfffd, 1),
        };
        units.push(unit);
        rest = &rest[used..];
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_utf8_is_read() {
        assert_eq!(text(b"a/B"), "a/B");
        assert_eq!(text(&[0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80, 0xc0, 0x80]), "é€😀\0");
        assert_eq!(text(&[0xe2, 0x82]), "\u{fffd}\u{fffd}");
    }
}
