//! The meaning of the ids in records, for trace files and texts alike.

use et_names::{Class, FieldId, MethodId, NamesTable, SiteId};
use rustc_hash::FxHashMap;

use crate::names::Names;
use crate::source::Source;
use crate::text::TextNames;
use crate::trace::Trace;
use crate::types::Types;

/// Display names. An unknown id is displayed as a number.
#[derive(Clone, Copy, Debug)]
pub struct Naming<'a>(Of<'a>);

#[derive(Clone, Copy, Debug)]
enum Of<'a> {
    Trace(&'a Names, &'a Types),
    /// `None` without a names file.
    Text(Option<&'a TextNames>),
}

/// A place in the source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Path of the source file, `java/util/HashMap.java`; empty if unknown.
    pub file: String,
    /// The first line; 0 if unknown.
    pub line: u32,
}

/// The name of a method in its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodName {
    /// Internal name of the class that declares it; empty if unknown.
    pub class: String,
    /// `<init>` for a constructor.
    pub name: String,
    /// Its descriptor (JVMS §4.3.3); `()V` if unknown, as in a text.
    pub descriptor: String,
    /// `access_flags` (JVMS §4.6); 0 if unknown.
    pub access: u16,
}

impl Trace {
    /// Returns the names of its ids.
    pub fn naming(&self) -> Naming<'_> {
        Naming(Of::Trace(&self.names, &self.types))
    }
}

impl Source {
    /// Returns the names of the trace's ids.
    pub fn naming(&self) -> Naming<'_> {
        Naming(match self {
            Self::Trace(trace) => return trace.naming(),
            Self::Text(text) => Of::Text(text.names()),
        })
    }
}

impl<'a> Naming<'a> {
    /// Whether there are names at all: a text without a names file has none.
    pub fn is_known(&self) -> bool {
        !matches!(self.0, Of::Text(None))
    }

    /// Display name of a method: `java.util.HashMap.put`.
    pub fn method(&self, id: MethodId) -> String {
        match self.0 {
            Of::Trace(names, _) => Some(names.method_text(id)),
            Of::Text(names) => names.and_then(|names| names.method_text(id.0.into())).map(str::to_owned),
        }
        .unwrap_or_else(|| format!("method {:x}", id.0))
    }

    /// Display name of a site: `java.util.HashMap.put:123`.
    pub fn site(&self, id: SiteId) -> String {
        match self.0 {
            Of::Trace(names, _) => Some(names.site_text(id)),
            Of::Text(names) => names.and_then(|names| names.site_text(id.0.into())),
        }
        .unwrap_or_else(|| format!("site {:x}", id.0))
    }

    /// Whether the type of a field is an array of references; `None` if unknown.
    pub fn is_array_field(&self, id: FieldId) -> Option<bool> {
        let Of::Trace(names, _) = self.0 else { return None };
        let (table, field) = names.field(id)?;
        let descriptor = table.str(field.descriptor);
        Some(descriptor.starts_with("[[") || descriptor.starts_with("[L"))
    }

    /// Display name of a field: `java.util.HashMap.table`.
    pub fn field(&self, id: FieldId) -> String {
        match self.0 {
            Of::Trace(names, _) => names.field(id).map(|(table, field)| {
                let class = table.str(table.classes[field.class as usize].name).replace('/', ".");
                format!("{class}.{}", table.str(field.name))
            }),
            Of::Text(names) => names.and_then(|names| names.field_text(id.0.into())).map(str::to_owned),
        }
        .unwrap_or_else(|| format!("field {:x}", id.0))
    }

    /// Internal name of the class that declares a method.
    pub fn class_of_method(&self, id: MethodId) -> Option<String> {
        match self.0 {
            Of::Trace(names, _) => {
                let (table, method) = names.method(id)?;
                Some(table.str(table.classes[method.class as usize].name).to_owned())
            }
            Of::Text(names) => {
                let (class, _) = names?.method_text(id.0.into())?.rsplit_once('.')?;
                Some(class.replace('.', "/"))
            }
        }
    }

    /// The name of a method in its parts.
    pub fn name_of_method(&self, id: MethodId) -> MethodName {
        if let Of::Trace(names, _) = self.0
            && let Some((table, method)) = names.method(id)
        {
            let class = table.str(table.classes[method.class as usize].name).to_owned();
            let (name, descriptor) = (table.str(method.name).to_owned(), table.str(method.descriptor).to_owned());
            return MethodName { class, name, descriptor, access: method.access };
        }
        let text = self.method(id);
        let (class, name) = text.rsplit_once('.').unwrap_or(("", &text));
        let class = class.replace('.', "/");
        MethodName { class, name: name.to_owned(), descriptor: "()V".to_owned(), access: 0 }
    }

    /// The method that contains a site.
    pub fn method_of_site(&self, id: SiteId) -> Option<MethodId> {
        match self.0 {
            Of::Trace(names, _) => names.site(id).map(|(table, site)| table.method_id(site.method)),
            Of::Text(names) => u32::try_from(names?.site_method(id.0.into())?).ok().map(MethodId),
        }
    }

