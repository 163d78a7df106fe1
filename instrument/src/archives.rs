//! The user's JVM options about class data archives and AOT caches.
//!
//! These contain the classes of the program and the JDK without hooks, laid out for another JDK than the instrumented
//! copy. A traced run cannot use them, and an untraced run could not use one that a traced run has created. So these
//! options are removed.

use std::ops::Range;

/// How to treat an option in a traced run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has nothing to do with archives, or forbids them.
    Keep,
    /// It names an archive, or asks for one.
    LeaveOut,
    /// With it the JVM makes an archive, and runs no program.
    Refuse,
}

/// Names of files that the JVM reads archives from, or writes them to, or what is to be in them.
const FILES: [&str; 6] = [
    "SharedArchiveFile",
    "ArchiveClassesAtExit",
    "DumpLoadedClassList",
    "AOTCache",
    "AOTCacheOutput",
    "AOTConfiguration",
];

/// Options that create an archive, or make the JVM fail without one.
const SWITCHES: [&str; 4] =
    ["AutoCreateSharedArchive", "RecordDynamicDumpInfo", "DynamicDumpSharedSpaces", "RequireSharedSpaces"];

/// Judges an option as it is written: `-XX:AOTCache=app.aot`.
pub fn verdict(option: &str) -> Verdict {
    match option {
        "-Xshare:dump" => return Verdict::Refuse,
        // The JVM would not start where it cannot map one.
        "-Xshare:on" => return Verdict::LeaveOut,
        _ => {}
    }
    let Some(flag) = option.strip_prefix("-XX:") else { return Verdict::Keep };
    if let Some(name) = flag.strip_prefix('+') {
        return match name {
            "DumpSharedSpaces" => Verdict::Refuse,
            _ if SWITCHES.contains(&name) => Verdict::LeaveOut,
            _ => Verdict::Keep,
        };
    }
    // The JVM also accepts `:=`.
    let Some((name, value)) = flag.split_once('=') else { return Verdict::Keep };
    match (name.strip_suffix(':').unwrap_or(name), value) {
        ("AOTMode", "off") => Verdict::Keep,
        ("AOTMode", "create") => Verdict::Refuse,
        ("AOTMode", _) => Verdict::LeaveOut,
        (name, _) if FILES.contains(&name) => Verdict::LeaveOut,
        _ => Verdict::Keep,
    }
}

/// A word of a text, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word without its quotes.
    pub text: String,
    /// Its position in the text, including quotes.
    pub place: Range<usize>,
}

/// The words of `JAVA_TOOL_OPTIONS` and `JDK_JAVA_OPTIONS`, of a `-XX:VMOptionsFile` and of the options that an image has: apart
/// by white space, quotes of either kind hold words together, and nothing escapes.
pub fn words(text: &str) -> Vec<Word> {
    split(text, false)
}

/// The flags in a file of `-XX:Flags`, which are written without `-XX:`. A `#` begins a comment, and no quote outlives its line.
pub fn flags(text: &str) -> Vec<Word> {
    split(text, true)
}

fn split(text: &str, is_by_lines: bool) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let (mut quote, mut is_comment) = (None, false);
    for (at, character) in text.char_indices() {
        let is_end = is_by_lines && character == '\n';
        if is_end {
            (quote, is_comment) = (None, false);
        }
        let is_space = character.is_ascii_whitespace() || character == '\x0b';
        if is_comment || is_end || quote.is_none() && is_space {
            words.extend(word.take());
            continue;
        }
        if is_by_lines && word.is_none() && character == '#' {
            is_comment = true;
            continue;
        }
        let word = word.get_or_insert_with(|| Word { text: String::new(), place: at..at });
        word.place.end = at + character.len_utf8();
        match quote {
            Some(open) if open == character => quote = None,
            None if matches!(character, '"' | '\'') => quote = Some(character),
            _ => word.text.push(character),
        }
    }
    words.extend(word);
    words
}

