//! Each command that a page shows is one: its subcommand and its options exist, and nothing required is missing.

use std::fs;

use anyhow::Result;
use xtask::layout::Layout;
use xtask::pages;

#[test]
fn commands_of_pages_are_understood() -> Result<()> {
    let tools = et_reference::tools();
    let mut wrong = Vec::new();
    for page in pages::all(&Layout::find()?.repo)? {
        for words in pages::commands(&fs::read_to_string(&page)?) {
            // `cargo xtask` is tested where it is defined.
            let Some(tool) = tools.iter().find(|tool| tool.get_name() == words[0]) else { continue };
            if let Err(error) = tool.clone().try_get_matches_from(&words)
                && error.use_stderr()
            {
                wrong.push(format!("{}: {}\n{error}", page.display(), words.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
