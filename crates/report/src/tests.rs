//! The page of a synthetic trace: names are harmless, and the policy excludes everything else.

use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use et_analysis::report::{Report, report};
use et_analysis::summary::summarize;
use et_format::ClassRecord;
use et_format::event::{Event, ObjectHash, Ticket};
use et_names::MethodId;
use et_names::escape::is_special;
use et_names::shell::quoted;
use et_reader::source::{Reading, Source};
use et_reader::testing::{TraceBuilder, class, table};
use et_reader::{Trace, TraceFile};
use sha2::{Digest, Sha256};

use crate::{START, page, tables};

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\nrm -rf ~\n\u{202e}";

/// A program whose thread and class have names that look like markup. The JVM allows them.
fn hostile() -> Report {
    let mut builder = TraceBuilder::new();
    builder.names(&table("jdk", 1, &[class("java/lang/Object", "", &["<init> ()V"])]));
    builder.names(&table("evil.jar", 5_000_000, &[class(HOSTILE, "java/lang/Object", &["static main ()V"])]));
    for (mirror, signature) in [(0x10, "Ljava/lang/Object;".to_owned()), (0x11, format!("L{HOSTILE};"))] {
        builder.class(&ClassRecord {
            ticket: Ticket(0),
            class: ObjectHash(mirror),
            superclass: ObjectHash(if mirror == 0x10 { 0 } else { 0x10 }),
            instance_size: 16,
            mirror_size: 120,
            signature,
            ..ClassRecord::default()
        });
    }
    builder.first_thread(1, HOSTILE, Vec::new());
    let main = MethodId(5_000_000);
    builder.events(
        1,
        3,
        &[
            Event::Entry { method: main },
            Event::Found { object: ObjectHash(0xd0), class: ObjectHash(0x11), length: -1 },
            Event::Exit { method: main },
        ],
    );
    let trace = Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap();
    let source = Source::from(trace);
    let reading = Reading::default();
    let (population, observed) = et_lives::observe_rows(&source, None, reading).unwrap();
    let summary = summarize(&source, &population, &observed, 100).unwrap();
    report(&source, summary, &population, &observed, None, true, reading).unwrap()
}

#[test]
fn names_are_text_whatever_they_are() {
    let report = hostile();
    let page = page(&report);
    assert!(page.starts_with(START));
    assert!(page.contains("alert(1)"), "the name is there");
    assert!(!page.contains("<script>alert"), "as text");
    assert!(!page.contains("<img"));
    // The data, the libraries, and three scripts of our own.
    assert_eq!(page.matches("<script").count(), 5);
    assert_eq!(page.matches("</script>").count(), 5);
    assert_eq!(page.matches("<style").count(), 1);
    assert!(!page.contains(" style=\""), "the policy allows no styles in attributes");
}

/// The texts between each pair of marks.
fn between<'a>(page: &'a str, start: &'a str, end: &'a str) -> Vec<&'a str> {
    page.split(start).skip(1).filter_map(move |rest| rest.split_once(end).map(|(inner, _)| inner)).collect()
}

#[test]
fn the_policy_lets_in_what_is_in_the_page_and_nothing_else() {
    let page = page(&hostile());
    let policy = between(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"")[0];
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let inline = [between(&page, "<script>", "</script>"), between(&page, "<style>", "</style>")].concat();
    assert_eq!(inline.len(), 5);
    for text in &inline {
        let hash = BASE64_STANDARD.encode(Sha256::digest(text));
        assert!(policy.contains(&format!("'sha256-{hash}'")), "no hash of {:.60}", text);
    }
    assert_eq!(policy.matches("sha256-").count(), 5);
    // Nothing external is loaded.
    for loads in ["src=\"", "@import", "url("] {
        let own = page.replace(between(&page, "id=\"data\">", "</script>")[0], "");
        assert!(!own.contains(loads), "{loads}");
    }
}

/// A line break in pasted text would run the command before the user has read it.
#[test]
fn commands_have_nothing_in_them_that_is_not_seen() {
    let page = page(&hostile());
    let commands = between(&page, "<code>et-trace ", "</code>");
    assert!(commands.iter().any(|command| command.contains("rm -rf ~")), "the name is in one: {commands:#?}");
    assert!(commands.iter().all(|command| !command.contains(is_special)), "{commands:#?}");
}

#[test]
fn a_shell_takes_a_name_for_what_it_is() {
    let names = [
        "plain-1.jar",
        "",
        "it's",
        "$(rm -rf ~)`x`",
        "\nrm -rf ~\n",
        "a\r\u{1b}[2Jb\u{9b}c",
        "\u{202e}gpj.exe\u{2066}\u{200b}",
        "back\\slash\tand 'quotes'\u{7f}f",
        "\u{1}1\u{85}",
        HOSTILE,
    ];
    for name in names {
        let quoted = quoted(name);
        let said = Command::new("bash").args(["-c", &format!("printf %s {quoted}")]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), name, "{quoted}");
    }
}

#[test]
fn tables_are_text_as_well() {
    let report = hostile();
    let all = tables(&report);
    let threads = all.iter().find(|table| table.id() == "threads/threads").unwrap();
    let text = threads.render();
    assert!(text.starts_with("Threads (threads/threads)\n"), "{text}");
    assert!(text.contains("16 B") && text.contains("alert(1)"), "{text}");
    assert_eq!(threads.clone().matching("nobody").rows.len(), 0);
    assert_eq!(threads.clone().matching("alert(2)").rows.len(), 1);
    // Every row has a cell for each column.
    for table in &all {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.id());
    }
}
