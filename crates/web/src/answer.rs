//! How an API says that something failed.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use serde_json::json;

/// A failure as an API says it.
pub fn failure(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

const OF_BODIES: [header::HeaderName; 3] = [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// Errors of the framework (invalid path, query, method or body) are text: they are converted to the format of all
/// others.
pub(crate) async fn as_json(response: Response) -> Response {
    /// Maximum length of an error message in bytes.
    const MOST: usize = 16 << 10;
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    let (parts, body) = response.into_parts();
    if parts.status.as_u16() < 400 || parts.headers.get(header::CONTENT_TYPE).is_some_and(is_json) {
        return Response::from_parts(parts, body);
    }
    let text = axum::body::to_bytes(body, MOST).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let why = match text.trim() {
        "" => parts.status.canonical_reason().unwrap_or("it failed"),
        text => text,
    };
    let status = if parts.status == StatusCode::UNPROCESSABLE_ENTITY { StatusCode::BAD_REQUEST } else { parts.status };
    let mut said = failure(status, why);
    // Which methods there are, say.
    for (name, value) in parts.headers.iter().filter(|(name, _)| !OF_BODIES.contains(name)) {
        said.headers_mut().insert(name, value.clone());
    }
    said
}
