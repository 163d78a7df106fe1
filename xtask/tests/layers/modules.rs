//! Finds cyclic dependencies between the modules of a crate.
//!
//! Two modules form a cycle if each depends on the other. Modules with the same parent are compared, each including
//! its descendants: `text/reader.rs` that uses `trace.rs` is `text` using `trace`. A child may use definitions of its
//! parent, and a parent its children. A re-export by the parent counts as the child that defines the item.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::source::{Bindings, Uses, tests_left_out, uses};

/// Path of a module in its crate: empty for the root.
pub type ModulePath = Vec<String>;

/// Modules with the same parent that use each other in a cycle.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// One use for each step, as `a::b uses c::d`.
    pub uses: Vec<String>,
}

/// The sources of a crate's modules, without those for tests.
#[derive(Debug, Default)]
pub struct Modules {
    all: BTreeMap<ModulePath, Uses>,
}

impl Modules {
    /// Follows the `mod` declarations from `src/lib.rs`, or from `src/main.rs` if there is no library.
    pub fn of_crate(folder: &Path) -> Result<Self> {
        let sources = folder.join("src");
        let mut modules = Self::default();
        let root = ["lib.rs", "main.rs"].map(|name| sources.join(name)).into_iter().find(|path| path.is_file());
        let root = root.with_context(|| format!("{}: neither lib.rs nor main.rs", sources.display()))?;
        let mut next = vec![(ModulePath::new(), root, sources)];
        while let Some((path, file, folder)) = next.pop() {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            for child in modules.add(path.clone(), &text) {
                let below = folder.join(&child);
                let beside = folder.join(format!("{child}.rs"));
                let file = if beside.is_file() { beside } else { below.join("mod.rs") };
                next.push(([path.as_slice(), &[child]].concat(), file, below));
            }
        }
        Ok(modules)
    }

    /// Adds a module; returns the names of the modules declared in it that have their own files.
    pub fn add(&mut self, path: ModulePath, text: &str) -> Vec<String> {
        let uses = uses(&tests_left_out(text));
        let children = uses.modules.clone();
        self.all.insert(path, uses);
        children
    }

    /// Modules that use a path of another crate, or something below it.
    pub fn naming(&self, path: &str) -> Vec<String> {
        let path: Vec<&str> = path.split("::").collect();
        let names = |uses: &Uses| {
            uses.paths.iter().any(|found| {
                let bound = found.first().and_then(|first| uses.bindings.named(first)).unwrap_or_default();
                let whole = bound.iter().chain(found.iter().skip(usize::from(!bound.is_empty())));
                found.iter().map(String::as_str).zip(&path).filter(|(a, b)| a == *b).count() == path.len()
                    || whole.map(String::as_str).zip(&path).filter(|(a, b)| a == *b).count() == path.len()
            })
        };
        let naming = self.all.iter().filter(|(_, uses)| names(uses));
        naming
            .map(|(module, _)| if module.is_empty() { "the crate itself".to_owned() } else { module.join("::") })
            .collect()
    }

    /// All cycles except those of parent and child, each once.
    pub fn circles(&self) -> Vec<Circle> {
        let mut below: BTreeMap<ModulePath, Graph> = BTreeMap::new();
        for (user, uses) in &self.all {
            for path in &uses.paths {
                let Some(used) = self.resolve(user, path, 0) else { continue };
                let common = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (user.get(common), used.get(common)) {
                    let graph = below.entry(user[..common].to_vec()).or_default();
                    let shown = format!("{} uses {}", user.join("::"), used.join("::"));
                    graph.entry(from.clone()).or_default().entry(to.clone()).or_insert(shown);
                }
            }
        }
        below.values().flat_map(circles).collect()
    }

    /// The module that defines `path` as used in `module`; `None` if it belongs to another crate.
    fn resolve(&self, module: &[String], path: &[String], depth: u32) -> Option<ModulePath> {
        // Names imported in a cycle cannot be resolved.
        if depth > 16 {
            return None;
        }
        let mut at: ModulePath = module.to_vec();
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()?),
                "self" => {}
                _ => break,
            }
            rest = others;
        }
        let is_relative = rest.len() < path.len();
        let mut is_found = is_relative;
        while let Some((first, others)) = rest.split_first() {
            let child = [at.as_slice(), std::slice::from_ref(first)].concat();
            if self.all.contains_key(&child) {
                (at, rest, is_found) = (child, others, true);
                continue;
            }
            let bindings: &Bindings = &self.all.get(&at)?.bindings;
            let mut meant = bindings.named(first).map(|bound| [bound, others].concat());
            if meant.is_none() {
                let globs = bindings.globs().filter_map(|glob| self.resolve(&at, glob, depth + 1));
                meant = globs
                    .into_iter()
                    .find(|module| self.defines(module, first))
                    .map(|module| [&["crate".to_owned()], module.as_slice(), rest].concat());
            }
            match meant {
                Some(meant) if meant != path => return self.resolve(&at, &meant, depth + 1),
                _ => return is_found.then_some(at),
            }
        }
        is_found.then_some(at)
    }

    fn defines(&self, module: &[String], name: &str) -> bool {
        self.all.get(module).is_some_and(|uses| uses.definitions.contains(name) || uses.bindings.named(name).is_some())
    }
}

