//! JSON for programs, and for the page.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{App, events};
use crate::actions::{ActionError, Actions, Asked};
use crate::connection::RequestError;
use crate::vm::{Vm, now_ms};
use et_web::failure;

type Shared = State<Arc<App>>;
type Answer = Result<Json<Value>, ActionError>;

/// Routes below `/TOKEN/api`.
pub fn routes() -> Router<Arc<App>> {
    let vm = Router::new()
        .route("/threads", get(threads))
        .route("/threads/{thread}", get(thread))
        .route("/heap", get(heap))
        .route("/bitmap", get(bitmap))
        .route("/monitors", get(monitors))
        .route("/allocations", get(allocations))
        .route("/histogram", get(histogram))
        .route("/objects/{object}", get(object))
        .route("/classes/{class}", get(class))
        .route("/classes/{class}/instances", get(instances))
        .route("/monitors/{object}", get(monitor))
        .route("/gc", post(collect_garbage))
        .route("/walk", post(walk))
        .route("/dump", post(dump))
        .route("/log-heap", post(log_heap))
        .route("/exit", post(exit))
        .route("/select", post(select));
    Router::new().route("/vms", get(vms)).route("/events", get(events::stream)).nest("/vms/{vm}", vm)
}

impl IntoResponse for ActionError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::NoVm(_) => StatusCode::NOT_FOUND,
            Self::Gone(_) | Self::Request(RequestError::Gone) => StatusCode::GONE,
            Self::NotOffered { .. } => StatusCode::NOT_IMPLEMENTED,
            Self::Relative { .. } | Self::Exists { .. } | Self::Status(_) => StatusCode::BAD_REQUEST,
            Self::NoSegments | Self::Request(RequestError::Late(_)) => StatusCode::GATEWAY_TIMEOUT,
            Self::Dump { .. } | Self::Confused | Self::Request(_) => StatusCode::BAD_GATEWAY,
        };
        failure(status, &self.to_string())
    }
}

/// The body of a `POST`: an object with what is known here, and nothing else.
struct Given<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Given<T> {
    type Rejection = Response;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Response> {
        let Json(value) = Json::<Value>::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        if !value.is_object() {
            return Err(failure(StatusCode::BAD_REQUEST, "the body is to be an object: {} at least"));
        }
        serde_json::from_value(value)
            .map(Self)
            .map_err(|error| failure(StatusCode::BAD_REQUEST, &format!("the body: {error}")))
    }
}

/// The empty object `{}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
struct OfVm {
    vm: u32,
}

fn known(app: &App, id: u32, look: impl FnOnce(&Vm) -> Value) -> Answer {
    app.monitor.look(id, look).map(Json).ok_or(ActionError::NoVm(id))
}

