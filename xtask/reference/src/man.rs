//! Man pages, one for each command.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::{Paragraph, with_subcommands};

/// Writes the pages below `share`.
pub fn write(share: &Path) -> Result<()> {
    let folder = share.join("man/man1");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for tool in crate::tools() {
        for command in with_subcommands(&tool) {
            let file = folder.join(format!("{}.1", name(command)));
            let page = page(command, &tool)?;
            fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

/// Name of a page: `et-instrument-cache-list`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command, tool: &Command) -> Result<Vec<u8>> {
    let source = format!("Elephant Tracks {}", tool.get_version().unwrap_or_default());
    let man = Man::new(command.clone()).source(source).manual("Elephant Tracks");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if with_subcommands(command).len() > 1 {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    if let Some(text) = command.get_after_help() {
        after_help(&mut rest, &text.to_string());
    }
    see_also(&mut rest, command, tool);
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn after_help(page: &mut Roff, text: &str) {
    let mut notes_begun = false;
    for paragraph in Paragraph::all(text) {
        match paragraph.heading {
            Some(heading) => {
                page.control("SH", [heading.to_uppercase().as_str()]).control("nf", []);
                for line in paragraph.lines.lines() {
                    page.text([roman(line)]);
                }
                page.control("fi", []);
            }
            None => {
                match notes_begun {
                    true => page.control("PP", []),
                    false => page.control("SH", ["NOTES"]),
                };
                notes_begun = true;
                page.text([roman(paragraph.lines)]);
            }
        }
    }
}

fn see_also(page: &mut Roff, command: &Command, tool: &Command) {
    let of_tool = with_subcommands(tool).into_iter().map(name);
    let tools = crate::tools();
    let others = tools.iter().map(name).filter(|other| *other != name(tool));
    let mut line: Vec<Inline> = Vec::new();
    for other in of_tool.filter(|other| *other != name(command)).chain(others) {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(other), roman("(1)")]);
    }
    page.control("SH", ["SEE ALSO"]).text(line);
}