/// Uses between modules: user, used module, and an example.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// The shortest cycle through each module that is not in a cycle found before.
fn circles(graph: &Graph) -> Vec<Circle> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    for start in graph.keys() {
        if seen.contains(start) {
            continue;
        }
        if let Some(steps) = way_back(graph, start) {
            seen.extend(steps.iter().map(|(from, _)| *from));
            found.push(Circle { uses: steps.into_iter().map(|(_, shown)| shown.to_owned()).collect() });
        }
    }
    found
}

/// The shortest path from a module back to itself: each module on it, with the next use.
fn way_back<'g>(graph: &'g Graph, start: &'g String) -> Option<Vec<(&'g String, &'g str)>> {
    let mut came_from: BTreeMap<&String, (&String, &str)> = BTreeMap::new();
    let mut next = vec![start];
    while !next.is_empty() && !came_from.contains_key(start) {
        let mut further = Vec::new();
        for from in next {
            for (to, shown) in graph.get(from).into_iter().flatten() {
                if !came_from.contains_key(to) {
                    came_from.insert(to, (from, shown));
                    further.push(to);
                }
            }
        }
        next = further;
    }
    let mut steps = vec![*came_from.get(start)?];
    while steps[0].0 != start {
        steps.insert(0, came_from[steps[0].0]);
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(modules: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut all = Modules::default();
        for (path, text) in modules {
            all.add(path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(), text);
        }
        all.circles().into_iter().map(|circle| circle.uses).collect()
    }

    #[test]
    fn modules_that_use_each_other_are_a_circle() {
        let modules = [
            ("", "mod a;\nmod b;\nmod c;"),
            ("a", "use crate::b::{B, Other};\npub struct A(B);"),
            ("b", "pub struct B;\nfn b() { crate::c::run() }"),
            ("c", "use super::a::A;"),
        ];
        assert_eq!(circles_of(&modules), [["a uses b", "b uses c", "c uses a"]]);
        assert!(circles_of(&modules[..3]).is_empty());
    }

    #[test]
    fn a_folder_is_one_with_what_is_in_it() {
        let modules = [
            ("", "mod a;\nmod b;"),
            ("a", "mod deep;\nmod other;"),
            ("a::deep", "use crate::b::B;"),
            ("a::other", "pub struct Other;"),
            ("b", "use crate::a::other::Other;"),
        ];
        assert_eq!(circles_of(&modules), [["a::deep uses b", "b uses a::other"]]);
    }

    #[test]
    fn parent_and_child_may_use_each_other() {
        let modules = [
            ("", "mod a;"),
            ("a", "mod child;\nuse child::Child;\npub struct Shared;"),
            ("a::child", "use super::Shared;\npub struct Child(Shared);"),
        ];
        assert!(circles_of(&modules).is_empty());
    }

    #[test]
    fn what_a_parent_re_exports_is_the_childs() {
        let parent = "mod x;\nmod y;\npub use x::X;\npub use y::*;";
        let modules = [
            ("", "mod a;"),
            ("a", parent),
            ("a::x", "use super::Y;\nstruct X;"),
            ("a::y", "use crate::a::X;\nstruct Y;"),
        ];
        assert_eq!(circles_of(&modules), [["a::x uses a::y", "a::y uses a::x"]]);
    }

    #[test]
    fn a_path_of_another_crate_is_found_however_it_is_named() {
        let naming = |text: &str| {
            let mut all = Modules::default();
            all.add(vec!["a".to_owned()], text);
            all.naming("std::fs")
        };
        for text in [
            "use std::fs;",
            "use std::{io, fs::File};",
            "use std as s;\nfn f() { s::fs::read() }",
            "fn f() { std::fs::read() }",
        ] {
            assert_eq!(naming(text), ["a"], "{text}");
        }
        assert!(naming("use std::{io, fmt};\nuse other::fs;").is_empty());
    }

    #[test]
    fn tests_comments_and_other_crates_do_not_count() {
        let a = "//! See crate::b.\nuse b_crate::b;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
        let modules = [("", "mod a;\nmod b;"), ("a", a), ("b", "use crate::a::A;")];
        assert!(circles_of(&modules).is_empty());
    }
}
