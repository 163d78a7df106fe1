//! Dialect `oracle`: CSV for replaying allocators, with allocations and the earliest times at which objects could be
//! freed.

use rustc_hash::FxHashMap;

use super::type_numbers::TypeNumbers;
use crate::batch::At;
use crate::record::{ObjectId, Record, ThreadId};
use crate::text::number::decimal;

/// The header line, which begins with [`starts::ORACLE`](crate::text::starts::ORACLE).
pub(super) const HEADER: &[u8] = b"timestamp,event_type,object_id,size,site_id,thread_id,type_id\n";

/// Writes row after row.
#[derive(Debug)]
pub struct Writer<'a> {
    numbers: TypeNumbers<'a>,
    /// Number of records so far, including those without a row: the time of a row is the index of its record in the
    /// trace.
    records: u64,
    /// Size, site and type of objects that have not been freed.
    objects: FxHashMap<ObjectId, (u64, u32, u64)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(numbers: TypeNumbers<'a>) -> Self {
        Self { numbers, records: 0, objects: FxHashMap::default() }
    }

    /// Appends a row if the record has one.
    pub fn push(&mut self, out: &mut Vec<u8>, record: &Record, at: &At<'_>) {
        match *record {
            Record::Alloc(alloc) => {
                let about = (alloc.size, alloc.site.0, self.numbers.number(alloc.ty, at.types));
                self.objects.insert(alloc.object, about);
                self.row(out, b"alloc", alloc.object, about, alloc.thread);
            }
            Record::Death { object, thread } => {
                if let Some(about) = self.objects.remove(&object) {
                    self.row(out, b"free", object, about, thread);
                }
            }
            Record::Update { .. }
            | Record::Entry { .. }
            | Record::Exit { .. }
            | Record::ExitThrow { .. }
            | Record::Throw { .. }
            | Record::Handle { .. }
            | Record::Use { .. } => {}
        }
        self.records += 1;
    }

    fn row(&mut self, out: &mut Vec<u8>, event: &[u8], object: ObjectId, about: (u64, u32, u64), thread: ThreadId) {
        let (size, site, ty) = about;
        decimal(out, self.records);
        out.push(b',');
        out.extend_from_slice(event);
        for number in [object.0, size, site.into(), thread.0.into(), ty] {
            out.push(b',');
            decimal(out, number);
        }
        out.push(b'\n');
    }
}
