//! Names tables.

use et_names::NamesTable;
use et_trace::names::Names;
use et_trace::testing::TraceBuilder;
use et_trace::text::{Dialect, TextNames, write_names};
use et_trace::types::Types;
use et_trace::{Trace, TraceFile};

use crate::{Plain, Random, Target};

/// Names tables.
pub const TARGET: Target =
    Target { name: "names", inputs: "names", memory_ratio: 1 << 18, run, mutate: Some(mutate), mend: None };

/// Magic, version, flags, size of the body.
const HEADER: usize = 16;

fn run(data: &[u8]) {
    let Ok(table) = NamesTable::decode(data) else { return };
    let again = NamesTable::decode(&table.encode()).unwrap_or_else(|error| panic!("what was written: {error}"));
    assert!(table.encode() == again.encode(), "reading gives what was written");
    for index in 0..table.classes.len() as u32 {
        assert!(table.class(table.class_id(index)).is_some());
        assert!(table.methods_of(index).end <= table.methods.len());
        assert!(table.fields_of(index).end <= table.fields.len());
    }
    lookup(&table);
    file(&table);
}

/// Two artifacts, the second behind the first, that name each other's classes.
fn lookup(table: &NamesTable) {
    let mut other = table.clone();
    other.artifact.hash = !other.artifact.hash;
    other.artifact.base = table.artifact.base.wrapping_add(table.block().size);
    let mut types = Types::default();
    let names = Names::new(vec![table.clone(), other], &mut types);
    for table in names.tables() {
        for index in 0..table.field_refs.len() as u32 {
            let _ = names.resolve_field_ref(table.field_ref_id(index), &types);
        }
        for index in 0..table.sites.len() as u32 {
            let _ = names.site_text(table.site_id(index));
        }
    }
}

/// The names file has each class under its name.
fn file(table: &NamesTable) {
    let bytes = TraceBuilder::new().names(table).finish();
    let trace = TraceFile::from_bytes(bytes, None).and_then(Trace::from_file);
    let trace = trace.unwrap_or_else(|error| panic!("a trace with this table: {error}"));
    let mut text = Vec::new();
    write_names(&trace, Dialect::Et, None, &[], &mut text).expect("a vector takes everything");
    let names = TextNames::read(text.as_slice()).expect("a slice can be read");
    let names = names.unwrap_or_else(|line| panic!("line {line} of {}", String::from_utf8_lossy(&text)));
    for (index, class) in (0..).zip(&table.classes) {
        let name = table.str(class.name);
        let written = names.descriptor(u64::from(table.class_id(index).0));
        assert_eq!(written, Some(format!("L{name};")));
    }
}

/// Changes the body, which is compressed.
pub(crate) fn mutate(data: &[u8], _: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let size = u32::from_le_bytes(data.get(HEADER - 4..HEADER)?.try_into().ok()?) as usize;
    let mut body = zstd::bulk::decompress(&data[HEADER..], size.min(1 << 20)).ok()?;
    plain(&mut body);
    let mut out = data[..HEADER - 4].to_vec();
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend(zstd::bulk::compress(&body, 3).ok()?);
    Some(out)
}
