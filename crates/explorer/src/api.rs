//! What can be asked: one function for each question, each on a thread for long work, a few at a time.

use std::fmt::Display;
use std::io::BufWriter;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query as AxumQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use et_analysis::Labels;
use et_analysis::changes::{self, AtRoots, By, ChangesError};
use et_analysis::groups::{self, Down, Order, Query, What};
use et_analysis::heap::{Moment as Named, hprof};
use et_analysis::objects::Sort;
use et_names::shell::quoted;
use et_report::export::{self, About, Format, Tree, Weight};
use et_web::failure;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::answer::{Answer, named, to_value, with_command};
use crate::opened::{Moment, Opened};
use crate::params::{Params, Refused};
use crate::{findings, moments, object, stream};

/// Questions that are worked on at once; the others wait.
const AT_ONCE: usize = 4;
/// Lines or objects of an answer.
const MOST: usize = 10_000;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct App {
    traces: Arc<[&'static Opened]>,
    turns: Arc<Semaphore>,
}

impl App {
    pub fn new(traces: Arc<[&'static Opened]>) -> Self {
        Self { traces, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    fn trace(&self, params: &Params) -> Result<&'static Opened, Refused> {
        let number: usize = params.number("trace")?.unwrap_or(0);
        self.traces.get(number).copied().ok_or_else(|| {
            Refused::None(format!("trace={number}: there is no such trace; {} are open, from 0", self.traces.len()))
        })
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Self::Wrong(why) => (StatusCode::BAD_REQUEST, why),
            Self::None(why) => (StatusCode::NOT_FOUND, why),
            Self::Failed(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        };
        failure(status, &why)
    }
}

/// A question: its name, its parameters and what answers it.
struct Question {
    path: &'static str,
    /// It is about the objects that are selected: by [`SELECTION`].
    selects: bool,
    params: &'static [&'static str],
    answer: fn(&'static Opened, &Params) -> Answer,
}

const SELECTION: &[&str] = &["what", "at", "from", "to", "class", "site", "context", "thread", "by", "path"];

#[rustfmt::skip]
static QUESTIONS: [Question; 10] = [
    Question { path: "/timeline", selects: false, params: &[], answer: timeline },
    Question { path: "/tree", selects: true, params: &["top"], answer: tree },
    Question { path: "/objects", selects: true, params: &["sort", "offset", "limit"], answer: objects },
    Question { path: "/object", selects: false, params: &["id", "at"], answer: object::answer },
    Question { path: "/dominators", selects: false, params: &["at", "of", "offset", "limit"], answer: moments::dominators },
    Question { path: "/treemap", selects: false, params: &["at"], answer: moments::treemap },
    Question { path: "/changes", selects: false, params: &["from", "to", "by", "top"], answer: changes },
    Question { path: "/source", selects: false, params: &["name"], answer: source },
    Question { path: "/sql", selects: false, params: &["q"], answer: sql },
    Question { path: "/flame", selects: true, params: &["down"], answer: flame },
];

/// Routes below `/TOKEN/api`.
pub(crate) fn routes() -> Router<App> {
    let mut routes = Router::new()
        .route("/traces", get(traces))
        .route("/findings", get(all_findings))
        .route("/heap.hprof", get(heap_dump))
        .route("/stacks.pb.gz", get(stacks));
    for question in &QUESTIONS {
        let handler = async move |State(app): State<App>, AxumQuery(pairs): Pairs| ask(app, pairs, question).await;
        routes = routes.route(question.path, get(handler));
    }
    routes
}

type Pairs = AxumQuery<Vec<(String, String)>>;

/// Answers on a thread for long work.
async fn ask(app: App, pairs: Vec<(String, String)>, question: &'static Question) -> Result<Json<Value>, Refused> {
    let params = Params::new(pairs, &[if question.selects { SELECTION } else { &[] }, question.params].concat())?;
    let trace = app.trace(&params)?;
    // The turn is given back when the work is done, even if nobody waits for it any more.
    let turn = app.turns.clone().acquire_owned().await;
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        (question.answer)(trace, &params)
    });
    let failed = |error: &dyn Display| Refused::Failed(format!("the answer could not be worked out: {error}"));
    work.await.map_err(|error| failed(&error))?.map(Json)
}

async fn traces(State(app): State<App>) -> Json<Value> {
    Json(app.traces.iter().map(|trace| about(trace)).collect())
}

fn about(trace: &Opened) -> Value {
    let (source, population) = (trace.source(), trace.population());
    let threads = source.trace().map(|trace| &*trace.threads).unwrap_or_default();
    let threads: Vec<Value> =
        threads.iter().map(|thread| json!({ "thread": thread.index, "name": thread.name })).collect();
    let name = source.path().file_name().unwrap_or_default().to_string_lossy();
    let end = population.end;
    json!({
        "name": name,
        "path": trace.path(),
        "program": source.trace().map(|trace| trace.file.meta().command.clone()),
        "events": source.events().to_string(),
        "hasDeaths": population.has_deaths,
        "hasUses": population.has_uses,
        "hasSources": trace.find_source().is_some(),
        "sql": trace.sql().map(|sql| json!({ "folder": sql.folder, "isOfOneRun": sql.is_of_one_run, "queries": sql.queries })),
        "withoutDeaths": trace.without_deaths(),
        "clock": if trace.counts_bytes() { "bytes" } else { "calls" },
        "objects": population.objects,
        "bytes": end.bytes,
        "references": trace.references().len(),
        "end": end,
        "threads": threads,
        "complete": population.lost == Default::default(),
        "warnings": population.warnings,
    })
}

fn timeline(trace: &'static Opened, _: &Params) -> Answer {
    let line = trace.timeline()?;
    let gcs = trace.source().trace().map(|trace| &*trace.gcs).unwrap_or_default();
    let tick = |nanos: u64| {
        let at = line.nanos.as_ref()?.partition_point(|&end| end < nanos);
        line.ticks.get(at).or(line.ticks.last()).copied()
    };
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let gcs: Vec<Value> = gcs
        .iter()
        .map(|gc| {
            json!({
                "tick": tick(gc.start_nanos),
                "seconds": seconds(gc.start_nanos),
                "pauseSeconds": seconds(gc.finish_nanos.saturating_sub(gc.start_nanos)),
                "usedBytes": gc.heap_used,
            })
        })
        .collect();
    let mut value = with_command(&*line, Some(format!("et-trace summary {}", quoted(trace.path()))))?;
    value["gcs"] = gcs.into();
    Ok(value)
}

/// Lines of source of sites.
fn source(trace: &'static Opened, params: &Params) -> Answer {
    let Some(find) = trace.find_source() else {
        return Err(Refused::None("no sources are known: et-trace open --source names them".to_owned()));
    };
    let lines = params.all("name").take(MOST).map(|name| Ok((name.clone(), to_value(&find(name))?)));
    Ok(json!({ "lines": lines.collect::<Result<Map<_, _>, Refused>>()? }))
}

/// What a statement answers.
fn sql(trace: &'static Opened, params: &Params) -> Answer {
    let Some(sql) = trace.sql() else {
        return Err(Refused::None("no tables are known: et-trace open --tables names them".to_owned()));
    };
    let statement = params.get("q").map(str::trim).filter(|statement| !statement.is_empty());
    let statement = statement.ok_or_else(|| Refused::Wrong("q is missing: a statement in SQL is needed".to_owned()))?;
    let rows = (sql.ask)(statement).map_err(Refused::Wrong)?;
    with_command(&rows, Some(format!("et-trace sql {} {}", quoted(&sql.folder), quoted(statement))))
}

/// Calls `use_it` with the objects that are asked about, and with the options of `et-trace objects` that select them.
fn selected<T>(
    trace: &'static Opened,
    params: &Params,
    use_it: impl FnOnce(What<'_, 'static>, &Query, String) -> Result<T, Refused>,
) -> Result<T, Refused> {
    let range = || -> Result<(u64, u64), Refused> {
        let (from, to) = (params.number("from")?.unwrap_or(0), params.tick("to")?);
        if from > to {
            return Err(Refused::Wrong(format!("from={from} is not before to={to}")));
        }
        Ok((from, to))
    };
    let text = |from: u64, to: u64| match (named(trace, from), named(trace, to)) {
        (from, Named::End) => format!("{from}.."),
        (from, to) => format!("{from}..{to}"),
    };
    match params.get("what").unwrap_or("alive") {
        "alive" => {
            let tick = params.tick("at")?;
            let moment = trace.moment(tick)?;
            use_it(moment.what(), &params.query(true)?, format!("--alive-at {}", named(trace, tick)))
        }
        "made" => {
            let (from, to) = range()?;
            use_it(What::Made { from, to }, &params.query(false)?, format!("--born {}", text(from, to)))
        }
        "died" => {
            trace.needs_deaths()?;
            let (from, to) = range()?;
            use_it(What::Died { from, to }, &params.query(false)?, format!("--died {}", text(from, to)))
        }
        other => Err(Refused::Wrong(format!("what={other}: alive, made or died is needed"))),
    }
}

/// The command line with the same selection; `None`: it has no option for a level that is opened.
fn objects_command(trace: &Opened, query: &Query, selection: &str, more: &str) -> Option<String> {
    let mut command = format!("et-trace objects {} {selection}", quoted(trace.path()));
    let groups::Filter { class, site, context, thread } = &query.filter;
    let mut add = |option: &str, value: &str| command.push_str(&format!(" {option} {}", quoted(value)));
    let mut conditions: Vec<(&str, String)> = Vec::new();
    conditions.extend(class.clone().map(|class| ("--class", class)));
    conditions.extend(site.clone().map(|site| ("--site", site)));
    conditions.extend(context.clone().map(|context| ("--context", context)));
    conditions.extend(thread.map(|thread| ("--thread", thread.to_string())));
    for (level, key) in query.by.iter().zip(&query.path) {
        conditions.push(match level {
            groups::Level::Class => ("--class", key.clone()),
            groups::Level::Package => ("--class", format!("{key}.*")),
            groups::Level::Site => ("--site", key.clone()),
            groups::Level::Thread => ("--thread", key.clone()),
            _ => return None,
        });
    }
    // An option can be given once.
    let mut given: Vec<&str> = conditions.iter().map(|(option, _)| *option).collect();
    given.sort_unstable();
    if given.windows(2).any(|pair| pair[0] == pair[1]) {
        conditions.retain(|(option, value)| *option != "--class" || !value.ends_with(".*"));
        given = conditions.iter().map(|(option, _)| *option).collect();
        given.sort_unstable();
        if given.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
    }
    conditions.iter().for_each(|(option, value)| add(option, value));
    Some(command + more)
}

fn tree(trace: &'static Opened, params: &Params) -> Answer {
    let top = params.count("top", 100, MOST)?;
    let course = trace.course()?;
    selected(trace, params, |what, query, selection| {
        let tree = groups::tree(trace.subject(), what, query, Some(&course), top)?;
        with_command(&tree, objects_command(trace, query, &selection, ""))
    })
}

fn objects(trace: &'static Opened, params: &Params) -> Answer {
    let order = match params.get("sort").unwrap_or("size") {
        "size" => Order::By(Sort::Size),
        "age" => Order::By(Sort::Age),
        "retained" => Order::Retained,
        "drag" if !trace.population().has_uses => {
            return Err(Refused::Wrong(
                "sort=drag: the trace has no calls, which tell when objects are used".to_owned(),
            ));
        }
        "drag" => Order::By(Sort::Drag),
        "birth" => Order::By(Sort::Birth),
        "death" => Order::By(Sort::Death),
        other => {
            return Err(Refused::Wrong(format!("sort={other}: size, age, retained, drag, birth or death is needed")));
        }
    };
    let page = (params.number("offset")?.unwrap_or(0), params.count("limit", 100, MOST)?);
    trace.source().tells_objects().map_err(|error| Refused::Wrong(error.to_string()))?;
    selected(trace, params, |what, query, selection| {
        if order == Order::Retained && !matches!(what, What::Alive(_)) {
            return Err(Refused::Wrong("sort=retained is only known of what is alive at a moment".to_owned()));
        }
        let found = groups::list(trace.subject(), what, query, order, page)?;
        let sort = match order {
            Order::Retained => None,
            Order::By(_) => params.get("sort"),
        };
        let more = sort.map(|sort| format!(" --sort {sort}")).unwrap_or_default();
        with_command(&found, objects_command(trace, query, &selection, &more))
    })
}

fn flame(trace: &'static Opened, params: &Params) -> Answer {
    let down = match params.get("down").unwrap_or("callers") {
        "callers" => Down::Callers,
        "sites" => Down::Sites,
        other => return Err(Refused::Wrong(format!("down={other}: callers or sites is needed"))),
    };
    selected(trace, params, |what, query, selection| {
        let graph = groups::flame(trace.subject(), what, query, down)?;
        with_command(&graph, objects_command(trace, query, &selection, ""))
    })
}

fn changes(trace: &'static Opened, params: &Params) -> Answer {
    trace.needs_deaths()?;
    let (first, last) = (params.number("from")?.unwrap_or(0), params.tick("to")?);
    let (from, to) = (named(trace, first), named(trace, last));
    let top = params.count("top", 100, MOST)?;
    let by = match params.get("by").unwrap_or("class") {
        "class" => By::Class,
        "site" => By::Site,
        "context" => By::Context,
        "root" => return changes_by_root(trace, [first, last], top),
        other => return Err(Refused::Wrong(format!("by={other}: class, site, context or root is needed"))),
    };
    let labels = Labels::of(trace.source(), trace.population());
    let found = changes::changes(trace.population(), trace.objects(), labels, [&from, &to], by, None, top).map_err(
        |error| match error {
            ChangesError::Rows(error) => Refused::from(error),
            error => Refused::Wrong(error.to_string()),
        },
    )?;
    let by = params.get("by").unwrap_or("class");
    let command = format!("et-trace heap {} --diff {from} {to} --by {by}", quoted(trace.path()));
    with_command(&found, Some(command))
}

fn changes_by_root(trace: &'static Opened, ticks: [u64; 2], top: usize) -> Answer {
    let [from, to] = ticks.map(|tick| named(trace, tick));
    if ticks[0] > ticks[1] {
        return Err(Refused::Wrong(format!("{from} is not before {to}: give the earlier moment first")));
    }
    let side = |tick| trace.moment(tick).map(|moment| AtRoots::of(&moment.resident.snapshot, None));
    let found = changes::changes_by_root([&from, &to], [side(ticks[0])?, side(ticks[1])?], top);
    with_command(&found, Some(format!("et-trace heap {} --diff {from} {to} --by root", quoted(trace.path()))))
}

/// What stands out. The first time this may take a reading of the trace: until then it is pending.
async fn all_findings(State(app): State<App>, AxumQuery(pairs): Pairs) -> Result<Response, Refused> {
    let params = Params::new(pairs, &[])?;
    let trace = app.trace(&params)?;
    if trace.known_report().is_none() {
        // Others may have begun it; then this thread waits for them.
        tokio::task::spawn_blocking(move || drop(trace.report()));
        // It may be there at once.
        for _ in 0..10 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if trace.known_report().is_some() {
                break;
            }
        }
    }
    match trace.known_report() {
        None => Ok((StatusCode::ACCEPTED, Json(json!({ "pending": true }))).into_response()),
        Some(_) => {
            let answer = tokio::task::spawn_blocking(move || findings::answer(trace)).await;
            let answer = answer.map_err(|error| Refused::Failed(error.to_string()))?;
            Ok(Json(answer?).into_response())
        }
    }
}

