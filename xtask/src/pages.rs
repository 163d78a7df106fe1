//! The pages of the documentation: their links and anchors, the commands that they show, and the files that they name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Names of the user commands.
const TOOLS: [&str; 5] = ["et-instrument", "et-trace", "et-replay", "et-monitor", "et-jvmpi"];

/// Words that may precede a command.
const WRAPPERS: [&str; 4] = ["time", "sudo", "nice", "valgrind"];

/// All pages of the repository for readers.
pub fn all(repo: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![repo.join("README.md"), repo.join("SECURITY.md"), repo.join("runtime-java/README.md")];
    pages.extend(
        ["gradle-plugin", "maven-plugin", "runtime-java/test-library"]
            .map(|plugin| repo.join(plugin).join("README.md")),
    );
    for folder in ["docs", "examples"] {
        pages.extend(in_folder(&repo.join(folder))?);
    }
    pages.sort();
    Ok(pages)
}

/// All pages in a folder and below.
pub fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(in_folder(&path)?);
        } else if is_page(&path) {
            pages.push(path);
        }
    }
    Ok(pages)
}

pub(crate) fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

pub(crate) fn read(page: &Path) -> Result<String> {
    fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))
}

/// Fails if the target of a relative link in one of these pages, or its anchor, does not exist.
pub fn lead_somewhere(pages: &[PathBuf]) -> Result<()> {
    let mut dead = Vec::new();
    for page in pages {
        let text = read(page)?;
        let folder = page.parent().context("a page lies in a folder")?;
        for link in links(&text).filter(|link| is_relative(link)) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            let leads =
                target.exists() && (anchor.is_empty() || is_page(&target) && anchors(&read(&target)?).contains(anchor));
            if !leads {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    ensure!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
    Ok(())
}

pub(crate) fn is_relative(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("mailto:")
}

/// Targets of all links and images, in order: `x.md#y` of `[text](x.md#y)`.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    lines(text).filter(|line| line.language.is_none()).flat_map(|line| {
        let parts = without_code(line.text).flat_map(|prose| prose.split("](").skip(1));
        parts.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
    })
}

/// The parts of a line outside backticks. A link whose text is code comes in two parts, the second with its target.
fn without_code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').step_by(2)
}

/// The code in backticks on a line.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The fenced blocks of a page in this language.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in lines(page) {
        let is_wanted = line.language == Some(language);
        if is_wanted && !is_inside {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut().filter(|_| is_wanted) {
            block.push_str(line.text);
            block.push('\n');
        }
        is_inside = is_wanted;
    }
    blocks
}

/// Anchors that GitHub generates for headings: lower case, without punctuation, hyphens for spaces, and a suffix such
/// as `-1` for a repeated heading.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let headings = lines(text).filter(|line| line.language.is_none()).filter_map(|line| line.text.strip_prefix('#'));
    for heading in headings.map(|heading| heading.trim_start_matches('#').trim()) {
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        let anchor = heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
        let name = |count: usize| if count == 0 { anchor.clone() } else { format!("{anchor}-{count}") };
        let free = (0..).map(name).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// A line of a page.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    text: &'a str,
    /// For a line in a fenced block, the word after the fence, such as `sh`, or the empty string.
    language: Option<&'a str>,
}

/// All lines except fences.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut language = None;
    text.lines().filter_map(move |line| match line.trim_start().strip_prefix("```") {
        Some(rest) => {
            language = if language.is_none() { Some(rest.trim()) } else { None };
            None
        }
        None => Some(Line { text: line, language }),
    })
}

/// Our commands in the fenced blocks of a page, split into words as by a shell: `["et-trace", "summary",
/// "app.ettrace"]`, `["cargo", "xtask", "build"]`. Blocks of output (`text`), and usage lines, are left out.
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let shown = lines(text).filter(|line| line.language.is_some_and(|language| language != "text"));
    let mut lines = shown.map(|line| line.text);
    let mut commands = Vec::new();
    while let Some(line) = lines.next() {
        let line = line.strip_prefix("$ ").or_else(|| line.strip_prefix("RUN ")).unwrap_or(line);
        if line.starts_with(' ') || is_usage(line) || !TOOLS.iter().chain(&["cargo xtask"]).any(|it| line.contains(it))
        {
            continue;
        }
        let mut whole = line.to_owned();
        let words = loop {
            match split(&whole) {
                Some(words) => break words,
                None => match lines.next() {
                    Some(more) => whole = format!("{}\n{more}", whole.trim_end_matches('\\')),
                    None => break Vec::new(),
                },
            }
        };
        commands.extend(words.into_iter().filter_map(of_ours));
    }
    commands
}

