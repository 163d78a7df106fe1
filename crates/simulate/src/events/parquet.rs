//! Events as a Parquet table, with the columns of the CSV.

use std::fs::File;
use std::io;

use et_columns::{ByteArray, TableWriter, Word};

use super::{ArenaId, Event, Sink, array_kind};
use crate::ops::Tables;

mod table {
    use et_columns::{ByteArray, Word};

    et_columns::table! {
        /// One row per event.
        "events", "as they happen", Some("operation"), {
            /// The operation during which it happens.
            operation: i64 as Dictionary,
            /// What happens.
            event: Word as Dictionary,
            /// The arena.
            arena: i64 as Dictionary,
            /// The object's address.
            object: Option<i64> as Dictionary,
            /// Name of the arena, or of the object's class.
            name: Option<ByteArray> as Dictionary,
            /// JVMPI's kind of array.
            array: Option<i64> as Dictionary,
            /// Bytes.
            size: Option<i64> as Dictionary,
            /// The arena that it moves to.
            new_arena: Option<i64> as Dictionary,
            /// Its new address.
            new_object: Option<i64> as Dictionary,
        }
    }
}

/// Name of the table.
pub const PARQUET_NAME: &str = table::TABLE.name;

/// Writes one row per event, on a separate thread.
#[derive(Debug)]
pub struct ParquetWriter {
    /// By class: its name and its `is_array` value.
    classes: Vec<(ByteArray, u8)>,
    writer: TableWriter<table::Rows>,
}

/// Columns that only some events have.
#[derive(Default)]
struct More {
    object: Option<u64>,
    name: Option<ByteArray>,
    array: Option<u8>,
    size: Option<u64>,
    new: Option<(ArenaId, u64)>,
}

/// Addresses and sizes of simulated heaps are far below 2^63.
fn signed(number: u64) -> i64 {
    number as i64
}

impl ParquetWriter {
    /// Begins the table.
    pub fn new(file: File, tables: &Tables) -> Self {
        let name = |descriptor: &str| ByteArray::from(et_reader::types::for_people(descriptor).as_str());
        let classes = tables.classes.iter().map(|class| (name(&class.descriptor), array_kind(class))).collect();
        Self { classes, writer: TableWriter::new(file) }
    }
}

impl Sink for ParquetWriter {
    fn push(&mut self, operation: u64, event: &Event) {
        let (kind, arena, more) = match *event {
            Event::NewArena { arena, name } => {
                ("new_arena", arena, More { name: Some(name.into()), ..More::default() })
            }
            Event::DeleteArena { arena } => ("delete_arena", arena, More::default()),
            Event::NewObject { arena, object, class, size } => {
                let class = self.classes.get(class as usize);
                let (name, array) = (class.map(|(name, _)| name.clone()), class.map(|&(_, array)| array));
                let more = More { object: Some(object), name, array, size: Some(size), new: None };
                ("new_object", arena, more)
            }
            Event::DeleteObject { arena, object } => {
                ("delete_object", arena, More { object: Some(object), ..More::default() })
            }
            Event::MoveObject { arena, object, new_arena, new_object } => {
                let new = Some((new_arena, new_object));
                ("move_object", arena, More { object: Some(object), new, ..More::default() })
            }
        };
        self.writer.push(table::Row {
            operation: signed(operation),
            event: Word(kind),
            arena: arena.0.into(),
            object: more.object.map(signed),
            name: more.name,
            array: more.array.map(i64::from),
            size: more.size.map(signed),
            new_arena: more.new.map(|(arena, _)| arena.0.into()),
            new_object: more.new.map(|(_, object)| signed(object)),
        });
    }

