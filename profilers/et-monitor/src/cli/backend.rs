//! The backend of commands: a running monitor, or one within the command itself. Both answer the same requests.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response, header};
use et_cli::Heartbeat;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::ServiceExt;

use super::place::{self, Running};
use super::{CliError, PROGRAM, ScanArgs};
use crate::monitor::Monitor;
use crate::web::{self, App};

/// How long a monitor may take to answer at all: heap dumps take long.
const PATIENCE: Duration = Duration::from_secs(1000);

/// The backend that is used.
#[derive(Debug)]
pub(super) enum Backend {
    Running(Running),
    Own { token: String, router: Router },
}

impl Backend {
    pub(super) async fn open(scan: &ScanArgs) -> Result<Self, CliError> {
        if let Some(running) = place::find() {
            return Ok(Self::Running(running));
        }
        let monitor = Monitor::new(None);
        monitor.scan_once(&scan.discovery()).await;
        let token = web::new_token().map_err(CliError::Start)?;
        let folder = std::env::current_dir().map_err(CliError::Start)?;
        let app = App { monitor, token: token.clone(), port: None, folder };
        Ok(Self::Own { token: token.as_str().to_owned(), router: web::router(Arc::new(app)) })
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, CliError> {
        self.ask(Method::GET, path, Bytes::new()).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.ask(Method::POST, path, body.to_string().into()).await
    }

    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Value, CliError> {
        let token = match self {
            Self::Running(running) => &running.token,
            Self::Own { token, .. } => token,
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("/{token}/api/{path}"))
            .header(header::CONTENT_TYPE, "application/json");
        let silent = |error: &dyn std::fmt::Display| CliError::Silent(error.to_string());
        // A heap dump of a large heap takes minutes.
        let _heartbeat = Heartbeat::new(PROGRAM, || "waiting for the VM".to_owned());
        let asked = async {
            let (parts, bytes) = match self {
                Self::Own { router, .. } => {
                    let request = request.body(Body::from(body)).map_err(|error| silent(&error))?;
                    let Ok(answer) = router.clone().oneshot(request).await;
                    whole(answer).await.map_err(|error| silent(&error))?
                }
                Self::Running(running) => {
                    let request = request
                        .header(header::HOST, format!("127.0.0.1:{}", running.port))
                        .header(header::CONNECTION, "close");
                    let request = request.body(Body::from(body)).map_err(|error| silent(&error))?;
                    let stream =
                        TcpStream::connect(("127.0.0.1", running.port)).await.map_err(|error| silent(&error))?;
                    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
                        .await
                        .map_err(|error| silent(&error))?;
                    tokio::spawn(connection);
                    let answer = sender.send_request(request).await.map_err(|error| silent(&error))?;
                    whole(answer).await.map_err(|error| silent(&error))?
                }
            };
            answer(parts.status.is_success(), &bytes)
        };
        timeout(PATIENCE, asked).await.unwrap_or_else(|error| Err(silent(&error)))
    }

    /// The number of a VM by its process, or by a part of its program's name.
    pub(super) async fn find(&self, vm: &str) -> Result<(u64, Value), CliError> {
        let list = self.get("vms").await?;
        let here: Vec<&Value> = list["vms"].as_array().into_iter().flatten().filter(|it| it["here"] == true).collect();
        if here.is_empty() {
            return Err(CliError::none(&list));
        }
        let is_process = |it: &&&Value| vm.parse::<u64>().is_ok_and(|pid| it["pid"] == pid);
        let has_name = |it: &&&Value| it["application"].as_str().is_some_and(|name| name.contains(vm));
        let found: Vec<&&Value> = match here.iter().find(is_process) {
            Some(one) => vec![one],
            None => here.iter().filter(has_name).collect(),
        };
        match found[..] {
            [one] => Ok((one["id"].as_u64().unwrap_or(0), (*one).clone())),
            [] => Err(CliError::NoSuchVm { vm: vm.to_owned() }),
            _ => {
                let pids: Vec<String> = found.iter().map(|it| it["pid"].to_string()).collect();
                Err(CliError::Ambiguous { vm: vm.to_owned(), pids: pids.join(" or ") })
            }
        }
    }
}

async fn whole<B>(answer: Response<B>) -> Result<(axum::http::response::Parts, Bytes), B::Error>
where
    B: axum::body::HttpBody,
{
    let (parts, body) = answer.into_parts();
    Ok((parts, body.collect().await?.to_bytes()))
}

fn answer(is_good: bool, bytes: &[u8]) -> Result<Value, CliError> {
    let value =
        serde_json::from_slice(bytes).unwrap_or_else(|_| json!({ "error": String::from_utf8_lossy(bytes).trim() }));
    match is_good {
        true => Ok(value),
        false => Err(CliError::Refused(value["error"].as_str().unwrap_or("it does not say why").to_owned())),
    }
}
