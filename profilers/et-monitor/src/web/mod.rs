//! The page and its API (`docs/monitor.md`), for clients that have the URL with the token.

mod api;
mod events;
mod guard;
mod page;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::middleware;

use crate::monitor::Monitor;
pub use guard::Token;

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

/// Creates a random token.
pub fn new_token() -> std::io::Result<Token> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Token::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(page::routes())
        .nest("/{token}/api", api::routes())
        .fallback(guard::unknown)
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
        .layer(axum::extract::DefaultBodyLimit::max(16 << 10))
        .with_state(app)
}
