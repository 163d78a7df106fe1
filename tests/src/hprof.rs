//! Heap dumps as the crate `jvm-hprof` reads them: what there is, counted.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use jvm_hprof::heap_dump::{FieldDescriptor, FieldValue, SubRecord};
use jvm_hprof::{Hprof, parse_hprof};

/// Contents of a heap dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instances and arrays, by class as Java source writes it.
    pub objects: BTreeMap<String, u64>,
    pub classes: u64,
    /// Slots of instances, arrays and classes that hold something.
    pub references: u64,
}

struct Class {
    name: String,
    above: Option<u64>,
    fields: Vec<FieldDescriptor>,
}

fn wrong<T, E: std::fmt::Debug>(result: Result<T, E>) -> Result<T> {
    result.map_err(|error| anyhow!("not a heap dump that jvm-hprof reads: {:.200}", format!("{error:?}")))
}

/// Counts what is in a heap dump.
pub fn count(path: &Path) -> Result<Counts> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let hprof = wrong(parse_hprof(&bytes))?;
    let size = hprof.header().id_size();
    let classes = classes(&hprof)?;
    let name = |class: u64| classes.get(&class).map_or_else(|| format!("class {class:x}"), |class| class.name.clone());
    let mut objects: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |class: String| *objects.entry(class).or_default() += 1;
    let (mut class_count, mut references) = (0, 0);
    each(&hprof, |sub| {
        match sub {
            SubRecord::Class(class) => {
                class_count += 1;
                let values = class.static_fields().filter_map(Result::ok).map(|field| field.value());
                references += values.filter(|value| matches!(value, FieldValue::ObjectId(Some(_)))).count() as u64;
            }
            SubRecord::Instance(instance) => {
                let (mut rest, mut at) = (*instance.fields(), Some(instance.class_obj_id().id()));
                add(name(instance.class_obj_id().id()));
                while let Some(class) = at.and_then(|at| classes.get(&at)) {
                    for field in &class.fields {
                        let (left, value) = wrong(field.field_type().parse_value(rest, size))?;
                        rest = left;
                        references += u64::from(matches!(value, FieldValue::ObjectId(Some(_))));
                    }
                    at = class.above;
                }
            }
            SubRecord::ObjectArray(array) => {
                add(name(array.array_class_obj_id().id()));
                references += array.elements(size).filter(|element| matches!(element, Ok(Some(_)))).count() as u64;
            }
            SubRecord::PrimitiveArray(array) => add(format!("{}[]", array.primitive_type().java_type_name())),
            _ => {}
        }
        Ok(())
    })?;
    Ok(Counts { objects, classes: class_count, references })
}

/// Goes through the parts of the heap dump.
fn each<'a>(hprof: &Hprof<'a>, mut visit: impl FnMut(SubRecord<'a>) -> Result<()>) -> Result<()> {
    for record in hprof.records_iter() {
        let record = wrong(record)?;
        if let Some(segment) = record.as_heap_dump_segment() {
            for sub in wrong(segment)?.sub_records() {
                visit(wrong(sub)?)?;
            }
        }
    }
    Ok(())
}

fn classes(hprof: &Hprof<'_>) -> Result<HashMap<u64, Class>> {
    let (mut texts, mut names) = (HashMap::new(), HashMap::new());
    for record in hprof.records_iter() {
        let record = wrong(record)?;
        if let Some(utf8) = record.as_utf_8() {
            let utf8 = wrong(utf8)?;
            texts.insert(utf8.name_id().id(), utf8.text_as_str().unwrap_or_default().to_owned());
        }
        if let Some(class) = record.as_load_class() {
            let class = wrong(class)?;
            names.insert(class.class_obj_id().id(), class.class_name_id().id());
        }
    }
    let mut classes = HashMap::new();
    each(hprof, |sub| {
        if let SubRecord::Class(class) = sub {
            let id = class.obj_id().id();
            let name = names.get(&id).and_then(|name| texts.get(name)).cloned().unwrap_or_default();
            let fields = class.instance_field_descriptors().map(wrong).collect::<Result<_>>()?;
            let above = class.super_class_obj_id().map(|above| above.id());
            classes.insert(id, Class { name: for_people(&name), above, fields });
        }
        Ok(())
    })?;
    Ok(classes)
}

/// `java.lang.String[]` of `[Ljava/lang/String;`.
fn for_people(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let element = match (dimensions, element) {
        (0, class) => class,
        (_, "Z") => "boolean",
        (_, "B") => "byte",
        (_, "C") => "char",
        (_, "S") => "short",
        (_, "I") => "int",
        (_, "J") => "long",
        (_, "F") => "float",
        (_, "D") => "double",
        (_, class) => class.trim_start_matches('L').trim_end_matches(';'),
    };
    element.replace('/', ".") + &"[]".repeat(dimensions)
}
