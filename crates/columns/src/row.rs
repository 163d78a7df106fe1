//! Rows of tables. A table is declared once, which defines its rows, columns and documentation.

use std::fmt::Debug;

use bytes::Bytes;
use parquet::data_type::ByteArray;

use crate::schema::{Table, Type};

/// Values of a column without nulls; definition levels say which rows have one.
#[derive(Debug)]
pub enum Values {
    Long(Vec<i64>, Option<Vec<i16>>),
    Double(Vec<f64>, Option<Vec<i16>>),
    Flag(Vec<bool>, Option<Vec<i16>>),
    Text(Vec<ByteArray>, Option<Vec<i16>>),
}

impl Values {
    /// Clears the values but keeps the memory.
    pub fn clear(&mut self) {
        let levels = match self {
            Self::Long(values, levels) => (values.clear(), levels).1,
            Self::Double(values, levels) => (values.clear(), levels).1,
            Self::Flag(values, levels) => (values.clear(), levels).1,
            Self::Text(values, levels) => (values.clear(), levels).1,
        };
        levels.iter_mut().for_each(Vec::clear);
    }
}

/// A constant string, which is not copied for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub &'static str);

/// A type that a cell of a row can have.
pub trait Cell {
    /// Type that collects the values of a column until they are written.
    type Kept: Default + Debug + Send;
    /// Type of the column.
    const TYPE: Type;
    /// Whether the column may contain nulls.
    const IS_NULLABLE: bool;
    /// Appends the value to a column.
    fn put(self, kept: &mut Self::Kept);
    /// Converts the collected values to a column.
    fn values(kept: Self::Kept) -> Values;
    /// Reuses the memory of a column that has been written and cleared.
    fn reuse(values: Option<Values>) -> Self::Kept;
}

/// Collected values of a nullable column.
#[derive(Debug)]
pub struct Maybe<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self { values: Vec::new(), levels: Vec::new() }
    }
}

macro_rules! cell {
    ($ty:ty, $kept:ty, $kind:ident, $convert:expr) => {
        impl Cell for $ty {
            type Kept = Vec<$kept>;
            const TYPE: Type = Type::$kind;
            const IS_NULLABLE: bool = false;

            #[inline]
            fn put(self, kept: &mut Self::Kept) {
                kept.push($convert(self));
            }

            fn values(kept: Self::Kept) -> Values {
                Values::$kind(kept, None)
            }

            fn reuse(values: Option<Values>) -> Self::Kept {
                let Some(Values::$kind(kept, None)) = values else { return Vec::new() };
                kept
            }
        }

        impl Cell for Option<$ty> {
            type Kept = Maybe<$kept>;
            const TYPE: Type = Type::$kind;
            const IS_NULLABLE: bool = true;

            #[inline]
            fn put(self, kept: &mut Self::Kept) {
                kept.levels.push(i16::from(self.is_some()));
                if let Some(value) = self {
                    kept.values.push($convert(value));
                }
            }

            fn values(kept: Self::Kept) -> Values {
                Values::$kind(kept.values, Some(kept.levels))
            }

            fn reuse(values: Option<Values>) -> Self::Kept {
                let Some(Values::$kind(values, Some(levels))) = values else { return Maybe::default() };
                Maybe { values, levels }
            }
        }
    };
}

cell!(i64, i64, Long, std::convert::identity);
cell!(f64, f64, Double, std::convert::identity);
cell!(bool, bool, Flag, std::convert::identity);
cell!(String, ByteArray, Text, |text: String| ByteArray::from(text.into_bytes()));
cell!(ByteArray, ByteArray, Text, std::convert::identity);
cell!(Word, ByteArray, Text, |word: Word| ByteArray::from(Bytes::from_static(word.0.as_bytes())));

/// Rows collected until they are written.
pub trait Rows: Default + Debug {
    type Row;
    /// The table that the rows belong to.
    const TABLE: &'static Table;
    fn push(&mut self, row: Self::Row);
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Converts the rows to columns.
    fn values(self) -> Vec<Values>;
    /// Creates an empty instance that reuses the memory of written columns.
    fn reuse(values: Vec<Values>) -> Self;
}

/// Declares a table: `TABLE`, its `Row` type and `Rows`, which collects rows. The schema of the file, the order of its columns, their encodings and the
/// documentation come from this one declaration.
///
/// ```
/// et_columns::table! {
///     /// One row per class.
///     "classes", "by number", Some("class"), {
///         /// Its number.
///         class: i64 as Delta,
///         /// Its name; null if it has none.
///         name: Option<String> as Dictionary,
///     }
/// }
/// assert_eq!(TABLE.columns[1].name, "name");
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $name:literal, $order:literal, $sorted_by:expr, {
            $($(#[doc = $about:literal])+ $column:ident: $ty:ty as $packing:ident,)+
        }
    ) => {
        /// The table with its columns and their documentation.
        pub const TABLE: $crate::Table = $crate::Table {
            name: $name,
            about: concat!($($doc),+),
            order: $order,
            sorted_by: $sorted_by,
            columns: &[
                $($crate::Column {
                    name: stringify!($column),
                    ty: <$ty as $crate::Cell>::TYPE,
                    is_nullable: <$ty as $crate::Cell>::IS_NULLABLE,
                    packing: $crate::Packing::$packing,
                    about: concat!($($about),+),
                },)+
            ],
        };

        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct Row {
            $($(#[doc = $about])+ pub $column: $ty,)+
        }

        /// Rows collected until they are written.
        #[derive(Debug, Default)]
        pub struct Rows {
            len: usize,
            $($column: <$ty as $crate::Cell>::Kept,)+
        }

        impl $crate::Rows for Rows {
            type Row = Row;
            const TABLE: &'static $crate::Table = &TABLE;

            #[inline]
            fn push(&mut self, row: Row) {
                self.len += 1;
                $(<$ty as $crate::Cell>::put(row.$column, &mut self.$column);)+
            }

            fn len(&self) -> usize {
                self.len
            }

            fn values(self) -> Vec<$crate::Values> {
                vec![$(<$ty as $crate::Cell>::values(self.$column)),+]
            }

            fn reuse(values: Vec<$crate::Values>) -> Self {
                let mut values = values.into_iter();
                Self { len: 0, $($column: <$ty as $crate::Cell>::reuse(values.next()),)+ }
            }
        }
    };
}
