//! The page and the API behind it (`docs/monitor.md`), for who has the URL with the token.

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

/// What handlers know.
#[derive(Debug)]
pub struct App {
    /// All VMs.
    pub monitor: Arc<Monitor>,
    /// What URLs begin with.
    pub token: Token,
    /// Where the page is; `None` for a command that asks by itself.
    pub port: Option<u16>,
    /// Where heap dumps go that have no path.
    pub folder: PathBuf,
}

/// A token that nobody guesses.
pub fn new_token() -> std::io::Result<Token> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Token::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// All that is answered.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .merge(page::routes())
        .nest("/{token}/api", api::routes())
        .fallback(guard::unknown)
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
        .layer(axum::extract::DefaultBodyLimit::max(16 << 10))
        .with_state(app)
}
