//! Elements with attributes and nothing inside, as TPTP's traces have them.

use std::fmt::{Display, Write};
use std::time::Duration;

/// An XML element under construction.
#[derive(Debug)]
pub struct Element {
    text: String,
}

impl Element {
    /// Starts an element; the name must not need escaping.
    pub fn new(name: &str) -> Self {
        Self { text: format!("<{name}") }
    }

    /// Adds a numeric attribute.
    pub fn number(mut self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.text, " {name}=\"{value}\"");
        self
    }

    /// Seconds with six decimal places.
    pub fn time(self, value: Duration) -> Self {
        self.time_as("time", value)
    }

    /// The same under another name.
    pub fn time_as(self, name: &str, value: Duration) -> Self {
        self.number(name, format_args!("{}.{:06}", value.as_secs(), value.subsec_micros()))
    }

    /// Adds a text attribute with escaping.
    pub fn text(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.text, " {name}=\"");
        escape(value, &mut self.text);
        self.text.push('"');
        self
    }

    /// A number that may be missing.
    pub fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.number(name, value),
            None => self,
        }
    }

    /// Ends the element with a line break.
    pub fn end(mut self) -> String {
        self.text.push_str("/>\n");
        self.text
    }
}

/// Escapes an attribute value. Characters that are not allowed in XML 1.0 become U+FFFD; white space is escaped, since
/// attributes would normalize it.
fn escape(value: &str, out: &mut String) {
    for character in value.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
}

/// A line for people, whatever is in it.
pub fn comment(text: &str) -> String {
    let mut line = String::from("<!-- ");
    let mut before = ' ';
    for character in text.chars() {
        // Two hyphens would be the end of it.
        if character == '-' && before == '-' {
            line.push(' ');
        }
        match character {
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => line.push('\u{fffd}'),
            _ => line.push(character),
        }
        before = character;
    }
    line + " -->\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_meant_to_be_xml() {
        let element = Element::new("threadStart")
            .number("threadId", 3)
            .time(Duration::from_micros(1_500_000_042))
            .text("threadName", "a<b> & \"c\"\n\u{1}\u{ffff}ä𝄞");
        let expected = "<threadStart threadId=\"3\" time=\"1500.000042\" \
            threadName=\"a&lt;b&gt; &amp; &quot;c&quot;&#10;\u{fffd}\u{fffd}ä𝄞\"/>\n";
        assert_eq!(element.end(), expected);
    }

    #[test]
    fn comments_end_where_they_should() {
        assert_eq!(comment("a --> b\n---"), "<!-- a - -> b\u{fffd}- - - -->\n");
    }
}
