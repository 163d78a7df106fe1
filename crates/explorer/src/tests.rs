//! What the API answers, asked as the page asks.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use et_analysis::Excerpt;
use et_reader::Trace;
use et_reader::source::{Reading, Source};
use et_web::{Guard, Token};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

/// A run of a real program, without the names of the JDK.
const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

fn explorer() -> Router {
    explorer_of(false)
}

fn explorer_of(with_sources: bool) -> Router {
    let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
    let population = et_lives::population(&source, None, Reading::default()).unwrap();
    let references = et_lives::references(&source, None, &population, Reading::default()).unwrap();
    let objects = Some(et_lives::by_time(None, &population).unwrap());
    let report = Box::new(|_: &Source| Err("there is no report".to_owned()));
    let find = |site: &str| {
        let lines = ["if (isEmpty()) {", "    rows = new Row[8];", "}"].map(str::to_owned).to_vec();
        (site == "shop.Cart.add:8").then(|| Excerpt { file: "shop/Cart.java".to_owned(), line: 8, first: 7, lines })
    };
    let find_source = with_sources.then(|| -> FindSource { Box::new(find) });
    let path = "my app.ettrace".to_owned();
    let sql = with_sources.then(|| Sql {
        folder: "my app.tables".to_owned(),
        is_of_one_run: true,
        queries: vec![SqlQuery { name: "all", question: "What is there?".to_owned(), text: "from objects" }],
        ask: Box::new(|statement| match statement {
            "from objects" => Ok(SqlRows {
                columns: vec!["object".to_owned()],
                rows: vec![vec!["7".to_owned()]],
                is_cut: false,
                engine: "DuckDB".to_owned(),
            }),
            other => Err(format!("{other}: no such table")),
        }),
    });
    let parts = Parts { path, source, population, objects, references, report, find_source, sql, without_deaths: None };
    router(vec![Opened::new(parts)], Guard { token: Token::new("t".into()), port: None, program: "et-test" })
}

fn raw(explorer: &Router, path: &str) -> (StatusCode, header::HeaderMap, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let request = Request::get(format!("/t/{path}")).body(Body::empty()).unwrap();
        let response = explorer.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        (status, headers, response.into_body().collect().await.unwrap().to_bytes().to_vec())
    })
}

fn ask(explorer: &Router, question: &str) -> (StatusCode, Value) {
    let (status, _, body) = raw(explorer, &format!("api/{question}"));
    (status, serde_json::from_slice(&body).unwrap())
}

fn get(explorer: &Router, question: &str) -> Value {
    let (status, answer) = ask(explorer, question);
    assert_eq!(status, StatusCode::OK, "{question}: {answer}");
    answer
}

/// SQL is answered where tables are known; what is wrong with it is told.
#[test]
fn statements_in_sql_are_answered() {
    let explorer = explorer_of(true);
    let sql = get(&explorer, "traces")[0]["sql"].clone();
    assert_eq!(sql["folder"], "my app.tables");
    assert_eq!(sql["queries"][0]["question"], "What is there?");
    let found = get(&explorer, "sql?q=from%20objects%0A");
    assert_eq!(found["columns"], json!(["object"]));
    assert_eq!(found["rows"], json!([["7"]]));
    assert_eq!(found["command"], "et-trace sql 'my app.tables' 'from objects'");
    for (question, expected) in [("sql?q=from%20x", "from x: no such table"), ("sql?q=%20", "q is missing")] {
        let (status, answer) = ask(&explorer, question);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{question}");
        assert!(answer["error"].as_str().unwrap().starts_with(expected), "{answer}");
    }
    let (status, answer) = ask(&self::explorer(), "sql?q=from%20objects");
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(answer["error"].as_str().unwrap().contains("--tables"), "{answer}");
}

