//! Imports, paths and definitions of a source file, as far as they follow from its tokens.

use std::collections::{BTreeMap, BTreeSet};

/// References from one module to others.
#[derive(Debug, Default)]
pub struct Uses {
    /// Modules declared in it that have their own files.
    pub modules: Vec<String>,
    /// Every path of more than one word.
    pub paths: BTreeSet<Vec<String>>,
    /// Names declared by `use`.
    pub bindings: Bindings,
    /// Names of its functions, types and so on.
    pub definitions: BTreeSet<String>,
}

/// Names that `use` brings into a module.
#[derive(Debug, Default)]
pub struct Bindings {
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

impl Bindings {
    /// The path that a name refers to.
    pub fn named(&self, name: &str) -> Option<&[String]> {
        self.names.get(name).map(Vec::as_slice)
    }

    /// The paths before `::*`.
    pub fn globs(&self) -> impl Iterator<Item = &[String]> {
        self.globs.iter().map(Vec::as_slice)
    }
}

/// A source without items for tests. It must be formatted by rustfmt: an item that begins at the left margin ends with
/// a line at the left margin.
pub fn tests_left_out(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !["#[cfg(test)]", "#[cfg(any(test", "#[cfg(all(test"].iter().any(|start| line.starts_with(start)) {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let mut item = lines.by_ref().skip_while(|line| line.starts_with("#[") || line.starts_with("//"));
        if item.next().is_some_and(|first| !first.ends_with([';', '}'])) {
            item.find(|line| line.starts_with(['}', ')']));
        }
    }
    out
}

/// Reads a source.
pub fn uses(text: &str) -> Uses {
    let words = words(text);
    let mut uses = Uses::default();
    let mut at = 0;
    while at < words.len() {
        match words[at].as_str() {
            "use" => {
                at += 1;
                tree(&words, &mut at, &mut Vec::new(), &mut uses);
            }
            "mod" if words.get(at + 2).is_some_and(|after| after == ";") => {
                uses.modules.push(words[at + 1].clone());
                at += 2;
            }
            "fn" | "struct" | "enum" | "trait" | "const" | "static" | "type" | "union" => {
                uses.definitions.extend(words.get(at + 1).cloned());
                at += 1;
            }
            word if is_name(word) && words.get(at + 1).is_some_and(|after| after == "::") => {
                let mut path = vec![word.to_owned()];
                while words.get(at + 1).is_some_and(|after| after == "::")
                    && words.get(at + 2).is_some_and(|after| is_name(after))
                {
                    path.push(words[at + 2].clone());
                    at += 2;
                }
                uses.paths.insert(path);
                at += 1;
            }
            _ => at += 1,
        }
    }
    uses
}

/// Parses what follows `use`, or a part of it, up to the `,`, `}` or `;` after it.
fn tree(words: &[String], at: &mut usize, prefix: &mut Vec<String>, uses: &mut Uses) {
    let before = prefix.len();
    while let Some(word) = words.get(*at) {
        match word.as_str() {
            "{" => {
                *at += 1;
                while words.get(*at).is_some_and(|word| word != "}") {
                    tree(words, at, prefix, uses);
                    if words.get(*at).is_some_and(|word| word == ",") {
                        *at += 1;
                    } else if words.get(*at).is_none_or(|word| word != "}") {
                        break;
                    }
                }
                *at += 1;
                break;
            }
            "*" => {
                uses.bindings.globs.push(prefix.clone());
                uses.paths.insert(prefix.clone());
                *at += 1;
                break;
            }
            "::" => *at += 1,
            name if is_name(name) => {
                if name != "self" || prefix.is_empty() {
                    prefix.push(name.to_owned());
                }
                *at += 1;
                if words.get(*at).is_none_or(|word| word != "::") {
                    let mut bound = prefix.last().cloned().unwrap_or_default();
                    if words.get(*at).is_some_and(|word| word == "as") {
                        bound.clone_from(&words[*at + 1]);
                        *at += 2;
                    }
                    uses.bindings.names.insert(bound, prefix.clone());
                    uses.paths.insert(prefix.clone());
                    break;
                }
            }
            _ => break,
        }
    }
    prefix.truncate(before);
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Identifiers, `::` and single characters, without comments and the content of quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let mut rest = if line.starts_with("//") { "" } else { line };
        while let Some(first) = rest.chars().next() {
            let length = if first.is_alphanumeric() || first == '_' {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else if rest.starts_with("//") {
                break;
            } else if first == '"' {
                // A string continued on the next line is then read as if it were code, which does no harm.
                rest[1..].find('"').map_or(rest.len(), |end| end + 2)
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() && first != '"' {
                words.push(rest[..length].to_owned());
            }
            rest = &rest[length..];
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn imports_are_read_whatever_their_form() {
        let text =
            "use crate::{a::{self, B as C}, d::*};\npub(super) use e::F;\nfn f() { super::g::h(\"x::y\") } // i::j\n";
        let uses = uses(text);
        let found = |name| uses.bindings.named(name).map(|path| path.join("::"));
        assert_eq!(found("a").as_deref(), Some("crate::a"));
        assert_eq!(found("C").as_deref(), Some("crate::a::B"));
        assert_eq!(found("F").as_deref(), Some("e::F"));
        assert_eq!(uses.bindings.globs().collect::<Vec<_>>(), [path("crate::d")]);
        assert!(uses.paths.contains(&path("super::g::h")));
        assert!(!uses.paths.contains(&path("x::y")) && !uses.paths.contains(&path("i::j")));
        assert!(uses.definitions.contains("f"));
    }

    #[test]
    fn items_for_tests_are_left_out() {
        let text = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(all(test, loom))]\n#[allow(x)]\nmod c {\n    d\n}\ne\n";
        assert_eq!(tests_left_out(text), "a\nb\ne\n");
    }
}
