//! Links the two parts of a class created at run time: the names table that the runtime wrote when it instrumented the
//! class, and the class record from when the class was loaded.
//!
//! Only the record has the name that the VM uses: the class file of a lambda says `Main$$Lambda` like those of all
//! other lambdas in the same class, and the VM makes `Main$$Lambda.0x00007f…` of it. The loader is also only in the
//! record.

use et_format::dynamic::DynamicClass;
use et_format::event::{ObjectHash, Ticket};
use et_names::{ArtifactKind, NamesTable};
use rustc_hash::FxHashMap;

use crate::classes::Classes;
use crate::types::class_name;

/// Origin of a table that was created at run time.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Defining loader of its class.
    pub loader: ObjectHash,
    /// For a redefined class: where its fields are listed.
    pub redefines: Option<Redefines>,
}

/// The table that a redefined class had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redefines {
    /// A table made before the run; it can only be found by the class's name.
    Artifact,
    /// A table created at run time, given by its base.
    Table(u32),
}

/// Origins of dynamic tables by their base.
pub type Origins = FxHashMap<u32, Origin>;

/// Renames the classes of dynamic tables to the names that the VM uses, and marks the classes with tables in `classes`.
pub fn link(tables: &mut [NamesTable], classes: &mut Classes, links: &[DynamicClass]) -> Origins {
    let mut origins = Origins::default();
    if links.is_empty() {
        return origins;
    }
    let dynamic = tables.iter().enumerate().filter(|(_, table)| table.artifact.kind.is_made_at_run_time());
    let by_base: FxHashMap<u32, usize> = dynamic.map(|(index, table)| (table.artifact.base, index)).collect();
    let mut first_tables = FxHashMap::default();
    for link in links {
        let (Some(&table), Some(class)) = (by_base.get(&link.class.0), classes.at(link.mirror, Ticket(u64::MAX)))
        else {
            continue;
        };
        let table = &mut tables[table];
        let record = &classes.get(class).record;
        let base = table.artifact.base;
        let redefines = (table.artifact.kind == ArtifactKind::Redefined)
            .then(|| first_tables.get(&class).map_or(Redefines::Artifact, |first| Redefines::Table(*first)));
        origins.insert(base, Origin { loader: record.loader, redefines });
        // A table without classes only lists fields that native code stores to.
        if let Some(own) = table.classes.first() {
            if redefines.is_none() {
                first_tables.entry(class).or_insert(base);
            }
            if let Some(name) = class_name(&record.signature).filter(|name| table.str(own.name) != *name) {
                table.rename_class(0, name);
            }
            classes.has_table(class);
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    use et_names::{ArtifactKind, ClassNames, DYNAMIC_BASE as BASE, FieldId, FieldRefId, MethodId, SiteId};

    use crate::file::TraceFile;
    use crate::testing::{ClassNamesExt, TraceBuilder, class, table};
    use crate::trace::Trace;
    use et_format::event::{Event, ObjectHash, Ticket};
    use et_format::{ClassRecord, class_flags};

    fn trace(build: impl FnOnce(&mut TraceBuilder)) -> Trace {
        let mut builder = TraceBuilder::new();
        builder.names(&table("jdk", 1, &[class("java/lang/Object", "", &["<init> ()V"])]));
        record(&mut builder, 0x10, 0, "Ljava/lang/Object;", 0);
        build(&mut builder);
        let file = TraceFile::from_bytes(builder.finish(), None).unwrap();
        Trace::from_file(file).unwrap()
    }

    fn record(builder: &mut TraceBuilder, mirror: u32, loader: u32, signature: &str, flags: u32) {
        builder.class(&ClassRecord {
            ticket: Ticket(0),
            class: ObjectHash(mirror),
            superclass: ObjectHash(if mirror == 0x10 { 0 } else { 0x10 }),
            loader: ObjectHash(loader),
            instance_size: 16,
            flags,
            signature: signature.into(),
            ..ClassRecord::default()
        });
    }

    fn of(text: &str) -> ClassNames {
        class(text, "java/lang/Object", &["<init> ()V"])
    }

    /// The records of a trace as text.
    fn records(trace: &Trace) -> Vec<String> {
        let mut text = Vec::new();
        let outcome = trace.for_each(|record, _| {
            crate::text::push_record(&mut text, record, &trace.types);
            text.push(b'\n');
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(outcome.unwrap().anomalies.iter().count(), 0);
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn hidden_classes_of_one_class_file_name_keep_apart() {
        let lambda = || of("a/Main$$Lambda").with_fields(&["arg Ljava/lang/String;"]);
        let own = || lambda().with_sites(&[(0, "La/Main$$Lambda;", 1), (0, "[La/Main$$Lambda;", 1)]);
        let trace = trace(|builder| {
            builder.names(&table("one", BASE, &[own()])).names(&table("two", BASE + 2, &[own()]));
            record(builder, 0x11, 7, "La/Main$$Lambda.0x1;", class_flags::HIDDEN);
            record(builder, 0x12, 7, "La/Main$$Lambda.0x2;", class_flags::HIDDEN);
            record(builder, 0x13, 7, "La/Main$$Lambda.0x3;", class_flags::HIDDEN);
            builder.dynamic_classes(&[(0x12, BASE + 2), (0x11, BASE), (0x999, BASE), (0x11, 5)]);
            builder.first_thread(1, "main", Vec::new());
            let events = [
                Event::Entry { method: MethodId(BASE + 2) },
                Event::New { site: SiteId(BASE + 2), object: ObjectHash(0xa), class: ObjectHash(0x12), known: false },
                Event::PutField {
                    field: FieldRefId(BASE + 2),
                    origin: ObjectHash(0xa),
                    target: ObjectHash(0x10),
                    if_changed: false,
                },
                Event::Exit { method: MethodId(BASE + 2) },
            ];
            builder.events(1, 1, &events);
        });
        let types = &trace.types;
        let ty = |text| types.get(text).unwrap();
        assert_eq!(trace.names.site_type(SiteId(BASE), 0), types.get("La/Main$$Lambda.0x1;"));
        assert_eq!(trace.names.site_type(SiteId(BASE + 3), 0), types.get("[La/Main$$Lambda.0x2;"));
        assert_eq!(trace.names.method_info(MethodId(BASE + 2)).unwrap().class, ty("La/Main$$Lambda.0x2;"));
        assert_eq!(trace.names.resolve_field_ref(FieldRefId(BASE), types), Some(FieldId(BASE)));
        assert_eq!(trace.names.resolve_field_ref(FieldRefId(BASE + 2), types), Some(FieldId(BASE + 2)));
        let without: Vec<&str> = trace.not_instrumented().map(|class| class.record.signature.as_str()).collect();
        assert_eq!(without, ["La/Main$$Lambda.0x3;"]);
        let text = records(&trace);
        let found = |start: &str| text.iter().any(|line| line.starts_with(start));
        // The constructor belongs to the new object, which has the name of its class and a site.
        assert!(found(&format!("N a 10 La/Main$$Lambda.0x2; {:x} 0 1", BASE + 2)), "{text:#?}");
        assert!(found(&format!("M {:x} a 1", BASE + 2)), "{text:#?}");
    }

    #[test]
    fn classes_of_one_name_in_two_loaders_have_fields_of_their_own() {
        let node = || of("a/Node").with_fields(&["next La/Node;"]);
        let user = || {
            let mut user = of("a/User");
            user.field_refs = node().field_refs;
            user
        };
        let trace = trace(|builder| {
            for (at, loader) in [(0, 7), (10, 8)] {
                builder.names(&table("node", BASE + at, &[node()])).names(&table("user", BASE + at + 5, &[user()]));
                record(builder, 0x20 + at, loader, "La/Node;", 0);
                record(builder, 0x21 + at, loader, "La/User;", 0);
                builder.dynamic_classes(&[(0x20 + at, BASE + at), (0x21 + at, BASE + at + 5)]);
            }
            // A third loader's class, which has no table.
            record(builder, 0x50, 9, "La/Node;", 0);
        });
        let field = |id| trace.names.resolve_field_ref(FieldRefId(id), &trace.types);
        assert_eq!(field(BASE + 5), Some(FieldId(BASE)));
        assert_eq!(field(BASE + 15), Some(FieldId(BASE + 10)));
        let without: Vec<u32> = trace.not_instrumented().map(|class| class.record.class.0).collect();
        assert_eq!(without, [0x50]);
    }

    #[test]
    fn a_redefined_class_keeps_its_fields() {
        let node = || of("a/Node").with_fields(&["next La/Node;"]);
        let redefined = |base| {
            let mut table = table("a/Node", base, &[node()]);
            table.artifact.kind = ArtifactKind::Redefined;
            table
        };
        let trace = trace(|builder| {
            // One instrumented before the run, and one created by a loader.
            builder.names(&table("app", 100, &[node()]));
            builder.names(&table("a/Node", BASE, &[node()]));
            builder.names(&redefined(BASE + 10)).names(&redefined(BASE + 20)).names(&redefined(BASE + 30));
            record(builder, 0x20, 7, "La/Node;", 0);
            record(builder, 0x21, 8, "La/Node;", 0);
            builder.dynamic_classes(&[(0x21, BASE), (0x20, BASE + 10), (0x21, BASE + 20), (0x21, BASE + 30)]);
        });
        let field = |id| trace.names.resolve_field_ref(FieldRefId(id), &trace.types);
        assert_eq!([100, BASE + 10].map(field), [Some(FieldId(100)); 2]);
        assert_eq!([BASE, BASE + 20, BASE + 30].map(field), [Some(FieldId(BASE)); 3]);
        assert_eq!(trace.not_instrumented().count(), 0);
    }

    #[test]
    fn a_table_whose_class_was_never_defined_does_no_harm() {
        let trace = trace(|builder| {
            builder.names(&table("one", BASE, &[of("a/B")])).dynamic_classes(&[(0x77, BASE)]);
        });
        assert_eq!(trace.not_instrumented().count(), 0);
    }
}