async fn vms(State(app): Shared) -> Json<Value> {
    Json(app.monitor.list())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fresh {
    /// Ask the VM, rather than say what it said last.
    #[serde(default)]
    fresh: bool,
}

async fn threads(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Query(Fresh { fresh }): Query<Fresh>) -> Answer {
    match fresh {
        true => Actions::on(&app.monitor, vm)?.threads().await.map(Json),
        false => known(&app, vm, Vm::threads),
    }
}

async fn heap(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Query(Fresh { fresh }): Query<Fresh>) -> Answer {
    match fresh {
        true => Actions::on(&app.monitor, vm)?.heap().await.map(Json),
        false => known(&app, vm, Vm::heap),
    }
}

#[derive(Deserialize)]
struct OfThread {
    vm: u32,
    thread: u32,
}

/// Details and stack of a thread, as far as the VM provides them.
async fn thread(State(app): Shared, Path(OfThread { vm, thread }): Path<OfThread>) -> Answer {
    let actions = Actions::on(&app.monitor, vm)?;
    let (info, stack) = (actions.ask(Asked::Thread(thread)).await, actions.ask(Asked::Stack(thread)).await);
    let said = |answer: &Result<Value, ActionError>| match answer {
        Ok(value) => value.clone(),
        Err(error) => json!({ "error": error.to_string() }),
    };
    match (info, stack) {
        (Err(error), Err(_)) => Err(error),
        (info, stack) => Ok(Json(json!({ "info": said(&info), "stack": said(&stack) }))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichHeap {
    #[serde(default)]
    native: bool,
}

async fn bitmap(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Query(which): Query<WhichHeap>) -> Answer {
    known(&app, vm, |vm| vm.bitmap(which.native).unwrap_or(Value::Null))
}

async fn monitors(State(app): Shared, Path(OfVm { vm }): Path<OfVm>) -> Answer {
    known(&app, vm, Vm::monitors)
}

async fn allocations(State(app): Shared, Path(OfVm { vm }): Path<OfVm>) -> Answer {
    Actions::on(&app.monitor, vm)?.allocations().map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Most {
    #[serde(default = "most")]
    most: u32,
}

fn most() -> u32 {
    100
}

async fn histogram(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Query(Most { most }): Query<Most>) -> Answer {
    Actions::on(&app.monitor, vm)?.ask(Asked::Histogram { rows: most }).await.map(Json)
}

#[derive(Deserialize)]
struct OfObject {
    vm: u32,
    object: u64,
}

async fn object(State(app): Shared, Path(OfObject { vm, object }): Path<OfObject>) -> Answer {
    Actions::on(&app.monitor, vm)?.ask(Asked::Object(object)).await.map(Json)
}

async fn monitor(State(app): Shared, Path(OfObject { vm, object }): Path<OfObject>) -> Answer {
    Actions::on(&app.monitor, vm)?.ask(Asked::Monitor(object)).await.map(Json)
}

#[derive(Deserialize)]
struct OfClass {
    vm: u32,
    class: u64,
}

async fn class(State(app): Shared, Path(OfClass { vm, class }): Path<OfClass>) -> Answer {
    Actions::on(&app.monitor, vm)?.ask(Asked::Class(class)).await.map(Json)
}

async fn instances(
    State(app): Shared,
    Path(OfClass { vm, class }): Path<OfClass>,
    Query(Most { most }): Query<Most>,
) -> Answer {
    Actions::on(&app.monitor, vm)?.ask(Asked::Instances { class, most }).await.map(Json)
}

async fn collect_garbage(
    State(app): Shared,
    Path(OfVm { vm }): Path<OfVm>,
    Given(Nothing {}): Given<Nothing>,
) -> Answer {
    Actions::on(&app.monitor, vm)?.collect_garbage().await.map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WalkBody {
    #[serde(default)]
    native: bool,
    #[serde(default)]
    objects: bool,
    #[serde(default)]
    collect: bool,
}

async fn walk(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Given(body): Given<WalkBody>) -> Answer {
    Actions::on(&app.monitor, vm)?.walk(body.native, body.objects, body.collect).await.map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DumpBody {
    path: Option<PathBuf>,
}

async fn dump(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Given(body): Given<DumpBody>) -> Answer {
    let actions = Actions::on(&app.monitor, vm)?;
    let pid = app.monitor.look(vm, Vm::pid).unwrap_or(0);
    let path = body.path.unwrap_or_else(|| app.folder.join(format!("heap-{pid}-{}.hprof", now_ms())));
    actions.dump(&path).await.map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExitBody {
    #[serde(default)]
    status: u32,
}

async fn exit(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Given(body): Given<ExitBody>) -> Answer {
    Actions::on(&app.monitor, vm)?.exit(body.status).await.map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogBody {
    name: Option<String>,
}

async fn log_heap(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Given(body): Given<LogBody>) -> Answer {
    let name = body.name.unwrap_or_else(|| "on demand".to_owned());
    Actions::on(&app.monitor, vm)?.log_heap(name).await.map(Json)
}

async fn select(State(app): Shared, Path(OfVm { vm }): Path<OfVm>, Given(Nothing {}): Given<Nothing>) -> Answer {
    match app.monitor.select(vm) {
        true => Ok(Json(app.monitor.list())),
        false => Err(ActionError::NoVm(vm)),
    }
}