    fn is_well(&self) -> bool {
        !self.writer.has_failed()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.writer.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CSV_HEADER;
    use super::super::CsvWriter;
    use super::*;
    use crate::testing::classes;
    use et_columns::{GROUP, TableReader};

    #[test]
    fn rows_are_those_of_the_text() {
        let tables = Tables { classes: classes(), ..Tables::default() };
        let file = tempfile::tempfile().unwrap();
        let mut writer = Box::new(ParquetWriter::new(file.try_clone().unwrap(), &tables));
        let (one, two) = (ArenaId(1), ArenaId(2));
        writer.push(0, &Event::NewArena { arena: one, name: "heap" });
        // More rows than one row group.
        for object in 0..GROUP as u64 {
            writer.push(3, &Event::NewObject { arena: one, object: 16 * object, class: 2, size: 24 });
        }
        writer.push(4, &Event::MoveObject { arena: one, object: 32, new_arena: two, new_object: 64 });
        writer.push(5, &Event::DeleteObject { arena: two, object: 64 });
        writer.push(6, &Event::DeleteArena { arena: one });
        assert!(writer.is_well());
        writer.finish().unwrap();
        let reader = TableReader::open(file).unwrap();
        assert_eq!((reader.name(), reader.groups(), reader.rows()), (PARQUET_NAME, 2, GROUP as i64 + 4));
        let columns: Vec<&str> = table::TABLE.columns.iter().map(|column| column.name).collect();
        assert_eq!(columns.join(","), CSV_HEADER);
        let texts = |group, column| -> Vec<Option<String>> { reader.texts(group, column).unwrap() };
        let first = (&texts(0, "event")[..2], &texts(0, "name")[..2]);
        assert_eq!(first.0, [Some("new_arena".to_owned()), Some("new_object".to_owned())]);
        assert_eq!(first.1, [Some("heap".to_owned()), Some("byte[]".to_owned())]);
        assert_eq!(reader.numbers(0, "array").unwrap()[..2], [None, Some(8)]);
        assert_eq!(reader.numbers(0, "size").unwrap()[..2], [None, Some(24)]);
        let last = ["operation", "arena", "object", "new_arena", "new_object"]
            .map(|column| reader.numbers(1, column).unwrap()[1..].to_vec());
        assert_eq!(last[0], [Some(4), Some(5), Some(6)]);
        assert_eq!(last[1], [Some(1), Some(2), Some(1)]);
        assert_eq!(last[2], [Some(32), Some(64), None]);
        assert_eq!(last[3], [Some(2), None, None]);
        assert_eq!(last[4], [Some(64), None, None]);
    }

    /// Every kind of event, in more than one row group.
    #[test]
    fn each_cell_is_that_of_the_text() {
        let tables = Tables { classes: classes(), ..Tables::default() };
        let file = tempfile::tempfile().unwrap();
        let mut table = Box::new(ParquetWriter::new(file.try_clone().unwrap(), &tables));
        let mut text = CsvWriter::new(Vec::new(), &tables);
        let count = GROUP as u64 + 1000;
        for operation in 0..count {
            let (arena, object) = (ArenaId((operation % 3) as u32), operation.wrapping_mul(0x9e37_79b9) % (1 << 40));
            let event = match operation % 7 {
                0 => Event::NewArena { arena, name: ["nursery", "old", "heap"][operation as usize % 3] },
                1 => Event::DeleteArena { arena },
                2 => Event::DeleteObject { arena, object },
                3 => Event::MoveObject { arena, object, new_arena: ArenaId(9), new_object: operation },
                _ => {
                    let class = (operation % tables.classes.len() as u64) as u32;
                    Event::NewObject { arena, object, class, size: object % 1000 + 8 }
                }
            };
            table.push(operation, &event);
            text.push(operation, &event);
        }
        table.finish().unwrap();
        let reader = TableReader::open(file).unwrap();
        let columns: Vec<Vec<String>> = CSV_HEADER
            .split(',')
            .map(|column| {
                let cells = |group| -> Vec<String> {
                    if column == "event" || column == "name" {
                        return reader
                            .texts(group, column)
                            .unwrap()
                            .into_iter()
                            .map(Option::unwrap_or_default)
                            .collect();
                    }
                    let numbers = reader.numbers(group, column).unwrap().into_iter();
                    numbers.map(|number| number.map(|number| number.to_string()).unwrap_or_default()).collect()
                };
                (0..reader.groups()).flat_map(cells).collect()
            })
            .collect();
        let text = String::from_utf8(text.into_inner().unwrap()).unwrap();
        let mut rows = 0;
        for (row, line) in text.lines().skip(1).enumerate() {
            assert_eq!(columns.iter().map(|column| &*column[row]).collect::<Vec<_>>().join(","), line);
            rows += 1;
        }
        assert_eq!((rows, columns[0].len() as u64), (count, count));
    }
}
