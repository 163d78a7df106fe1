//! Access control. The page is on a loopback address, but any page in the user's browser can send requests there, and a
//! host name owned by others can resolve to it (DNS rebinding). So the URL contains a secret token, and the host and
//! origin of requests are checked.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::answer::as_json;

/// The secret in the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The token consists of letters and digits.
    pub fn new(token: String) -> Self {
        Self(token)
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Constant-time comparison for tokens of the same length.
    fn is(&self, other: &str) -> bool {
        let differs = self.0.bytes().zip(other.bytes()).fold(0, |all, (mine, its)| all | (mine ^ its));
        differs == 0 && self.0.len() == other.len()
    }
}

/// Who may ask.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Prefix of URLs.
    pub token: Token,
    /// Port of the page; `None` if it is asked from within the process.
    pub port: Option<u16>,
    /// The command that prints the URL.
    pub program: &'static str,
}

/// Routes that only those reach who have the URL. What is below `/TOKEN/api` fails in JSON.
pub fn guarded(routes: Router, guard: Guard) -> Router {
    routes.fallback(unknown).layer(middleware::from_fn_with_state(Arc::new(guard), check))
}

/// Lets a request through, or says why not; every answer says what a browser may do with it.
async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().split('/').nth(2) == Some("api");
    let mut response = match allowed(&guard, request.headers(), request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, why + "\n").into_response(),
    };
    if is_api {
        response = as_json(response).await;
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    response
}

const HEADERS: [(&str, &str); 7] = [
    // Nothing but what comes from here: names out of programs are text, whatever they are.
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // The URL is the key: it goes nowhere else.
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

fn allowed(guard: &Guard, headers: &HeaderMap, path: &str) -> Result<(), String> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    if let Some(port) = guard.port {
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        let host = text(header::HOST).unwrap_or("");
        if !hosts.iter().any(|it| it.eq_ignore_ascii_case(host)) {
            return Err("the request is for another host".to_owned());
        }
        if let Some(origin) = text(header::ORIGIN)
            && !hosts.iter().any(|it| format!("http://{it}").eq_ignore_ascii_case(origin))
        {
            return Err("requests of other pages are not answered".to_owned());
        }
        if text(HeaderName::from_static("sec-fetch-site")).is_some_and(|site| !["same-origin", "none"].contains(&site))
        {
            return Err("requests of other pages are not answered".to_owned());
        }
    }
    let token = path.trim_start_matches('/').split('/').next().unwrap_or("");
    if !guard.token.is(token) {
        return Err(format!("the URL has no valid token: open the one that {} printed", guard.program));
    }
    Ok(())
}

/// The response for an unknown path after a valid token.
async fn unknown() -> Response {
    (StatusCode::NOT_FOUND, Body::from("not found\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard { token: Token::new("s3cret".into()), port: Some(8790), program: "et-test" }
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn only_the_right_host_origin_and_token_get_in() {
        let here = [("host", "127.0.0.1:8790")];
        assert!(allowed(&guard(), &headers(&here), "/s3cret/api/vms").is_ok());
        assert!(
            allowed(&guard(), &headers(&[("host", "LOCALHOST:8790"), ("origin", "http://localhost:8790")]), "/s3cret/")
                .is_ok()
        );
        for path in ["/", "/s3cre/", "/s3crett/", "/S3CRET/", "/api/vms", "/x/s3cret/"] {
            assert!(allowed(&guard(), &headers(&here), path).is_err(), "{path}");
        }
        // Another host name that resolves here; another page that knows the token.
        for (name, value) in [
            ("host", "evil.example:8790"),
            ("host", "127.0.0.1"),
            ("host", "127.0.0.1:8790.evil.example"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://127.0.0.1:8791"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let mut headers = headers(&here);
            headers.insert(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
            assert!(allowed(&guard(), &headers, "/s3cret/").is_err(), "{name}: {value}");
        }
        assert!(allowed(&guard(), &HeaderMap::new(), "/s3cret/").is_err(), "no host");
    }
}
