//! A page that loads nothing: what can be read without a script is in it; scripts draw, sort and search.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

/// How a page begins: who finds it knows what it is.
pub const START: &str = "<!DOCTYPE html><!-- Elephant Tracks report -->";

/// Libraries that draw, with their own styles: made by `cargo xtask assets`.
const LIBRARIES: &str = include_str!("../assets/vendor/libraries.js");
const LIBRARY_STYLE: &str = include_str!("../assets/vendor/libraries.css");
const COMMON: &str = include_str!("../assets/common.js");
const FLAME: &str = include_str!("../assets/flame.js");
const STYLE: &str = include_str!("../assets/report.css");

/// What is seen when its tab is chosen.
pub(crate) struct Tab {
    pub id: &'static str,
    pub title: &'static str,
    pub content: Markup,
}

/// A page that is being made.
pub(crate) struct Document<'a> {
    /// What it is about.
    pub name: &'a str,
    pub tabs: Vec<Tab>,
    /// What it was made from.
    pub from: Markup,
    /// What the script draws.
    pub json: String,
    /// The script of this kind of page.
    pub script: &'a str,
}

impl Document<'_> {
    /// The whole page.
    pub fn render(&self) -> String {
        let scripts = [LIBRARIES.trim_end(), COMMON, FLAME, self.script];
        let style = format!("{LIBRARY_STYLE}\n{STYLE}");
        // What is not written here does not run: names out of the program are text, whatever they are.
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
            scripts.map(hash).join(" "),
            hash(&style)
        );
        let markup = html! {
            (PreEscaped(START))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content={ "et-trace " (env!("CARGO_PKG_VERSION")) };
                    title { (self.name) " – Elephant Tracks" }
                    style { (PreEscaped(&style)) }
                }
                body {
                    header {
                        h1 { "Elephant Tracks " span.program { (self.name) } }
                        nav aria-label="Pages" {
                            div role="tablist" aria-label="Pages" {
                                @for (index, Tab { id, title, .. }) in self.tabs.iter().enumerate() {
                                    a role="tab" id={ "tab-" (id) } href={ "#" (id) } aria-controls=(id)
                                        aria-selected=(if index == 0 { "true" } else { "false" }) { (title) }
                                }
                            }
                        }
                    }
                    main {
                        @for Tab { id, title, content } in &self.tabs {
                            section role="tabpanel" id=(id) aria-labelledby={ "tab-" (id) } tabindex="-1" {
                                h2 { (title) }
                                (content)
                            }
                        }
                    }
                    footer {
                        "Made by et-trace " (env!("CARGO_PKG_VERSION")) " from " (self.from) ". "
                        "Drawn with uPlot and d3-flame-graph, whose licences are in this page's source. "
                        "This page loads nothing and sends nothing. "
                        // A script does it, and shows the button.
                        button type="button" id="print-all" hidden { "Print all pages" }
                    }
                    script type="application/json" id="data" { (PreEscaped(&self.json)) }
                    @for script in scripts {
                        script { (PreEscaped(script)) }
                    }
                }
            }
        };
        markup.into_string()
    }
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)))
}
