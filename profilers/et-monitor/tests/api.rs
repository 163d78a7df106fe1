//! Errors of the API are JSON, whatever is wrong with a request.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use et_monitor_cli::monitor::Monitor;
use et_monitor_cli::web::{self, App, Token};
use serde_json::Value;
use tower::ServiceExt;

const TOKEN: &str = "s3cret";

async fn ask(method: Method, path: &str, kind: Option<&str>, body: String) -> (StatusCode, String, Value) {
    let app = App { monitor: Monitor::new(None), token: Token::new(TOKEN.into()), port: None, folder: "/".into() };
    let mut request = Request::builder().method(method).uri(path);
    if let Some(kind) = kind {
        request = request.header(header::CONTENT_TYPE, kind);
    }
    let answer = web::router(Arc::new(app)).oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let kind = answer.headers().get(header::CONTENT_TYPE).map(|it| it.to_str().unwrap().to_owned());
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, kind.unwrap_or_default(), serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

#[tokio::test]
async fn every_failure_is_json() {
    let json = Some("application/json");
    let huge = format!("{{\"path\": \"{}\"}}", "x".repeat(20_000));
    for (method, path, kind, body, status, why) in [
        ("GET", "nothing", None, "", 404, "not found"),
        ("GET", "vms/1/nothing", None, "", 404, "not found"),
        ("GET", "vms/1", None, "", 404, "not found"),
        ("POST", "vms", json, "{}", 405, "Method Not Allowed"),
        ("GET", "vms/1/gc", None, "", 405, "Method Not Allowed"),
        ("GET", "vms/x/heap", None, "", 400, "`x`"),
        ("GET", "vms/1/objects/-1", None, "", 400, "-1"),
        ("GET", "vms/1/heap", None, "", 404, "there is no VM 1"),
        ("GET", "vms/1/heap?fresh=maybe", None, "", 400, "fresh"),
        ("GET", "vms/1/heap?frsh=true", None, "", 400, "unknown field `frsh`"),
        ("GET", "vms/1/histogram?most=-1", None, "", 400, "most"),
        ("GET", "events?vm=one", None, "", 400, "vm"),
        // Bodies are looked at, those of requests that want nothing in them as well.
        ("POST", "vms/1/gc", None, "{}", 415, "application/json"),
        ("POST", "vms/1/gc", json, "", 400, "EOF"),
        ("POST", "vms/1/gc", json, "{", 400, "JSON"),
        ("POST", "vms/1/gc", json, "[]", 400, "an object"),
        ("POST", "vms/1/gc", json, "{\"full\": true}", 400, "unknown field `full`"),
        ("POST", "vms/1/select", json, "{\"port\": 1}", 400, "unknown field `port`"),
        ("POST", "vms/1/walk", json, "{\"colect\": true}", 400, "unknown field `colect`"),
        ("POST", "vms/1/dump", json, "{\"file\": \"/tmp/x\"}", 400, "unknown field `file`"),
        ("POST", "vms/1/dump", json, &huge, 413, "length limit"),
        ("POST", "vms/1/log-heap", json, "{\"nam\": \"x\"}", 400, "unknown field `nam`"),
        ("POST", "vms/1/exit", json, "{\"status\": \"7\"}", 400, "u32"),
        ("POST", "vms/1/exit", json, "{\"status\": -1}", 400, "-1"),
        ("POST", "vms/1/gc", json, "{}", 404, "there is no VM 1"),
    ] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (its, kind, said) = ask(method, &format!("/{TOKEN}/api/{path}"), kind, body.to_owned()).await;
        let error = said["error"].as_str().unwrap_or_default();
        assert!(
            its.as_u16() == status && kind == "application/json" && error.contains(why),
            "{path} {body}: {its}, {kind}, {said} instead of {status}, {why}"
        );
    }
    let (status, kind, said) = ask(Method::GET, "/wrong/api/vms", None, String::new()).await;
    assert_eq!((status, &kind[..]), (StatusCode::FORBIDDEN, "application/json"));
    assert!(said["error"].as_str().unwrap().contains("no valid token"));
    // For browsers, errors outside of the API are text.
    let (status, kind, _) = ask(Method::GET, "/wrong/", None, String::new()).await;
    assert_eq!((status, &kind[..]), (StatusCode::FORBIDDEN, "text/plain; charset=utf-8"));
}

#[tokio::test]
async fn what_is_no_failure_stays_as_it_is() {
    let (status, kind, said) = ask(Method::GET, &format!("/{TOKEN}/api/vms"), None, String::new()).await;
    assert_eq!((status, &kind[..]), (StatusCode::OK, "application/json"));
    assert_eq!((said["vms"].clone(), said["silent"].clone()), (Value::Array(vec![]), Value::Array(vec![])));
}
