//! SQL for query engines: a view for each table, and predefined queries.

use std::fmt::Write;

use et_reader::record::ObjectId;

use crate::folder::Tables;
use crate::queries::ALL as QUERIES;
use crate::tables::ALL;

/// A predefined query in SQL that DuckDB and Spark understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    pub name: &'static str,
    /// SQL that begins with the question in a comment.
    pub text: &'static str,
}

impl Query {
    /// Returns the query with that name.
    pub fn named(name: &str) -> Option<Self> {
        QUERIES.iter().find(|(known, _)| *known == name).map(|(name, text)| Self { name, text })
    }

    /// All predefined queries.
    pub fn all() -> impl Iterator<Item = Self> {
        QUERIES.iter().map(|(name, text)| Self { name, text })
    }

    /// The question that it answers.
    pub fn question(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("--"));
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// Whether it depends on deaths, or on what was alive.
    pub fn needs_deaths(&self) -> bool {
        ["death_", "has_deaths", "escaped_frame", "from refs"].iter().any(|word| self.text.contains(word))
    }

    /// Names of its parameters: `/*:class*/'…'` declares `class`, with the literal after it as the default.
    pub fn settings(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> =
            self.text.split(OPEN).skip(1).filter_map(|rest| rest.split_once(CLOSE).map(|(name, _)| name)).collect();
        names.dedup();
        names
    }

    /// Returns the query with other values of its parameters.
    pub fn with(&self, settings: &[(String, String)]) -> Result<String, SettingError> {
        let mut text = self.text.to_owned();
        for (name, value) in settings {
            let mark = format!("{OPEN}{name}{CLOSE}");
            if !text.contains(&mark) {
                return Err(SettingError::Unknown { setting: name.clone() });
            }
            let no_number = || SettingError::NoNumber { setting: name.clone(), value: value.clone() };
            let value = match name == OBJECT {
                true => value.parse::<ObjectId>().map_err(|_| no_number())?.0.cast_signed().to_string(),
                false => value.clone(),
            };
            text = set(&text, &mark, &value).ok_or_else(no_number)?;
        }
        Ok(text)
    }
}

/// The parameter that is an id as it is printed; columns have the same bits as signed numbers.
const OBJECT: &str = "object";

const OPEN: &str = "/*:";
const CLOSE: &str = "*/";

/// Why a parameter could not be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// The query has no such parameter.
    Unknown {
        /// Name of the parameter.
        setting: String,
    },
    /// The parameter is a number and the value is not.
    NoNumber {
        /// Name of the parameter.
        setting: String,
        /// The value given.
        value: String,
    },
}

/// Replaces the literal after each mark by the value; `None` if the literal is a number and the value is not.
fn set(text: &str, mark: &str, value: &str) -> Option<String> {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (value, rest) = match part.strip_prefix('\'') {
            Some(quoted) => match quoted.split_once('\'') {
                Some((_, rest)) => (literal(value), rest),
                None => (String::new(), part),
            },
            None => {
                let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
                // Anything else would allow SQL injection.
                (value.parse::<i64>().ok()?.to_string(), &part[end..])
            }
        };
        let _ = write!(out, "{mark}{value}{rest}");
    }
    Some(out)
}

/// Quotes a string for SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Tables {
    /// DuckDB statements that create a view for each table. The view of a table that no run has is empty.
    pub fn views(&self) -> String {
        let mut out = String::new();
        let folder = std::path::absolute(self.folder()).unwrap_or_else(|_| self.folder().to_owned());
        for table in ALL {
            let name = table.name;
            if self.has(name) {
                let pattern = format!("{}/{name}/*/*.parquet", pattern_of(&folder.to_string_lossy()));
                let _ = writeln!(
                    out,
                    "create view {name} as select * from read_parquet({}, hive_partitioning = true, \
                     hive_types_autocast = false, union_by_name = true);",
                    literal(&pattern)
                );
            } else {
                let columns = table.columns.iter().map(|column| (column.name, column.ty.sql()));
                let columns: Vec<String> = columns
                    .chain([("run", "varchar")])
                    .map(|(name, ty)| format!("cast(null as {ty}) as {name}"))
                    .collect();
                let _ = writeln!(out, "create view {name} as select {} where false;", columns.join(", "));
            }
        }
        out
    }
}

/// Converts a path to a glob pattern that matches only it.
fn pattern_of(path: &str) -> String {
    path.chars().fold(String::new(), |mut out, c| {
        match c {
            '*' | '?' | '[' => _ = write!(out, "[{c}]"),
            _ => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_set_and_nothing_else() {
        let query =
            Query { name: "q", text: "-- What?\n-- Really?\nselect /*:class*/'%', /*:top*/20 from t limit /*:top*/20" };
        assert_eq!(query.question(), "What? Really?");
        assert_eq!(query.settings(), ["class", "top"]);
        let set = |name: &str, value: &str| query.with(&[(name.to_owned(), value.to_owned())]);
        assert!(
            set("class", "it's").unwrap().ends_with("select /*:class*/'it''s', /*:top*/20 from t limit /*:top*/20")
        );
        assert!(set("top", "7").unwrap().ends_with("/*:top*/7 from t limit /*:top*/7"));
        for value in ["1; drop", "", "many", "1.5"] {
            assert_eq!(set("top", value), Err(SettingError::NoNumber { setting: "top".into(), value: value.into() }));
        }
        let query = Query { name: "q", text: "-- What?\nselect * from t where o = /*:object*/0" };
        let of = |value: &str| query.with(&[("object".to_owned(), value.to_owned())]);
        for (value, expected) in [("1f3a", "7994"), ("0x10", "16"), ("ffffffffffffffff", "-1")] {
            assert!(of(value).unwrap().ends_with(&format!("= /*:object*/{expected}")), "{value}");
        }
        assert_eq!(of("g"), Err(SettingError::NoNumber { setting: "object".into(), value: "g".into() }));
        assert_eq!(set("x", "1"), Err(SettingError::Unknown { setting: "x".into() }));
    }

    #[test]
    fn a_path_matches_only_itself() {
        assert_eq!(pattern_of("/a*b/[c]?"), "/a[*]b/[[]c][?]");
    }
}
