//! `et-trace open`: traces as pages to walk around in, served to the browser of the user.

use std::future::IntoFuture;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use et_cli::code::OK;
use et_cli::print;
use et_explorer::{FindSource, Parts, router};
use et_lives::LifeTable;
use et_reader::references::{NoReferences, References};
use et_reader::source::{Reading, Source, deaths_unknown};
use et_web::{Guard, PortError, new_token};

use super::analyses::Opened;
use super::report::{NoReport, report_of};
use super::sources::{SourceArgs, SourceFiles, Sources};
use super::sql_box::SqlBox;
use super::{CliError, DeathsArg, InputArgs, PROGRAM};
use crate::bar::Bar;

/// Where the page is if nothing else is there.
const PORT: u16 = 8791;

#[derive(Debug, Args)]
#[command(after_help = "\
The first time, this makes the life table and the table of references, which takes a reading of the trace or two; both are
kept beside it. The page is on this machine only, and only those reach it who have its address. Ctrl-C ends it.

Examples:
  et-trace open app.ettrace                    prints the address of the page
  et-trace open app.ettrace --browser          and opens it
  et-trace open app.ettrace --source src/main/java    shows the lines of source at sites
  et-trace open app.ettrace --tables app.tables       with a view for SQL, on what et-trace tables wrote
  et-trace open before.ettrace after.ettrace   several traces on one page")]
pub(super) struct OpenArgs {
    /// The traces: files written by the runtime
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Port of the page; 0: any that is free [default: 8791, or any that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    #[command(flatten)]
    sources: SourceArgs,
    /// Folder written by et-trace tables, for SQL on the page; it must have the tables of all traces. DuckDB is needed, as for et-trace sql
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    browser: bool,
}

pub(super) fn run(args: &OpenArgs) -> Result<u8, CliError> {
    // What is wrong with it is told before the long work.
    let sources = args.sources.open().map_err(NoReport::from)?;
    let sources = (!sources.is_empty()).then(|| Arc::new(Mutex::new(sources)));
    let sql = args.tables.as_deref().map(SqlBox::open).transpose()?;
    let mut code = OK;
    let mut opened = Vec::new();
    for path in &args.traces {
        let (trace, complete) = open(path, sources.as_ref(), sql.as_ref())?;
        opened.push(et_explorer::Opened::new(trace));
        code = code.max(complete);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Serve)?;
    let served = runtime.block_on(serve(args, opened, sql.as_ref()));
    // What is still being worked out has nobody left to answer; but DuckDB is to end before its temporary files go.
    runtime.shutdown_timeout(if sql.is_some() { Duration::from_secs(1) } else { Duration::ZERO });
    served.map(|()| code)
}

/// A trace with all that the page needs, and what its exit code is.
fn open(path: &Path, sources: Option<&Arc<Mutex<Sources>>>, sql: Option<&SqlBox>) -> Result<(Parts, u8), CliError> {
    let bar = Bar::new(true);
    let input = InputArgs::of(path.to_owned(), DeathsArg::Trace, false);
    let opened = Opened::new(&input, &bar)?;
    let sql = sql.map(|sql| sql.of(&opened.source)).transpose()?;
    let without_deaths = without_deaths(&opened);
    let (references, objects): (Box<dyn References>, _) = match without_deaths {
        None => {
            let objects = et_lives::by_time(opened.lives.as_deref(), &opened.population).map_err(CliError::Rows)?;
            (opened.references()?, Some(objects))
        }
        // Without deaths nothing is in the order of time, and references have no lives.
        Some(_) => (Box::new(NoReferences::default()), None),
    };
    drop(bar);
    let code = opened.finish();
    let Opened { source, population, lives } = opened;
    let report = move |source: &Source| work_out(source, lives.as_ref());
    let path = path.display().to_string();
    let find_source = sources.map(|sources| find_in(Arc::clone(sources), source.naming().source_files()));
    let report = Box::new(report);
    Ok((Parts { path, source, population, objects, references, report, find_source, sql, without_deaths }, code))
}

/// Lines of the sites of a trace; all traces share what is open.
fn find_in(sources: Arc<Mutex<Sources>>, files: SourceFiles) -> FindSource {
    Box::new(move |site| sources.lock().unwrap_or_else(PoisonError::into_inner).excerpt(&files, site))
}

/// Why a trace tells no deaths, and how to have one that does; `None`: it tells them.
fn without_deaths(opened: &Opened) -> Option<String> {
    if opened.population.has_deaths {
        return None;
    }
    if opened.source.tells_objects().is_err() {
        return Some("The trace counts allocations: record with --mode everything to know what is alive, and with --mode objects for single objects.".to_owned());
    }
    let why = deaths_unknown(opened.source.events()).unwrap_or_else(|| "deaths cannot be computed".to_owned());
    Some(format!("Here {why}. Instrument with --events all to know it."))
}

fn work_out(source: &Source, lives: Option<&Arc<LifeTable>>) -> Result<et_analysis::report::Report, String> {
    let found = report_of(source, lives.map(|lives| &**lives), Reading::default());
    found.map(|(report, _)| report).map_err(|error| error.to_string())
}

async fn serve(args: &OpenArgs, traces: Vec<et_explorer::Opened>, sql: Option<&SqlBox>) -> Result<(), CliError> {
    let listener = et_web::listen(args.port, PORT).await;
    let listener = listener.map_err(|PortError { port, source }| CliError::Port { port, source })?;
    let port = listener.local_addr().map_err(CliError::Serve)?.port();
    let token = new_token().map_err(CliError::Serve)?;
    let url = format!("http://127.0.0.1:{port}/{}/", token.as_str());
    let guard = Guard { token, port: Some(port), program: "et-trace" };
    print(&format!("{url}\n"))?;
    if args.browser
        && let Err(error) = show(&url)
    {
        PROGRAM.say(format_args!("note: no browser was started ({error}): open the address in yours"));
    }
    let served = axum::serve(listener, router(traces, guard)).into_future();
    tokio::select! {
        served = served => served.map_err(CliError::Serve),
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(CliError::Serve),
        () = unwanted(sql) => Ok(()),
    }
}

/// Waits for a signal that ends the process, where such signals are caught because of DuckDB's temporary files.
async fn unwanted(sql: Option<&SqlBox>) {
    let Some(sql) = sql else { return std::future::pending().await };
    while !sql.is_unwanted() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Starts the user's browser, as the desktop has it.
fn show(url: &str) -> io::Result<()> {
    let null = Stdio::null;
    Command::new("xdg-open").arg(url).stdin(null()).stdout(null()).stderr(null()).spawn().map(drop)
}
