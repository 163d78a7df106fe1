//! Lines of source at sites.

use std::sync::LazyLock;

use et_analysis::Excerpt;
use maud::{Markup, html};
use rustc_hash::FxHashMap;

/// Lines of source by the names of their sites, or of frames with lines.
pub type Excerpts = FxHashMap<String, Excerpt>;

/// Where no sources were given.
pub(crate) static NONE: LazyLock<Excerpts> = LazyLock::new(Excerpts::default);

/// A line, which opens those around it. This takes no script.
pub(crate) fn source(excerpt: &Excerpt) -> Markup {
    let Excerpt { file, line, .. } = excerpt;
    html! {
        details.source {
            summary { code { (excerpt.text()) } }
            p.file { (file) ":" (line) }
            pre tabindex="0" role="group" aria-label={ "Around " (file) ":" (line) } {
                @for (number, text) in excerpt.numbered() {
                    span.line.here[number == *line] data-line=(number) { (text) "\n" }
                }
            }
        }
    }
}
