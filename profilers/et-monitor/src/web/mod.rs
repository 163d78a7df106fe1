//! The page and its API (`docs/monitor.md`), for clients that have the URL with the token.

mod api;
mod events;
mod page;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;

use crate::monitor::Monitor;
use et_web::{Guard, guarded};
pub use et_web::{Token, new_token};

/// State of request handlers.
#[derive(Debug)]
pub struct App {
    pub monitor: Arc<Monitor>,
    /// Prefix of URLs.
    pub token: Token,
    /// Port of the page; `None` if the monitor is within a command.
    pub port: Option<u16>,
    /// Where heap dumps go that have no path.
    pub folder: PathBuf,
}

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    let guard = Guard { token: app.token.clone(), port: app.port, program: "et-monitor" };
    let routes = Router::new().merge(page::routes()).nest("/{token}/api", api::routes()).with_state(app);
    guarded(routes, guard).layer(axum::extract::DefaultBodyLimit::max(16 << 10))
}