/// Removes words from a text, or replaces them: each change has the position of a word, and the replacement if there is
/// one.
pub fn edited(text: &str, changes: &[(Range<usize>, Option<String>)]) -> String {
    let (mut out, mut from) = (String::new(), 0);
    for (place, instead) in changes {
        out += &text[from..place.start];
        out += instead.as_deref().unwrap_or_default();
        from = place.end;
    }
    out + &text[from..]
}

/// Removes words about archives from a text, and returns which these were; `None` if there are none.
pub fn without(text: &str) -> Option<(String, Vec<String>)> {
    let away: Vec<Word> = words(text).into_iter().filter(|word| verdict(&word.text) != Verdict::Keep).collect();
    let changes: Vec<_> = away.iter().map(|word| (word.place.clone(), None)).collect();
    (!away.is_empty()).then(|| (edited(text, &changes), away.into_iter().map(|word| word.text).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_an_archive_or_asks_for_one_is_left_out() {
        for option in [
            "-XX:SharedArchiveFile=auto.jsa",
            "-XX:SharedArchiveFile:=auto.jsa",
            "-XX:+AutoCreateSharedArchive",
            "-XX:ArchiveClassesAtExit=a",
            "-XX:+RecordDynamicDumpInfo",
            "-XX:DumpLoadedClassList=list",
            "-XX:AOTCache=a",
            "-XX:AOTCacheOutput=a",
            "-XX:AOTConfiguration=a",
            "-XX:AOTMode=on",
            "-XX:AOTMode=record",
            "-XX:AOTMode=auto",
            "-Xshare:on",
        ] {
            assert_eq!(verdict(option), Verdict::LeaveOut, "{option}");
        }
        for option in ["-Xshare:dump", "-XX:AOTMode=create", "-XX:+DumpSharedSpaces"] {
            assert_eq!(verdict(option), Verdict::Refuse, "{option}");
        }
        for option in [
            "-Xshare:off",
            "-Xshare:auto",
            "-XX:AOTMode=off",
            "-XX:-AutoCreateSharedArchive",
            "-XX:+UseZGC",
            "-XX:SharedArchiveFiles=x",
            "-Dx=-XX:AOTCache=a",
            "AOTCache=a",
        ] {
            assert_eq!(verdict(option), Verdict::Keep, "{option}");
        }
    }

    #[test]
    fn words_are_apart_by_white_space_outside_of_quotes() {
        let text = " -Xmx1g  '-Dx=a b'\t-cp \"c d\":e\\f ";
        let found = words(text);
        let texts: Vec<&str> = found.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["-Xmx1g", "-Dx=a b", "-cp", "c d:e\\f"]);
        assert_eq!(&text[found[1].place.clone()], "'-Dx=a b'");
        assert!(words("").is_empty());
        assert_eq!(words("''")[0].text, "");
    }

    #[test]
    fn flags_have_comments_and_lines() {
        let text = "# AOTCache=no\n+UseZGC MaxHeapSize=1g # rest\nSharedArchiveFile='a b'c\nx='open\n-Y";
        let found: Vec<String> = flags(text).into_iter().map(|word| word.text).collect();
        assert_eq!(found, ["+UseZGC", "MaxHeapSize=1g", "SharedArchiveFile=a bc", "x=open", "-Y"]);
    }

    #[test]
    fn a_text_is_left_as_it_is_elsewhere() {
        let text = "a 'b c'  d";
        let places: Vec<_> = words(text).into_iter().map(|word| word.place).collect();
        let changes = [(places[0].clone(), Some("x".to_owned())), (places[1].clone(), None)];
        assert_eq!(edited(text, &changes), "x   d");
        assert_eq!(edited(text, &[]), text);
        assert_eq!(without("-Xmx1g -XX:AOTCache=a"), Some(("-Xmx1g ".into(), vec!["-XX:AOTCache=a".into()])));
        assert_eq!(without("-Xmx1g"), None);
    }
}
