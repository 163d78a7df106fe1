//! DuckDB as a process of its own, which runs one statement on the views of tables.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use et_names::units::{bytes, seconds};
use et_tables::{Tables, literal};

use super::spill::Spill;

/// Why a statement was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("DuckDB not found: install the command duckdb, or its Python module (pip install duckdb)")]
    Missing,
    #[error("DuckDB: {what}")]
    Refused {
        what: String,
        /// As in [`Answer`].
        engine: String,
    },
    #[error("cannot start DuckDB: {0}")]
    Start(io::Error),
    #[error("cannot make a folder for DuckDB in {folder} (set TMPDIR to use another folder): {0}", folder = std::env::temp_dir().display())]
    Spill(io::Error),
    #[error("DuckDB was stopped after {}: ask for less, or run the query with et-trace sql", seconds(.0.as_secs_f64()))]
    TooSlow(Duration),
    #[error("the answer has more than {}: ask for fewer rows or columns, or run the query with et-trace sql", bytes(*.0))]
    TooLarge(u64),
}

/// Format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Json,
}

impl Format {
    /// As DuckDB's command and the driver name it.
    fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }
}

/// Limits of a statement that does not come from a terminal: it can neither run for hours nor reach other files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub time: Duration,
    /// Maximum bytes of the answer.
    pub bytes: u64,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub statement: &'a str,
    pub format: Format,
    /// Maximum memory of DuckDB in bytes; `None`: its own limit.
    pub memory: Option<u64>,
    pub limits: Option<Limits>,
}

/// What DuckDB answers.
#[derive(Debug)]
pub(super) struct Answer {
    pub text: String,
    /// Version of DuckDB, and what it is: the command or the module.
    pub engine: String,
}

/// Runs a statement on tables, by the command `duckdb` if there is one, else by Python. With a signal it ends, and the answer is
/// empty: what DuckDB writes to the folder is to go before we do.
pub(super) fn ask(tables: &Tables, request: &Request<'_>, spill: &Spill) -> Result<Answer, EngineError> {
    let views = views(tables, request, spill);
    Engine::start(&views, request.statement, request.format)?.answer(request.limits, spill)
}

/// What is run before the statement.
fn views(tables: &Tables, request: &Request<'_>, spill: &Spill) -> String {
    let mut views = format!("{NO_BAR}\n{IDS}\nset temp_directory = {};\n", literal(&spill.path().to_string_lossy()));
    if let Some(memory) = request.memory {
        let _ = writeln!(views, "set memory_limit = '{memory}B';");
    }
    if request.limits.is_some() {
        let folder = std::path::absolute(tables.folder()).unwrap_or_else(|_| tables.folder().to_owned());
        let folder = literal(&format!("{}/", folder.display()));
        let _ = writeln!(views, "set allowed_directories = [{folder}];\nset enable_external_access = false;");
        views += "set lock_configuration = true;\n";
    }
    views + &tables.views()
}

/// DuckDB shows how far long queries are on standard output, among the answer.
const NO_BAR: &str = "set enable_progress_bar = false;";

/// Ids as they are printed, and back: columns have numbers.
const IDS: &str = "\
create macro object_id(text) as ('0x' || regexp_replace(text, '^0x', ''))::bigint;
create macro object_text(object) as printf('%x', object);";

/// Runs a statement with Python.
const DRIVER: &str = include_str!("duckdb.py");
/// Exit code of the driver if the module is missing.
const NO_MODULE: i32 = 97;
const PYTHONS: [&str; 2] = ["python3", "python"];

/// A running DuckDB.
struct Engine {
    child: Child,
    said: JoinHandle<String>,
    is_python: bool,
}

impl Engine {
    /// By the command, if there is one, else by Python.
    fn start(views: &str, statement: &str, format: Format) -> Result<Self, EngineError> {
        let format = format.name();
        let mut duckdb = Command::new("duckdb");
        duckdb.args(["-batch", "-bail", "-nullvalue", ""]).arg(format!("-{format}"));
        if let Some(engine) = Self::spawn(duckdb, false, format!("{views}\n{statement}\n;\n"))? {
            return Ok(engine);
        }
        for python in PYTHONS {
            let mut driver = Command::new(python);
            driver.args(["-c", DRIVER, format]);
            if let Some(engine) = Self::spawn(driver, true, format!("{views}\0{statement}"))? {
                return Ok(engine);
            }
        }
        Err(EngineError::Missing)
    }

