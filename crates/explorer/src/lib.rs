//! A trace as a place to walk around in: an API that answers questions about moments, groups, objects and references, and the page that asks them
//! (`docs/explore.md`).
//!
//! Answers come from the life table and the table of references, never from the events, and what is alive at a moment is worked out once for all
//! questions about it ([`opened`]).

mod answer;
mod api;
mod findings;
mod moments;
mod object;
mod opened;
mod page;
mod params;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use et_web::{Guard, guarded};

pub use opened::{AskSql, FindSource, Opened, Parts, Sql, SqlQuery, SqlRows};

/// The page and its API for some traces. They are kept for as long as the process runs.
pub fn router(traces: Vec<Opened>, guard: Guard) -> Router {
    let traces: Arc<[&'static Opened]> = traces.into_iter().map(|opened| &*Box::leak(Box::new(opened))).collect();
    // What is on the first page of a large trace takes seconds, which somebody needs to open the address anyway. Without a thread the page asks for it itself.
    if let Some(&trace) = traces.first() {
        let _ = et_system::threads::spawn(move || trace.prepare());
    }
    let api = api::routes().with_state(api::App::new(traces));
    let routes = Router::new()
        // With the trailing slash, so that relative URLs are below the token.
        .route("/{token}/", get(page::page))
        .route("/{token}/{file}", get(page::file))
        .nest("/{token}/api", api);
    guarded(routes, guard)
}
