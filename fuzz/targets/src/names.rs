//! Names tables.

use et_names::NamesTable;

use crate::{Plain, Random, Target};

/// Names tables.
pub const TARGET: Target = Target { name: "names", memory_ratio: 1 << 18, run, mutate: Some(mutate) };

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
