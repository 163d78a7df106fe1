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
    // One row more tells whether there are more. The line break ends a comment.
    let statement = statement.trim_end().trim_end_matches(';');
    let statement = format!("select * from (\n{statement}\n) limit {}", ROWS + 1);
    let request = Request { statement: &statement, format: Format::Csv, memory: Some(MEMORY), limits: Some(LIMITS) };
    let answer = duckdb::ask(tables, &request, spill)?;
    let mut rows = fields(&answer.text);
    let columns = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
    let is_cut = rows.len() > ROWS;
    rows.truncate(ROWS);
    Ok(SqlRows { columns, rows, is_cut, engine: answer.engine })
}