/// Whether it is a usage line, such as `et-trace text [OPTIONS] <TRACE>`.
fn is_usage(line: &str) -> bool {
    line.contains("[OPTIONS]") || line.contains("<COMMAND>") || line.contains(" [BEFORE]")
}

/// Drops everything before the name of a command: variables, and commands such as `time`.
fn from_its_name(mut words: Vec<String>) -> Option<Vec<String>> {
    let is_before = |word: &String| WRAPPERS.contains(&word.as_str()) || word.starts_with('-') || word.contains('=');
    let start = words.iter().position(|word| !is_before(word))?;
    words.drain(..start);
    Some(words)
}

/// Our command, from its name on.
fn of_ours(words: Vec<String>) -> Option<Vec<String>> {
    let mut words = from_its_name(words)?;
    if words[0] == "cargo" {
        return (words.get(1)? == "xtask").then_some(words);
    }
    let name = words[0].rsplit('/').next()?.to_owned();
    TOOLS.contains(&name.as_str()).then(|| {
        words[0] = name;
        words
    })
}

/// The simple commands of a line, split into words. `None` if a quote is not closed, or the line is continued. Two
/// spaces, like `#`, begin an explanation.
fn split(line: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut depth = 0_u32;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let more = word.get_or_insert_default();
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => more.push(letter),
            ('\'' | '"', None) => quote = Some(letter),
            ('$', None) if letters.peek() == Some(&'(') => {
                letters.next();
                depth += 1;
                more.push_str("$(");
            }
            (')', None) if depth > 0 => {
                depth -= 1;
                more.push(')');
            }
            (_, None) if depth > 0 => more.push(letter),
            ('\\', None) => more.push(letters.next()?),
            ('#', None) if more.is_empty() => {
                word = None;
                break;
            }
            ('|' | ';' | '&' | '>' | '<' | ' ' | '\n', None) => {
                let done = word.take().filter(|word| !word.is_empty());
                commands.last_mut()?.extend(done);
                match letter {
                    '|' | ';' | '&' => commands.push(Vec::new()),
                    // The target of a redirection is not a word of the command.
                    '>' | '<' => commands.push(vec!["redirected".to_owned()]),
                    ' ' if letters.peek() == Some(&' ') => break,
                    _ => {}
                }
            }
            _ => more.push(letter),
        }
    }
    if quote.is_some() {
        return None;
    }
    commands.last_mut()?.extend(word.filter(|word| !word.is_empty()));
    Some(commands.into_iter().filter(|command| !command.is_empty()).collect())
}

/// Files and folders of the repository named in backticks, by themselves or in a command: `crates/format/src/lib.rs`,
/// `../../docs/README.md`. `tops` are the folders at the top.
pub fn paths<'a>(text: &'a str, tops: &'a BTreeSet<String>) -> impl Iterator<Item = &'a str> {
    let code = lines(text).flat_map(|line| match line.language {
        Some(_) => {
            let is_built = |word: &str| word.starts_with("../../target/");
            line.text
                .split_whitespace()
                .filter(|word| word.starts_with("../../") && !is_built(word))
                .collect::<Vec<_>>()
        }
        None => code(line.text).flat_map(str::split_whitespace).collect(),
    });
    code.filter_map(|word| {
        let path = word.trim_start_matches("../");
        let (top, below) = path.split_once('/')?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:".contains(letter);
        // A part in capitals is a placeholder: `fuzz/corpus/TARGET`.
        let stands_for = |part: &str| part.len() > 1 && part.chars().all(|letter| letter.is_ascii_uppercase());
        let is_known = tops.contains(top) || word.starts_with("../../");
        let is_path = is_known && path.chars().all(plain) && !path.split('/').any(stands_for);
        // `crates/x/src/y.rs::test` refers to a part of a file.
        is_path.then(|| path.split("::").next().unwrap_or(path)).filter(|_| !below.starts_with('/'))
    })
}

