//! The page. It is the same for all traces; what it shows comes by the API.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

const PAGE: &str = include_str!("../assets/index.html");

/// A file of the assets, by its name.
macro_rules! file {
    ($kind:ident $folder:literal $name:literal) => {
        ($name, $kind, include_str!(concat!("../assets/", $folder, $name)))
    };
}

/// Scripts and styles; `cargo xtask assets` makes the libraries. Amounts, colours and lines of source are those of reports.
const FILES: [(&str, &str, &str); 27] = [
    file!(JAVASCRIPT "vendor/" "libraries.js"),
    file!(CSS "vendor/" "libraries.css"),
    file!(JAVASCRIPT "../../report/assets/" "words.js"),
    file!(CSS "../../report/assets/" "colours.css"),
    file!(CSS "../../report/assets/" "source.css"),
    file!(CSS "" "explorer.css"),
    file!(JAVASCRIPT "" "api.js"),
    file!(JAVASCRIPT "" "changes.js"),
    file!(JAVASCRIPT "" "clock.js"),
    file!(JAVASCRIPT "" "dom.js"),
    file!(JAVASCRIPT "" "dominators.js"),
    file!(JAVASCRIPT "" "explorer.js"),
    file!(JAVASCRIPT "" "findings.js"),
    file!(JAVASCRIPT "" "flame.js"),
    file!(JAVASCRIPT "" "groups.js"),
    file!(JAVASCRIPT "" "object.js"),
    file!(JAVASCRIPT "" "objects.js"),
    file!(JAVASCRIPT "" "parts.js"),
    file!(JAVASCRIPT "" "rows.js"),
    file!(JAVASCRIPT "" "selecting.js"),
    file!(JAVASCRIPT "" "source.js"),
    file!(JAVASCRIPT "" "sql.js"),
    file!(JAVASCRIPT "" "state.js"),
    file!(JAVASCRIPT "" "timeline.js"),
    file!(JAVASCRIPT "" "tree.js"),
    file!(JAVASCRIPT "" "treemap.js"),
    file!(JAVASCRIPT "" "units.js"),
];
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

pub(crate) async fn page() -> Html<&'static str> {
    Html(PAGE)
}

/// A file below the token.
pub(crate) async fn file(Path((_, name)): Path<(String, String)>) -> Response {
    match FILES.iter().find(|(its, ..)| *its == name) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => (StatusCode::NOT_FOUND, "no such file\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_that_the_page_asks_for_are_there() {
        let texts = FILES.iter().map(|(.., text)| *text).chain([PAGE]);
        let mut asked = 0;
        for text in texts {
            let links = text.split('"').filter_map(|part| part.strip_prefix("./").or(Some(part)));
            for name in links.filter(|name| !name.contains(char::is_whitespace)) {
                if (name.ends_with(".js") || name.ends_with(".css")) && !name.contains('/') {
                    assert!(FILES.iter().any(|(known, ..)| *known == name), "{name}");
                    asked += 1;
                }
            }
        }
        assert!(asked > FILES.len(), "{asked}");
    }
}