/// From the class to its objects, to one of them, to who holds it, and along its life.
#[test]
fn one_gets_from_a_class_to_the_holders_of_an_object_and_through_its_life() {
    let explorer = explorer();
    let about = get(&explorer, "traces");
    let end = about[0]["end"]["tick"].as_u64().unwrap();
    let at = end / 2;
    let tree = get(&explorer, &format!("tree?by=package,class&at={at}"));
    let package = tree["lines"][0]["key"].as_str().unwrap();
    assert_eq!(tree["lines"][0]["curve"].as_array().unwrap().len(), 24);
    let classes = get(&explorer, &format!("tree?by=package,class&path={package}&at={at}"));
    assert_eq!(classes["total"]["objects"], tree["lines"][0]["objects"]);
    let command = format!("et-trace objects 'my app.ettrace' --alive-at tick:{at} --class '{package}.*'");
    assert_eq!(classes["command"], command);
    let of = |object: &Value| get(&explorer, &format!("object?id={}&at={at}", object["id"].as_str().unwrap()));
    let was_stored = |one: &Value| one["marks"].as_array().unwrap().iter().any(|mark| mark["kind"] == "stored");
    // Mirrors, say, are stored nowhere.
    let of_class = |line: &Value| {
        let class = line["key"].as_str().unwrap();
        let select = format!("by=package,class&path={package}&path={class}&at={at}");
        let objects = get(&explorer, &format!("objects?{select}&sort=retained&limit=20"));
        assert_eq!(objects["found"]["objects"], line["objects"]);
        let all = objects["objects"].as_array().unwrap().clone();
        assert!(all.iter().all(|object| object["class"] == class));
        all.into_iter().map(|object| (of(&object), object)).find(|(one, _)| was_stored(one))
    };
    let (one, object) = classes["lines"].as_array().unwrap().iter().find_map(of_class).unwrap();
    let id = object["id"].as_str().unwrap();
    assert_eq!((&one["object"]["id"], &one["isAlive"]), (&object["id"], &Value::Bool(true)));
    assert_eq!(one["retainedBytes"], object["retainedBytes"]);
    // Its path leads to it from outside, and each step holds the next.
    let steps = one["path"]["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["object"], id);
    for pair in steps.windows(2) {
        let holder = get(&explorer, &format!("object?id={}&at={at}", pair[0]["object"].as_str().unwrap()));
        let holds = holder["slots"].as_array().unwrap().iter().any(|slot| slot["other"]["id"] == pair[1]["object"]);
        assert!(holds, "{pair:?}");
    }
    // What holds it at a moment it does not hold before, if the mark says so.
    let marks = one["marks"].as_array().unwrap();
    assert_eq!(marks[0]["kind"], "made");
    let stored = marks.iter().find(|mark| mark["kind"] == "stored").unwrap();
    let when = stored["tick"].as_u64().unwrap();
    let holders = |tick: u64| get(&explorer, &format!("object?id={id}&at={tick}"))["holders"].as_array().unwrap().len();
    assert!(holders(when) > 0);
    assert!(one["life"].as_str().unwrap().contains("made"), "{}", one["life"]);
    let next = one["next"].as_u64().or(one["previous"].as_u64()).unwrap();
    assert_ne!(next, at);
}

/// The stacks of what is selected, as a file for `pprof`: of everything alive, and of one class.
#[test]
fn stacks_can_be_taken_to_pprof() {
    use std::io::Read;

    let explorer = explorer();
    let taken = |select: &str| {
        let (status, headers, body) = raw(&explorer, &format!("api/stacks.pb.gz?{select}"));
        assert_eq!(status, StatusCode::OK, "{select}");
        assert_eq!(headers[header::CONTENT_DISPOSITION], "attachment; filename=\"stacks.pb.gz\"");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*body).read_to_end(&mut unpacked).unwrap();
        String::from_utf8_lossy(&unpacked).into_owned()
    };
    let tree = get(&explorer, "tree?what=made&by=class");
    let [one, other] = [0, 1].map(|at| tree["lines"][at]["key"].as_str().unwrap().to_owned());
    let all = taken("what=made");
    assert!(all.contains(&one) && all.contains(&other) && all.contains("only the objects of: et-trace objects"));
    let some = taken(&format!("what=made&class={one}"));
    assert!(some.contains(&one) && !some.contains(&format!("{other}\u{1a}")) && some.len() < all.len());
    assert!(taken("at=end").len() > 100);
    assert_eq!(raw(&explorer, "api/stacks.pb.gz?what=none").0, StatusCode::BAD_REQUEST);
}

