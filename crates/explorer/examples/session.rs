//! Measures how long the explorer takes to answer: a session of clicks as a user makes them, at random moments, one after the other.
//!
//! `cargo run --release -p et-explorer --example session -- app.ettrace [CLICKS]` prints how long each kind of question took: median, 99th
//! percentile and maximum. The life table and the table of references are kept beside the trace, and made if need be.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use et_explorer::{Opened, Parts, router};
use et_reader::Trace;
use et_reader::source::{Reading, Source};
use et_web::{Guard, Token};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

type Failed = Box<dyn std::error::Error>;

fn open(path: &str) -> Result<Router, Failed> {
    let mut source = Source::from(Trace::open(path.as_ref())?);
    let Source::Trace(trace) = &mut source else { return Err("a text has no life table".into()) };
    let lives = et_lives::attach(trace, None);
    let population = et_lives::population(&source, lives.as_deref(), Reading::default())?;
    let references = et_lives::references(&source, lives.as_deref(), &population, Reading::default())?;
    println!("{} objects, {} references", population.objects, references.len());
    let objects = et_lives::by_time(lives.as_deref(), &population)?;
    let report = Box::new(|_: &Source| Err("not asked for here".to_owned()));
    let path = path.to_owned();
    let parts = Parts {
        path,
        source,
        population,
        objects: Some(objects),
        references,
        report,
        find_source: None,
        sql: None,
        without_deaths: None,
    };
    Ok(router(vec![Opened::new(parts)], Guard { token: Token::new("t".into()), port: None, program: "session" }))
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

struct Session {
    explorer: Router,
    times: BTreeMap<&'static str, Vec<Duration>>,
}

impl Session {
    async fn ask(&mut self, kind: &'static str, question: &str) -> Result<Value, Failed> {
        let started = Instant::now();
        let request = Request::get(format!("/t/api/{question}")).body(Body::empty())?;
        let response = self.explorer.clone().oneshot(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        self.times.entry(kind).or_default().push(started.elapsed());
        let answer: Value = serde_json::from_slice(&body)?;
        if status.is_success() { Ok(answer) } else { Err(format!("{question}: {answer}").into()) }
    }
}

fn of<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

async fn run(explorer: Router, clicks: usize) -> Result<Session, Failed> {
    let mut session = Session { explorer, times: BTreeMap::new() };
    let end = session.ask("traces", "traces").await?[0]["end"]["tick"].as_u64().unwrap_or(1);
    session.ask("timeline (first)", "timeline").await?;
    session.ask("tree (first)", "tree?by=class").await?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut done = 0;
    while done < clicks {
        // The moment is chosen, and the view follows.
        let at = random.below(end) + 1;
        let tree = session.ask("a new moment", &format!("tree?by=package,class&at={at}")).await?;
        let package = of(&tree["lines"][0], "key").to_owned();
        let opened = format!("by=package,class&path={package}&at={at}");
        let classes = session.ask("open a group", &format!("tree?{opened}")).await?;
        let class = of(&classes["lines"][0], "key").replace('[', "%5B").replace(']', "%5D").replace('$', "%24");
        let sorts = ["size", "retained", "age", "drag"];
        let sort = sorts[random.below(4) as usize];
        let listed = session.ask("objects", &format!("objects?{opened}&path={class}&sort={sort}")).await?;
        let all = listed["objects"].as_array().cloned().unwrap_or_default();
        if let Some(object) = all.get(random.below(all.len() as u64) as usize) {
            let one = session.ask("object", &format!("object?id={}&at={at}", of(object, "id"))).await?;
            if let Some(holder) = one["holders"][0]["other"]["id"].as_str() {
                session.ask("object", &format!("object?id={holder}&at={at}")).await?;
            }
        }
        session.ask("dominators", &format!("dominators?at={at}")).await?;
        session.ask("treemap", &format!("treemap?at={at}")).await?;
        session.ask("flame of a moment", &format!("flame?at={at}")).await?;
        let from = random.below(at);
        let range = format!("from={from}&to={at}");
        session.ask("flame of a range", &format!("flame?what=made&{range}")).await?;
        session.ask("groups of a range", &format!("tree?what=died&{range}&by=site")).await?;
        session.ask("changes", &format!("changes?{range}")).await?;
        done += 11;
    }
    Ok(session)
}

/// Most memory that the process has had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

fn main() -> Result<(), Failed> {
    // As et-trace does.
    et_system::memory::keep_freed_blocks();
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which trace?")?;
    let clicks = args.next().map_or(Ok(200), |text| text.parse())?;
    let explorer = open(&path)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let session = runtime.block_on(run(explorer, clicks))?;
    let line = |kind: &str, times: &mut Vec<Duration>| {
        times.sort_unstable();
        let at = |share: usize| times[(times.len() * share).div_ceil(100).max(1) - 1].as_millis();
        println!("{kind:20} {:>6} {:>8} ms {:>8} ms {:>8} ms", times.len(), at(50), at(99), at(100));
    };
    println!("{:20} {:>6} {:>11} {:>11} {:>11}", "question", "times", "median", "99 %", "most");
    let mut all = Vec::new();
    for (kind, mut times) in session.times {
        line(kind, &mut times);
        all.append(&mut times);
    }
    line("all", &mut all);
    println!("{} MiB at most", peak());
    Ok(())
}
