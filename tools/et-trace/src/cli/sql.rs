//! `et-trace sql`: asks tables, by DuckDB.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use et_cli::code::OK;
use et_cli::{Heartbeat, print, write_out};
use et_names::escape::OneLine;
use et_names::units::counted;
use et_tables::{Query, SettingError, Tables};

use super::analyses::size;
use super::duckdb::{self, EngineError, Format, Request, fields};
use super::spill::Spill;
use super::{CliError, PROGRAM};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-trace sql app.tables 'select count(*) from calls'
  et-trace sql app.tables \"select * from objects where object = object_id('1f3a')\"
  et-trace sql app.tables --query top_sites
  et-trace sql app.tables --query who_keeps --set class='com.acme.%' --csv
  et-trace sql --list                                lists the queries
  et-trace sql --query top_sites --print             prints one, to change it or to run it elsewhere
  et-trace sql app.tables --check                    checks that all files are as they were written

Tables and columns are in docs/tables.md. DuckDB runs the SQL: the command duckdb if there is one, else the Python module
(pip install duckdb). Nothing is installed.")]
pub(super) struct SqlArgs {
    /// A folder written by et-trace tables
    #[arg(required_unless_present_any = ["list", "print"])]
    folder: Option<PathBuf>,
    /// The query to run
    #[arg(value_name = "SQL", required_unless_present_any = ["query", "list", "check"], conflicts_with = "query")]
    sql: Option<String>,
    /// Run one of the queries that come with et-trace
    #[arg(long, value_name = "NAME")]
    query: Option<String>,
    /// Set a parameter of the query; --list shows them
    #[arg(long, value_name = "NAME=VALUE", requires = "query", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Show the queries that come with et-trace
    #[arg(long)]
    list: bool,
    /// Print the query instead of running it
    #[arg(long, requires = "query")]
    print: bool,
    /// Check that all files of the folder are as they were written
    #[arg(long)]
    check: bool,
    /// Memory limit of DuckDB: 4GB, 1.5g. Beyond it, DuckDB uses temporary files in the folder TMPDIR [default: 80 % of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let pair = pair.ok_or_else(|| "expected NAME=VALUE".to_owned())?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

/// Why a query was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqlError {
    #[error("there is no query {name}; choose one of: {there}")]
    UnknownQuery { name: String, there: String },
    #[error("the query {query} has no parameter {setting}; it has: {there}")]
    UnknownSetting { query: String, setting: String, there: String },
    #[error("{setting} of the query {query} must be a number, not {value}")]
    NotANumber { query: String, setting: String, value: String },
}

pub(super) fn run(args: &SqlArgs) -> Result<u8, CliError> {
    if args.list {
        print(&list())?;
        return Ok(OK);
    }
    let statement = statement(args)?;
    if let (true, Some(statement)) = (args.print, &statement) {
        print(statement)?;
        return Ok(OK);
    }
    let Some(folder) = &args.folder else { return Ok(OK) };
    let tables = Tables::open(folder)?;
    if args.check {
        let _heartbeat = Heartbeat::new(PROGRAM, || "reading all files".to_owned());
        tables.check()?;
        print(&format!("{}: {}, nothing damaged\n", folder.display(), counted(tables.runs().len() as u64, "run")))?;
    }
    let Some(statement) = statement else { return Ok(OK) };
    if let Some(query) = args.query.as_deref().and_then(Query::named).filter(Query::needs_deaths) {
        warn_of_deaths(&tables, &query)?;
    }
    let format = if args.json { Format::Json } else { Format::Csv };
    let request = Request { statement: &statement, format, memory: args.memory, limits: None };
    // By default, DuckDB spills to the current folder.
    let spill = Spill::new().map_err(EngineError::Spill)?;
    let answer = {
        let _heartbeat = Heartbeat::new(PROGRAM, || "running the query".to_owned());
        duckdb::ask(&tables, &request, &spill)
    };
    // The end, if a signal has come.
    drop(spill);
    // A damaged file shows in what the engine says, but not always which one it is.
    let text = match answer {
        Err(error) => {
            if let EngineError::Refused { engine, .. } = &error {
                PROGRAM.say(format_args!("note: {engine}"));
            }
            tables.check()?;
            return Err(error.into());
        }
        Ok(answer) => {
            PROGRAM.say(format_args!("note: {}", answer.engine));
            answer.text
        }
    };
    if args.csv || args.json {
        write_out(&text)?
    } else {
        print(&table(&text))?
    }
    Ok(OK)
}