/// Of a trace without deaths there is all that was made, over the bytes that were allocated if it has no calls; what needs more is
/// refused with a sentence that says what to do.
#[test]
fn without_deaths_there_is_what_was_made() {
    let text = "# Elephant Tracks, dialect et\n# events alloc\nI a 10 LA; 0 0 0\nN b 18 LB; 0 0 1\nN c 18 LB; 0 0 1\nN d 40 LC; 0 0 1\n# lost 0\n";
    let source = Source::from_bytes(text.as_bytes().to_vec()).unwrap();
    let (population, _) = et_lives::births(&source, Reading::default()).unwrap();
    let parts = Parts {
        path: "a.txt".to_owned(),
        source,
        population,
        objects: None,
        references: Box::new(et_reader::references::NoReferences::default()),
        report: Box::new(|_: &Source| Err("there is no report".to_owned())),
        find_source: None,
        sql: None,
        without_deaths: Some("Deaths cannot be computed: use --events all.".to_owned()),
    };
    let explorer = router(vec![Opened::new(parts)], Guard { token: Token::new("t".into()), port: None, program: "t" });
    let about = &get(&explorer, "traces")[0];
    assert_eq!((&about["hasDeaths"], &about["clock"]), (&Value::Bool(false), &Value::from("bytes")));
    assert_eq!(about["end"]["tick"], about["bytes"]);
    let line = get(&explorer, "timeline");
    assert_eq!(line["allocated"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum::<u64>(), 0x70);
    let of = |select: &str| {
        let tree = get(&explorer, &format!("tree?what=made&by=class&{select}"));
        (tree["total"]["objects"].as_u64().unwrap(), tree["command"].as_str().unwrap().to_owned())
    };
    assert_eq!(of(""), (3, "et-trace objects a.txt --born tick:0..".to_owned()));
    // Up to the second of the three, and from there on.
    assert_eq!(of("to=24").0, 1);
    assert_eq!(of("from=24&to=48"), (1, "et-trace objects a.txt --born tick:24..tick:48".to_owned()));
    assert_eq!(of("from=24").0, 2);
    assert_eq!(get(&explorer, "objects?what=made&class=B")["found"]["objects"], 2);
    assert!(get(&explorer, "flame?what=made")["frames"].as_array().unwrap().len() > 2);
    for question in ["tree?by=class", "tree?what=died", "dominators", "treemap", "changes", "object?id=b"] {
        let (status, answer) = ask(&explorer, question);
        let said = answer["error"].as_str().unwrap_or_default();
        let expected = "This needs to know what is alive. Deaths cannot be computed: use --events all.";
        assert_eq!((status, said), (StatusCode::BAD_REQUEST, expected), "{question}");
    }
}

/// What came and went by root adds up to what did by class.
#[test]
fn changes_by_root_are_those_by_class() {
    let explorer = explorer();
    let end = get(&explorer, "traces")[0]["end"]["tick"].as_u64().unwrap();
    let changes = |by: &str| get(&explorer, &format!("changes?from={}&to={}&by={by}", end / 3, end / 3 * 2));
    let (by_class, by_root) = (changes("class"), changes("root"));
    let command = by_root["command"].as_str().unwrap();
    assert!(command.ends_with("--by root"), "{command}");
    let bytes = |of: &Value, what: &str| of["all"][what]["bytes"].as_u64().unwrap();
    for what in ["came", "went"] {
        let (one, other) = (bytes(&by_class, what), bytes(&by_root, what));
        // What happens at the moment itself is told apart otherwise.
        assert!(other > 0 && one.abs_diff(other) * 20 <= one, "{what}: {one} by class, {other} by root");
    }
    let (status, _) = ask(&explorer, &format!("changes?from={end}&to=1&by=root"));
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[test]
fn sites_have_lines_of_source_where_sources_are_known() {
    let explorer = explorer_of(true);
    assert_eq!(get(&explorer, "traces")[0]["hasSources"], true);
    let lines = get(&explorer, "source?name=shop.Cart.add:8&name=shop.Cart.add:9")["lines"].clone();
    let known = json!({ "file": "shop/Cart.java", "line": 8, "first": 7, "lines": ["if (isEmpty()) {", "    rows = new Row[8];", "}"] });
    assert_eq!(lines, json!({ "shop.Cart.add:8": known, "shop.Cart.add:9": null }));
    let without = explorer_of(false);
    assert_eq!(get(&without, "traces")[0]["hasSources"], false);
    let (status, answer) = ask(&without, "source?name=shop.Cart.add:8");
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(answer["error"].as_str().unwrap().contains("--source"), "{answer}");
}

#[test]
fn dominators_and_the_map_are_one_tree() {
    let explorer = explorer();
    let top = get(&explorer, "dominators?limit=5");
    let first = &top["lines"][0];
    let map = get(&explorer, "treemap");
    assert_eq!((&map["children"][0]["id"], &map["children"][0]["bytes"]), (&first["id"], &first["retainedBytes"]));
    assert_eq!(map["bytes"], top["heap"]["bytes"]);
    let below = get(&explorer, &format!("dominators?of={}", first["id"].as_str().unwrap()));
    assert_eq!(below["all"], first["dominates"]);
    assert_eq!(below["of"]["id"], first["id"]);
    // The boxes of a box fit into it.
    fn fits(of: &Value) {
        let children = of["children"].as_array().cloned().unwrap_or_default();
        let sum: u64 = children.iter().map(|child| child["bytes"].as_u64().unwrap()).sum();
        assert!(sum <= of["bytes"].as_u64().unwrap(), "{of}");
        children.iter().for_each(fits);
    }
    fits(&map);
}

#[test]
fn ranges_changes_and_flame_graphs_agree() {
    let explorer = explorer();
    let line = get(&explorer, "timeline");
    let ticks = line["ticks"].as_array().unwrap();
    let (from, to) = (ticks[ticks.len() / 4].as_u64().unwrap(), ticks[ticks.len() / 2].as_u64().unwrap());
    let sum = |name: &str| -> u64 {
        let all = line[name].as_array().unwrap();
        all[ticks.len() / 4 + 1..=ticks.len() / 2].iter().map(|bytes| bytes.as_u64().unwrap()).sum()
    };
    for (what, name, option) in [("made", "allocated", "--born"), ("died", "died", "--died")] {
        let select = format!("what={what}&from={from}&to={to}");
        let tree = get(&explorer, &format!("tree?{select}&by=site"));
        assert_eq!(tree["total"]["bytes"], sum(name), "{what}");
        assert_eq!(tree["lines"][0]["retainedBytes"], Value::Null);
        assert!(tree["command"].as_str().unwrap().ends_with(&format!("{option} tick:{from}..tick:{to}")));
        for down in ["callers", "sites"] {
            let graph = get(&explorer, &format!("flame?{select}&down={down}"));
            assert_eq!(graph["frames"][0]["bytes"][0], tree["total"]["bytes"]);
        }
    }
    let changes = get(&explorer, &format!("changes?from={from}&to={to}&by=class"));
    let amount = |name: &str| changes["all"][name]["bytes"].as_u64().unwrap();
    assert!(amount("came") <= sum("allocated") && amount("went") <= sum("died"));
}

#[test]
fn a_heap_dump_is_sent_as_it_is_made() {
    let (status, headers, body) = raw(&explorer(), "api/heap.hprof?at=1000");
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers[header::CONTENT_DISPOSITION], "attachment; filename=\"heap-1000.hprof\"");
    assert!(body.starts_with(b"JAVA PROFILE 1.0.2\0") && body.len() > 10_000);
}

#[test]
fn what_cannot_be_answered_is_said_in_a_sentence() {
    let explorer = explorer();
    let wrong = [
        ("tree?by=colour", 400, "by=colour: there is no such level; there are: package, class, "),
        ("tree?what=made&by=owner", 400, "by=owner is only known of what is alive at a moment"),
        ("tree?by=class&path=a&path=b", 400, "2 levels are opened, there are 1"),
        ("tree?clas=x", 400, "clas: there is no such parameter; there are: what, at, "),
        ("tree?at=1&at=2", 400, "at is given twice"),
        ("tree?at=soon", 400, "at=soon: a number is needed"),
        ("tree?what=made&from=5&to=2", 400, "from=5 is not before to=2"),
        ("tree?what=lost", 400, "what=lost: alive, made or died is needed"),
        ("tree?trace=1", 404, "trace=1: there is no such trace; 1 are open, from 0"),
        ("objects?sort=colour", 400, "sort=colour: size, age, "),
        ("objects?what=made&sort=retained", 400, "sort=retained is only known of what is alive"),
        ("object?id=zz", 400, "zz: ids are hexadecimal, as they are shown"),
        ("object", 400, "id is missing: which object?"),
        ("object?id=123456789", 404, "there is no object 123456789"),
        ("dominators?of=123456789", 404, "object 123456789 is not alive at end"),
        ("changes?by=owner", 400, "by=owner: class, site, context or root is needed"),
        ("flame?down=up", 400, "down=up: callers or sites is needed"),
        ("findings", 500, "there is no report"),
        ("nothing", 404, "not found"),
    ];
    for (question, status, why) in wrong {
        let (found, answer) = ask(&explorer, question);
        let said = answer["error"].as_str().unwrap_or_default();
        assert!(found == status && said.starts_with(why), "{question}: {found} {said}");
    }
    for (path, kind) in [("", "text/html"), ("explorer.js", "text/javascript"), ("explorer.css", "text/css")] {
        let (status, headers, _) = raw(&explorer, path);
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(headers[header::CONTENT_TYPE].to_str().unwrap().starts_with(kind), "{path}");
        assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    }
    assert_eq!(raw(&explorer, "other.js").0, StatusCode::NOT_FOUND);
}
