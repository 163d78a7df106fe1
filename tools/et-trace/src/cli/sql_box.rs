//! SQL on the page of `et-trace open`: tables of the open traces, asked by DuckDB within limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use et_explorer::{Sql, SqlQuery, SqlRows};
use et_reader::source::Source;
use et_tables::{Query, Tables};

use super::CliError;
use super::duckdb::{self, EngineError, Format, Limits, Request, fields};
use super::spill::Spill;

/// Rows of an answer: more are neither read nor sent.
const ROWS: usize = 10_000;
const LIMITS: Limits = Limits { time: Duration::from_secs(60), bytes: 32 << 20 };
/// Memory of DuckDB: beyond it, it uses the folder for temporary files.
const MEMORY: u64 = 2 << 30;

/// Tables that the page can ask.
pub(super) struct SqlBox {
    folder: PathBuf,
    tables: Arc<Tables>,
    spill: Arc<Spill>,
}

/// The folder has no tables of a trace.
#[derive(Debug, thiserror::Error)]
#[error("{folder} has no tables of {trace}: write them with et-trace tables {trace} -o {folder}", folder = .folder.display(), trace = .trace.display())]
pub(crate) struct OtherTables {
    folder: PathBuf,
    trace: PathBuf,
}

impl SqlBox {
    pub(super) fn open(folder: &Path) -> Result<Self, CliError> {
        let tables = Arc::new(Tables::open(folder)?);
        let spill = Arc::new(Spill::new().map_err(EngineError::Spill)?);
        Ok(Self { folder: folder.to_owned(), tables, spill })
    }

    /// What answers the SQL on the page of a trace, whose tables must be there.
    pub(super) fn of(&self, source: &Source) -> Result<Sql, OtherTables> {
        let run = source.trace().map(|trace| trace.file.run().to_string());
        let runs = self.tables.runs();
        if !runs.iter().any(|known| known.run_id.is_some() && known.run_id == run) {
            return Err(OtherTables { folder: self.folder.clone(), trace: source.path().to_owned() });
        }
        let (tables, spill) = (Arc::clone(&self.tables), Arc::clone(&self.spill));
        let queries =
            Query::all().map(|query| SqlQuery { name: query.name, question: query.question(), text: query.text });
        Ok(Sql {
            folder: self.folder.display().to_string(),
            is_of_one_run: runs.len() == 1,
            queries: queries.collect(),
            ask: Box::new(move |statement| ask(&tables, &spill, statement).map_err(|error| error.to_string())),
        })
    }

    /// Whether the process is to end, by a signal that DuckDB's temporary files must not survive.
    pub(super) fn is_unwanted(&self) -> bool {
        self.spill.is_unwanted()
    }
}

fn ask(tables: &Tables, spill: &Spill, statement: &str) -> Result<SqlRows, EngineError> {
    let statement = bounded(statement);
    let request = Request { statement: &statement, format: Format::Csv, memory: Some(MEMORY), limits: Some(LIMITS) };
    let answer = duckdb::ask(tables, &request, spill)?;
    let mut rows = fields(&answer.text);
    let columns = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
    let is_cut = rows.len() > ROWS;
    rows.truncate(ROWS);
    Ok(SqlRows { columns, rows, is_cut, engine: answer.engine })
}

/// Selects the first rows of what a statement selects: one more than are shown tells whether there are more.
fn bounded(statement: &str) -> String {
    let mut statement = statement.trim();
    // What is in parentheses ends without a semicolon; a comment may follow it.
    if let Some((before, rest)) = statement.rsplit_once(';') {
        let rest = rest.trim();
        if rest.is_empty() || rest.starts_with("--") && !rest.contains(['\n', '\'']) {
            statement = before.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
        }
    }
    // The line break ends a comment.
    format!("select * from (\n{statement}\n) limit {}", ROWS + 1)
}

#[cfg(test)]
mod tests {
    use super::bounded;

    #[test]
    fn semicolons_and_comments_at_the_end_are_no_part_of_a_subquery() {
        for statement in ["from t", "from t;", " from t ;; \n", "from t; -- all of it", "from t;-- all"] {
            assert_eq!(bounded(statement), "select * from (\nfrom t\n) limit 10001", "{statement}");
        }
        for kept in ["select ';'", "select '; -- x'", "from t -- all; of it's", "from t -- all"] {
            assert_eq!(bounded(kept), format!("select * from (\n{kept}\n) limit 10001"));
        }
    }
}