/// Rust sources named in backticks by the end of their paths: `lib.rs`, `resolve/bits.rs`.
pub fn sources(text: &str) -> impl Iterator<Item = &str> {
    let code = lines(text).filter(|line| line.language.is_none()).flat_map(|line| code(line.text));
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    code.filter(move |name| name.ends_with(".rs") && name.chars().all(plain))
}

/// Calls of cargo in fenced blocks or backticks, split into words.
pub fn cargo(text: &str) -> Vec<Vec<String>> {
    let shown = lines(text).flat_map(|line| match line.language {
        Some(_) => vec![line.text],
        None => code(line.text).collect(),
    });
    let commands = shown.filter(|code| code.contains("cargo ")).filter_map(split).flatten();
    commands.filter_map(from_its_name).filter(|words| words[0] == "cargo").collect()
}

/// Pages of `docs/` named by a text that is not a page, such as a comment.
pub fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("docs/").filter_map(|(start, _)| {
        let before = text[..start].chars().next_back();
        if before.is_some_and(|letter| letter.is_alphanumeric() || "/-_.".contains(letter)) {
            return None;
        }
        let rest = &text[start..];
        let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "/-_.".contains(letter)));
        let path = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        path.ends_with(".md").then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        commands(&format!("```\n{line}\n```\n"))
    }

    #[test]
    fn links_are_those_of_prose() {
        let text = "[![a](b.png)](c.md) `[x](y)` [`code`](d.md#e)\n```\n[f](g)\n```\n";
        assert_eq!(links(text).collect::<Vec<_>>(), ["b.png", "c.md", "d.md#e"]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# A, b & c\n```\n# comment\n```\n## `et-trace text`\n## x_y\n## Tests\n### Tests\n";
        let expected = ["a-b--c", "et-trace-text", "tests", "tests-1", "x_y"];
        assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn commands_are_split_as_a_shell_does() {
        assert_eq!(words("et-trace text a.ettrace | gzip > b.gz"), [vec!["et-trace", "text", "a.ettrace"]]);
        assert_eq!(words("zcat a.gz | et-trace summary -   texts as well"), [vec!["et-trace", "summary", "-"]]);
        assert_eq!(
            words("cargo xtask build && et-trace info x"),
            [vec!["cargo", "xtask", "build"], vec!["et-trace", "info", "x"]]
        );
        assert_eq!(
            words("A=1 time bin/et-trace diff --fail-if 'bytes > +10%' x # why"),
            [vec!["et-trace", "diff", "--fail-if", "bytes > +10%", "x"]]
        );
        assert_eq!(words("et-trace tables a --run $(hostname)-$(date +%s) -o b")[0][4], "$(hostname)-$(date +%s)");
        assert_eq!(words("et-trace sql a \"select 1\nfrom b\""), [vec!["et-trace", "sql", "a", "select 1\nfrom b"]]);
    }

    #[test]
    fn output_and_usage_are_no_commands() {
        assert!(words("et-instrument: rewrote 2 class files").is_empty());
        assert!(words("et-trace text [OPTIONS] <TRACE>").is_empty());
        assert!(words("export PATH=x   # et-trace").is_empty());
        assert!(commands("```text\net-trace x\n```\net-trace y\n").is_empty());
    }

    #[test]
    fn calls_of_cargo_are_in_blocks_and_in_lines() {
        let text = "`A=1 cargo test -p x` and `cargo-deny`\n```\ncargo run -p y -- z   # why\n```\n";
        let expected = [vec!["cargo", "test", "-p", "x"], vec!["cargo", "run", "-p", "y", "--", "z"]];
        assert_eq!(cargo(text), expected);
    }

    #[test]
    fn files_are_named_by_their_paths() {
        let tops = BTreeSet::from(["crates".to_owned()]);
        let text = "`crates/a/src/b.rs::test` `crates/*/x` `crates/NAME` `other/a` `crates`\n`crates/c/` `x ../../old/d` `e/f.rs`";
        assert_eq!(paths(text, &tops).collect::<Vec<_>>(), ["crates/a/src/b.rs", "crates/c/", "old/d"]);
        assert_eq!(sources(text).collect::<Vec<_>>(), ["e/f.rs"]);
    }

    #[test]
    fn comments_name_pages() {
        let text = "//! See docs/a.md, `docs/inside/b.md`. Not https://x/docs/c.md, docs/d.xsd";
        assert_eq!(mentioned(text).collect::<Vec<_>>(), ["docs/a.md", "docs/inside/b.md"]);
    }
}
