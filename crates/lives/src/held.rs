//! The table of what is alive at the end only because methods that have not returned hold it.

use std::fs::File;
use std::io;

use et_columns::{TableReader, TableWriter, Written};
use et_names::MethodId;
use et_reader::lifetimes::HeldByStack;
use et_reader::model::OnStack;
use et_reader::record::{ObjectId, ThreadId};

use crate::known::{number32, unsigned};
use crate::tables::held;

/// Writes one row per object; the rows of a holder are adjacent.
pub fn write(file: File, all: &[HeldByStack]) -> io::Result<Written> {
    let mut writer = TableWriter::<held::Rows>::new(file);
    for (by, object) in all.iter().flat_map(|held| held.objects.iter().map(move |object| (held.by, object))) {
        writer.push(held::Row {
            object: object.0.cast_signed(),
            holder: by.object.0.cast_signed(),
            thread: by.thread.0.into(),
            method: by.method.0.into(),
            is_in_flight: by.is_in_flight,
        });
    }
    writer.finish()
}

/// Reads what [`write()`] wrote.
pub fn read(file: File) -> io::Result<Vec<HeldByStack>> {
    let table = TableReader::open(file)?;
    let mut all: Vec<HeldByStack> = Vec::new();
    for group in 0..table.groups() {
        let column = |name| table.numbers(group, name);
        let (objects, holders) = (column("object")?, column("holder")?);
        let (threads, methods) = (column("thread")?, column("method")?);
        let in_flight = table.flags(group, "is_in_flight")?;
        for (row, object) in objects.into_iter().enumerate() {
            let by = OnStack {
                thread: ThreadId(number32(threads[row])?),
                method: MethodId(number32(methods[row])?),
                object: ObjectId(unsigned(holders[row])?),
                is_in_flight: in_flight[row] == Some(true),
            };
            let object = ObjectId(unsigned(object)?);
            match all.last_mut().filter(|last| last.by == by) {
                Some(last) => last.objects.push(object),
                None => all.push(HeldByStack { by, objects: vec![object] }),
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let held = |object, objects: &[u64], is_in_flight| HeldByStack {
            by: OnStack { thread: ThreadId(7), method: MethodId(1), object: ObjectId(object), is_in_flight },
            objects: objects.iter().copied().map(ObjectId).collect(),
        };
        let all = [held(1, &[1, 1 << 62], false), held(5, &[5, 4], true), held(9, &[9], true)];
        let file = tempfile::tempfile().unwrap();
        write(file.try_clone().unwrap(), &all).unwrap();
        assert_eq!(read(file).unwrap(), all);
        let none = tempfile::tempfile().unwrap();
        write(none.try_clone().unwrap(), &[]).unwrap();
        assert_eq!(read(none).unwrap(), []);
    }
}
