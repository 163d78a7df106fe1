//! The result for each fixture, as a disassembly. To accept changes, run `INSTA_UPDATE=always cargo test` and review
//! the difference.

use std::fmt::Write;

use et_rewriter::classfile::ClassFile;
use et_rewriter::code::disassemble;
use et_rewriter::rewrite::Rewritten;

use crate::fixtures::{FIRST, Fixture};

#[test]
fn every_fixture_is_rewritten_as_recorded() {
    let mut failed = Vec::new();
    for fixture in Fixture::all() {
        let text = describe(&fixture);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            settings.bind(|| insta::assert_snapshot!(fixture.name.clone(), text))
        }));
        if outcome.is_err() {
            failed.push(fixture.name.clone());
        }
    }
    assert!(failed.is_empty(), "these fixtures changed: {failed:?}");
}

fn describe(fixture: &Fixture) -> String {
    let rewritten = fixture.rewrite();
    if rewritten.bytes == fixture.bytes {
        return "unchanged\n".into();
    }
    let class = ClassFile::read(&rewritten.bytes).unwrap();
    let mut out = names(&rewritten);
    let added = class.fields.iter().skip(ClassFile::read(&fixture.bytes).unwrap().fields.len());
    for field in added {
        let (name, descriptor) = (String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.descriptor));
        let _ = writeln!(out, "added field {name}:{descriptor} {:#06x}", field.access);
    }
    let shown = |name: &str, _: &str| match fixture.show.as_slice() {
        [] => name != "main",
        names => names.iter().any(|wanted| wanted == name),
    };
    let text = disassemble(&class, shown).unwrap();
    if out.is_empty() && text.is_empty() {
        return "no code\n".into();
    }
    for method in text.split_inclusive('\n').fold(Vec::<Vec<&str>>::new(), |mut methods, line| {
        if !line.starts_with(' ') {
            methods.push(Vec::new());
        }
        methods.last_mut().expect("a method begins with its name").push(line);
        methods
    }) {
        out.push('\n');
        out.push_str(method[0]);
        let skipped = method.len().saturating_sub(fixture.tail).max(1);
        if skipped > 1 {
            out.push_str("  ...\n");
        }
        out.extend(method[skipped..].iter().copied());
    }
    out
}

/// The sites, field references and shortfalls: what the ids in the code mean.
fn names(rewritten: &Rewritten) -> String {
    let mut out = String::new();
    let names = &rewritten.names;
    for (index, site) in names.sites.iter().enumerate() {
        let method = &names.methods[site.method as usize].name;
        let id = FIRST.site as usize + index;
        let _ = writeln!(
            out,
            "site {id}: {} dimensions {} in {method} line {}",
            site.descriptor, site.dimensions, site.line
        );
    }
    for (index, field) in names.field_refs.iter().enumerate() {
        let is_static = if field.is_static { "static " } else { "" };
        let id = FIRST.field_ref as usize + index;
        let _ = writeln!(out, "field {id}: {is_static}{}.{}:{}", field.class, field.name, field.descriptor);
    }
    for short in &names.shortfalls {
        let _ =
            writeln!(out, "{} goes without {}: {}", names.methods[short.method as usize].name, short.hooks, short.why);
    }
    out
}
