//! Selects the classes whose objects the heap profiler reports: filter files in the format of TPTP.
//!
//! A line is `package.or.Class method INCLUDE|EXCLUDE`. The first match decides; classes without a match are included.
//! `*` is a wildcard at either end of a name. Methods do not matter to the heap profiler: lines whose method is not `*`
//! are for other profilers and are ignored.

use thiserror::Error;

/// Why a filter file cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct FilterError {
    /// Line number, from 1.
    pub line: usize,
    pub what: String,
}

/// A name with `*` at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Exactly(String),
    Starts(String),
    Ends(String),
    Contains(String),
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let (inner, starts) = text.strip_suffix('*').map_or((text, false), |inner| (inner, true));
        let (inner, ends) = inner.strip_prefix('*').map_or((inner, false), |inner| (inner, true));
        let inner_text = inner.to_owned();
        (!inner.contains('*')).then_some(match (starts, ends) {
            (false, false) => Self::Exactly(inner_text),
            (true, false) => Self::Starts(inner_text),
            (false, true) => Self::Ends(inner_text),
            (true, true) => Self::Contains(inner_text),
        })
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exactly(text) => name == text,
            Self::Starts(text) => name.starts_with(text.as_str()),
            Self::Ends(text) => name.ends_with(text.as_str()),
            Self::Contains(text) => name.contains(text.as_str()),
        }
    }
}

/// The rules of a filter file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    lines: Vec<(Pattern, bool)>,
}

impl Filter {
    /// Reads a file's text. Empty lines, and those that begin with `#`, say nothing.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |what: String| FilterError { line: index + 1, what };
            let words: Vec<&str> = line.split_whitespace().collect();
            let (class, method, mode) = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [class, mode] => (class, "*", mode),
                [class, method, mode] => (class, method, mode),
                _ => return Err(wrong(format!("{line:?} is not CLASS METHOD INCLUDE or CLASS METHOD EXCLUDE"))),
            };
            let is_included = match mode {
                "INCLUDE" => true,
                "EXCLUDE" => false,
                _ => return Err(wrong(format!("{mode} is neither INCLUDE nor EXCLUDE"))),
            };
            let pattern = Pattern::parse(class)
                .ok_or_else(|| wrong(format!("{class} has a * that is not at its beginning or end")))?;
            if method == "*" {
                lines.push((pattern, is_included));
            }
        }
        Ok(Self { lines })
    }

    /// Whether objects of a class are reported. Names have dots; an array is reported if its element class is, and
    /// arrays of primitive types have names such as `int[]`.
    pub fn includes(&self, name: &str) -> bool {
        let name = if is_primitive_array(name) { name } else { name.trim_end_matches("[]") };
        self.lines.iter().find(|(pattern, _)| pattern.fits(name)).is_none_or(|(_, is_included)| *is_included)
    }

    /// Whether no class at all can be included. May return false even then.
    pub fn excludes_everything(&self) -> bool {
        matches!(self.lines.first(), Some((Pattern::Starts(text) | Pattern::Contains(text), false)) if text.is_empty())
    }
}

fn is_primitive_array(name: &str) -> bool {
    let element = name.trim_end_matches("[]");
    element.len() < name.len()
        && ["boolean", "byte", "char", "short", "int", "float", "long", "double"].contains(&element)
}

/// A class's name as people write it, of its JVM descriptor: `Ljava/lang/String;` is `java.lang.String`, `[I` is `int[]`.
pub fn readable(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let dimensions = descriptor.len() - element.len();
    let name = match element {
        "Z" => "boolean".to_owned(),
        "B" => "byte".to_owned(),
        "C" => "char".to_owned(),
        "S" => "short".to_owned(),
        "I" => "int".to_owned(),
        "J" => "long".to_owned(),
        "F" => "float".to_owned(),
        "D" => "double".to_owned(),
        "V" => "void".to_owned(),
        _ => element.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(element).replace('/', "."),
    };
    name + &"[]".repeat(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_decides() {
        let filter = Filter::parse(
            "# of old\ncom.acme.Shop$Item * INCLUDE\ncom.acme.* * EXCLUDE\n\n*Exception INCLUDE\n*cache* * EXCLUDE\nint[] * EXCLUDE\n",
        )
        .unwrap();
        for (name, expected) in [
            ("com.acme.Shop$Item", true),
            ("com.acme.Shop$Item[][]", true),
            ("com.acme.Shop", false),
            ("com.acme.BadException", false),
            ("java.io.IOException", true),
            ("org.cache.Entry", false),
            ("java.lang.String", true),
            ("int[]", false),
            ("int[][]", true),
        ] {
            assert_eq!(filter.includes(name), expected, "{name}");
        }
    }

    #[test]
    fn lines_of_methods_are_for_others() {
        let filter = Filter::parse("com.acme.* main EXCLUDE\n").unwrap();
        assert!(filter.includes("com.acme.Shop"));
    }

    #[test]
    fn what_excludes_everything_is_known() {
        for (text, expected) in
            [("* * EXCLUDE", true), ("a.* * INCLUDE\n* * EXCLUDE", false), ("", false), ("** EXCLUDE", true)]
        {
            assert_eq!(Filter::parse(text).unwrap().excludes_everything(), expected, "{text}");
        }
    }

    #[test]
    fn messages_name_the_line() {
        let said = |text: &str| Filter::parse(text).unwrap_err().to_string();
        assert_eq!(said("a * INCLUDE\nb * MAYBE"), "line 2: MAYBE is neither INCLUDE nor EXCLUDE");
        assert_eq!(said("a*b * INCLUDE"), "line 1: a*b has a * that is not at its beginning or end");
        assert_eq!(said("a"), "line 1: \"a\" is not CLASS METHOD INCLUDE or CLASS METHOD EXCLUDE");
    }

    #[test]
    fn descriptors_become_readable() {
        for (descriptor, name) in [("Ljava/lang/String;", "java.lang.String"), ("[[I", "int[][]"), ("[La/B;", "a.B[]")]
        {
            assert_eq!(readable(descriptor), name);
        }
    }
}
