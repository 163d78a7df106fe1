//! Rows of tables: each table is declared once, and its rows, its columns and its documentation come of that.

use std::fmt::Debug;

use bytes::Bytes;
use parquet::data_type::ByteArray;

use crate::schema::{Table, Type};

/// The values of a column, those that are null left out; then levels say for each row whether it has one.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Values {
    Long(Vec<i64>, Option<Vec<i16>>),
    Double(Vec<f64>, Option<Vec<i16>>),
    Flag(Vec<bool>, Option<Vec<i16>>),
    Text(Vec<ByteArray>, Option<Vec<i16>>),
}

impl Values {
    /// Leaves the memory, not what stands in it.
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

/// A word that is known beforehand, so that each row costs no copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub &'static str);

/// What may stand in a row.
pub trait Cell {
    /// How rows are kept until they are written.
    type Kept: Default + Debug + Send;
    /// Of the column.
    const TYPE: Type;
    /// Of the column.
    const IS_NULLABLE: bool;
    /// Adds it to a column.
    fn put(self, kept: &mut Self::Kept);
    /// The column.
    fn values(kept: Self::Kept) -> Values;
    /// The memory of a column that was written and cleared, for other rows.
    fn reuse(values: Option<Values>) -> Self::Kept;
}

/// A column that may have nulls.
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

/// Rows that wait to be written.
pub trait Rows: Default + Debug {
    /// One of them.
    type Row;
    /// What they are of.
    const TABLE: &'static Table;
    /// One more.
    fn push(&mut self, row: Self::Row);
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// As columns.
    fn values(self) -> Vec<Values>;
    /// None, in the memory of those that were written.
    fn reuse(values: Vec<Values>) -> Self;
}

/// Declares a table: `TABLE`, a `Row` and the `Rows` that wait to be written. From this one declaration come the schema of the file, the order of
/// its columns, how each is encoded, and the documentation.
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
        /// The table's columns and what they mean.
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

        /// Rows that wait to be written.
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
