//! What the code defines and pages describe in their own words is on these pages.

use std::collections::BTreeSet;

use et_reader::record::LETTERS;
use et_rewriter::hooks::HOOKS;

#[test]
fn the_page_of_events_has_each_hook() {
    // Arguments are separated on the page, and `Object` is short for its descriptor.
    let page = include_str!("../../../docs/inside/events.md").replace(',', "");
    let signature = |(_, name, descriptor): &(&str, &str, &str)| {
        let short = descriptor.replace("[Ljava/lang/Object;", "Object[]").replace("Ljava/lang/Object;", "Object");
        format!("`{name}{short}`")
    };
    let missing: Vec<String> = HOOKS.iter().map(signature).filter(|hook| !page.contains(hook)).collect();
    assert!(missing.is_empty(), "docs/inside/events.md has no hook {}", missing.join(", "));
}

#[test]
fn the_table_of_the_text_has_each_letter() {
    let page = include_str!("../../../docs/reading-traces.md");
    let rows = page.lines().skip_while(|line| *line != "| dialect `et` | fields |").skip(2);
    let first_columns = rows.map_while(|line| line.strip_prefix("| ")?.split_once(" | "));
    let letters: BTreeSet<String> =
        first_columns.flat_map(|(letters, _)| letters.split(' ')).map(str::to_owned).collect();
    let expected: BTreeSet<String> = LETTERS.iter().map(|letter| format!("`{letter}`")).collect();
    assert_eq!(letters, expected, "docs/reading-traces.md, the table of dialect et");
}

#[test]
fn the_page_of_meanings_has_each_letter() {
    let page = include_str!("../../../docs/semantics.md");
    let missing: Vec<String> =
        LETTERS.iter().map(|letter| format!("`{letter}`")).filter(|letter| !page.contains(letter)).collect();
    assert!(missing.is_empty(), "docs/semantics.md does not say what {} means", missing.join(", "));
}