/// Warns about runs without deaths: it must not look as if all of their objects were alive.
fn warn_of_deaths(tables: &Tables, query: &Query) -> Result<(), CliError> {
    let runs = tables.without_deaths()?;
    if runs.is_empty() {
        return Ok(());
    }
    let which = if runs.len() == 1 { "run" } else { "runs" };
    let (runs, query) = (runs.join(", "), query.name);
    PROGRAM.say(format_args!("note: deaths are unknown in {which} {runs}: {query} leaves them out"));
    Ok(())
}

fn list() -> String {
    Query::all().fold(String::new(), |mut text, query| {
        let settings = query.settings();
        let set = if settings.is_empty() { String::new() } else { format!(" (--set {}=…)", settings.join("=…, ")) };
        let _ = writeln!(text, "{:<18} {}{set}", query.name, query.question());
        text
    })
}

/// The SQL to run, if any is given.
fn statement(args: &SqlArgs) -> Result<Option<String>, SqlError> {
    let Some(name) = &args.query else { return Ok(args.sql.clone()) };
    let there = || Query::all().map(|query| query.name).collect::<Vec<_>>().join(", ");
    let query = Query::named(name).ok_or_else(|| SqlError::UnknownQuery { name: name.clone(), there: there() })?;
    let text = query.with(&args.set).map_err(|error| match error {
        SettingError::Unknown { setting } => {
            SqlError::UnknownSetting { query: name.clone(), setting, there: query.settings().join(", ") }
        }
        SettingError::NoNumber { setting, value } => SqlError::NotANumber { query: name.clone(), setting, value },
    })?;
    Ok(Some(text))
}

/// CSV as a table for a terminal; numbers are aligned to the right.
fn table(csv: &str) -> String {
    let rows = fields(csv);
    let Some((head, rows)) = rows.split_first() else { return String::new() };
    let shown = |text: &String| OneLine(text).to_string();
    let head: Vec<String> = head.iter().map(shown).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let columns: Vec<(usize, bool)> = (0..head.len())
        .map(|at| {
            let cells = || rows.iter().filter_map(|row| row.get(at));
            let width = cells().chain([&head[at]]).map(|cell| cell.chars().count()).max().unwrap_or_default();
            let is_number = !rows.is_empty() && cells().all(|cell| cell.is_empty() || cell.parse::<f64>().is_ok());
            (width, is_number)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = columns.iter().zip(row).map(|(&(width, is_number), cell)| {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            if is_number { format!("{padding}{cell}") } else { format!("{cell}{padding}") }
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let ruler = columns.iter().map(|(width, _)| "-".repeat(*width)).collect::<Vec<_>>().join("  ");
    let count = counted(rows.len() as u64, "row");
    format!("{}{ruler}\n{}({count})\n", line(&head), rows.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_a_name_and_a_value() {
        assert_eq!(setting("class=a=b"), Ok(("class".to_owned(), "a=b".to_owned())));
        assert!(["top", "top=", "=5", "="].iter().all(|text| setting(text).is_err()));
    }

    #[test]
    fn csv_becomes_a_table() {
        let csv = "name,bytes\n\"a, \"\"b\"\"\",7\n\"two\nlines\",\nc,1234\n";
        assert_eq!(fields(csv)[1..3], [vec!["a, \"b\"", "7"], vec!["two\nlines", ""]]);
        let table = table(csv);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "name            bytes");
        assert_eq!(lines[2], "a, \"b\"              7");
        // Values with line breaks would break the columns, and affect terminals.
        assert_eq!(lines[3], r"two\u000alines");
        assert_eq!(lines[5], "(3 rows)");
    }

    #[test]
    fn nothing_is_no_table() {
        assert_eq!(table(""), "");
    }
}