/// A heap dump of a moment.
async fn heap_dump(State(app): State<App>, AxumQuery(pairs): Pairs) -> Result<Response, Refused> {
    let params = Params::new(pairs, &["at"])?;
    let (trace, tick) = (app.trace(&params)?, params.tick("at")?);
    let found = tokio::task::spawn_blocking(move || trace.moment(tick)).await;
    let moment: Arc<Moment> = found.map_err(|error| Refused::Failed(error.to_string()))??;
    let name = format!("attachment; filename=\"heap-{}.hprof\"", trace.clock(tick));
    let body = stream::body(move |out| {
        let mut out = BufWriter::new(out);
        hprof::write(trace.source(), &moment.resident.snapshot, &mut out)?;
        std::io::Write::flush(&mut out)
    });
    let headers = [(header::CONTENT_TYPE, "application/octet-stream".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, body).into_response())
}

/// An object that dies before this much more is allocated dies young.
const YOUNG: u64 = 1 << 20;

/// The stacks of what is selected, as `pprof` reads them.
async fn stacks(State(app): State<App>, AxumQuery(pairs): Pairs) -> Result<Response, Refused> {
    let params = Params::new(pairs, SELECTION)?;
    let trace = app.trace(&params)?;
    let turn = app.turns.clone().acquire_owned().await;
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        packed_stacks(trace, &params)
    });
    let body = work.await.map_err(|error| Refused::Failed(error.to_string()))??;
    let name = "attachment; filename=\"stacks.pb.gz\"";
    let headers = [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, body).into_response())
}

fn packed_stacks(trace: &'static Opened, params: &Params) -> Result<Vec<u8>, Refused> {
    selected(trace, params, |what, query, selection| {
        let profile = groups::profile(trace.subject(), what, query, YOUNG)?;
        let labels = Labels::of(trace.source(), trace.population());
        let tree = Tree::of(&profile, &trace.population().contexts, labels);
        let selection = objects_command(trace, query, &selection, "").unwrap_or(selection);
        let about = About {
            program: trace.path().to_owned(),
            nanos: trace.population().end.nanos,
            comments: vec![format!("only the objects of: {selection}")],
        };
        let mut out = Vec::new();
        export::write(&tree, Format::Pprof, Weight::Bytes, &about, &mut out)?;
        Ok(out)
    })
}