    /// Source location of a method; `None` if unknown, as in a text.
    pub fn code_of_method(&self, id: MethodId) -> Option<Code> {
        let Of::Trace(names, _) = self.0 else { return None };
        let (table, method) = names.method(id)?;
        let class = &table.classes[method.class as usize];
        Some(Code { file: source_file(table, class).unwrap_or_default(), line: method.line })
    }

    /// The source files of classes, by the names that classes have in the names of sites: `shop/Cart.java` of `shop.Cart$Item`. Of a
    /// text nothing is known.
    pub fn source_files(&self) -> FxHashMap<String, String> {
        let Of::Trace(names, _) = self.0 else { return FxHashMap::default() };
        let classes = names.tables().flat_map(|table| table.classes.iter().map(move |class| (table, class)));
        let named = |(table, class): (&NamesTable, &Class)| {
            Some((table.str(class.name).replace('/', "."), source_file(table, class)?))
        };
        classes.filter_map(named).collect()
    }

    /// Source line of a site, if it is known.
    pub fn line_of_site(&self, id: SiteId) -> Option<u32> {
        match self.0 {
            Of::Trace(names, _) => names.site(id).map(|(_, site)| site.line),
            // Display names end with the line.
            Of::Text(names) => names?.site_text(id.0.into())?.rsplit_once(':')?.1.parse().ok(),
        }
        .filter(|&line| line > 0)
    }

    /// Descriptor of what a site allocates; for a `multianewarray`, that of the outermost array.
    pub fn type_of_site(&self, id: SiteId) -> Option<&'a str> {
        match self.0 {
            Of::Trace(names, types) => names.site_type(id, 0).map(|ty| types.descriptor(ty)),
            Of::Text(names) => names?.site_type(id.0.into()),
        }
    }
}

/// Path of the source file of a class, if the class file names one (JVMS §4.7.10): its package, and the name there.
fn source_file(table: &NamesTable, class: &Class) -> Option<String> {
    let file = Some(table.str(class.source_file)).filter(|file| !file.is_empty())?;
    Some(match table.str(class.name).rsplit_once('/') {
        Some((package, _)) => format!("{package}/{file}"),
        None => file.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceFile;
    use crate::testing::{ClassNamesExt, TraceBuilder, class, table};
    use crate::text::{Dialect, TextTrace, write_names};
    use crate::trace::Trace;

    /// A text with the names file of a trace has the same display names as the trace.
    #[test]
    fn a_text_names_what_its_trace_names() {
        let mut builder = TraceBuilder::new();
        let thing = class("shop/Thing", "java/lang/Object", &["<init> ()V", "sell ()V"])
            .with_fields(&["next Lshop/Thing;", "static all [Lshop/Thing;"])
            .with_sites(&[(1, "Lshop/Thing;", 5), (1, "[I", 0)]);
        builder.names(&table("jdk", 1, &[class("java/lang/Object", "", &["<init> ()V"])]));
        builder.names(&table("app.jar", 1000, &[thing]));
        let trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
        let mut file = Vec::new();
        write_names(&trace, Dialect::Et, None, &[], &mut file).unwrap();
        let names = TextNames::read(file.as_slice()).unwrap().unwrap();
        let text = Source::from(TextTrace::from_text("", Some(names)));
        let trace = Source::from(trace);
        let (of_trace, of_text) = (trace.naming(), text.naming());
        assert!(of_trace.is_known() && of_text.is_known());
        let Source::Trace(known) = &trace else { unreachable!() };
        let mut named = 0;
        for table in known.names.tables() {
            for id in (0..table.methods.len() as u32).map(|index| table.method_id(index)) {
                assert_eq!(of_text.method(id), of_trace.method(id));
                assert_eq!(of_text.class_of_method(id), of_trace.class_of_method(id));
                named += 1;
            }
            for id in (0..table.sites.len() as u32).map(|index| table.site_id(index)) {
                assert_eq!(of_text.site(id), of_trace.site(id));
                assert_eq!(of_text.method_of_site(id), of_trace.method_of_site(id));
                assert_eq!(of_text.type_of_site(id), of_trace.type_of_site(id));
                named += 1;
            }
            for id in (0..table.fields.len() as u32).map(|index| table.field_id(index)) {
                assert_eq!(of_text.field(id), of_trace.field(id));
                named += 1;
            }
        }
        assert!(named > 5, "{named} names");
    }

    #[test]
    fn without_names_there_are_numbers() {
        let text = Source::from(TextTrace::from_text("", None));
        let naming = text.naming();
        assert!(!naming.is_known());
        let texts = [naming.method(MethodId(26)), naming.site(SiteId(27)), naming.field(FieldId(28))];
        assert_eq!(texts, ["method 1a", "site 1b", "field 1c"]);
    }
}