    /// `None` if there is no such program.
    fn spawn(mut command: Command, is_python: bool, input: String) -> Result<Option<Self>, EngineError> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match piped.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(EngineError::Start(error)),
        };
        let stdin = child.stdin.take();
        let fed = stdin.map(|stdin| et_system::threads::spawn(move || feed(stdin, &input))).transpose();
        let stderr = child.stderr.take();
        let listen = || {
            et_system::threads::spawn(move || {
                let mut text = Vec::new();
                // What was read before an error is reported.
                let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        match fed.and_then(|_| listen()) {
            Ok(said) => Ok(Some(Self { child, said, is_python })),
            Err(no_thread) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(EngineError::Start(no_thread.into()))
            }
        }
    }

    /// All that it prints.
    fn answer(mut self, limits: Option<Limits>, spill: &Spill) -> Result<Answer, EngineError> {
        let started = Instant::now();
        let most = limits.map_or(u64::MAX, |limits| limits.bytes);
        let (done, answered) = channel();
        let stdout = self.child.stdout.take();
        let listening = et_system::threads::spawn(move || {
            let mut text = Vec::new();
            let read = stdout.map_or(Ok(0), |stdout| stdout.take(most.saturating_add(1)).read_to_end(&mut text));
            // The receiver may be gone.
            let _ = done.send(read.map(|_| text));
        });
        if let Err(no_thread) = listening {
            let _ = self.child.kill();
            let _ = self.child.wait();
            return Err(EngineError::Start(no_thread.into()));
        }
        let mut is_late = false;
        let read = loop {
            match answered.recv_timeout(BETWEEN) {
                Ok(read) => break read,
                Err(RecvTimeoutError::Disconnected) => break Err(io::ErrorKind::BrokenPipe.into()),
                Err(RecvTimeoutError::Timeout) => {
                    is_late = limits.is_some_and(|limits| started.elapsed() > limits.time);
                    if is_late || spill.is_unwanted() {
                        // It may have ended. Its own child processes may still hold its output open.
                        let _ = self.child.kill();
                        break Ok(Vec::new());
                    }
                }
            }
        };
        let is_large = read.as_ref().is_ok_and(|text| text.len() as u64 > most);
        if is_large {
            let _ = self.child.kill();
        }
        let status = self.child.wait();
        if spill.is_unwanted() {
            return Ok(Answer { text: String::new(), engine: String::new() });
        }
        if let Some(limits) = limits.filter(|_| is_late || is_large) {
            return Err(if is_late { EngineError::TooSlow(limits.time) } else { EngineError::TooLarge(limits.bytes) });
        }
        let said = self.said.join().unwrap_or_default();
        let (version, said) =
            if self.is_python { said.split_once('\n').unwrap_or((&said, "")) } else { ("", said.as_str()) };
        let text = read.map_err(EngineError::Start)?;
        let status = status.map_err(EngineError::Start)?;
        if self.is_python && status.code() == Some(NO_MODULE) {
            return Err(EngineError::Missing);
        }
        let engine = match self.is_python {
            true => format!("DuckDB v{version}, the Python module"),
            false => format!("DuckDB {}, the command duckdb", version_of_command()),
        };
        if !status.success() {
            let words: Vec<&str> = said.split_whitespace().collect();
            let what = if words.is_empty() { format!("it failed ({status})") } else { words.join(" ") };
            return Err(EngineError::Refused { what, engine });
        }
        Ok(Answer { text: String::from_utf8_lossy(&text).into_owned(), engine })
    }
}

/// How long a signal waits for us.
const BETWEEN: Duration = Duration::from_millis(100);

fn version_of_command() -> String {
    let said = Command::new("duckdb").arg("--version").output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    said.split_whitespace().next().unwrap_or_default().to_owned()
}

fn feed(mut stdin: ChildStdin, input: &str) {
    // If it does not want all of it, it says why.
    let _ = stdin.write_all(input.as_bytes());
}

/// The fields of each line of CSV.
pub(super) fn fields(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    // It is text, and nothing else can be wrong with it.
    let rows = reader.records().filter_map(Result::ok);
    rows.map(|row| row.iter().map(str::to_owned).collect()).collect()
}
