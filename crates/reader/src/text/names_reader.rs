//! Reads a names file: what the ids of a text mean.

use std::io::{self, BufRead};

use et_names::escape::unescape;
use rustc_hash::FxHashMap;

use super::lines::{Found, read_line};
use super::number::{Radix, parse_number};
use super::starts::{IDS_DECIMAL, NAMES};
use crate::types::class_name;

/// The content of a names file.
#[derive(Clone, Debug, Default)]
pub struct TextNames {
    /// Descriptor and superclass, by class number.
    classes: FxHashMap<u64, (String, u64)>,
    by_type: FxHashMap<String, u64>,
    methods: FxHashMap<u64, String>,
    fields: FxHashMap<u64, String>,
    /// Method and line, by site.
    sites: FxHashMap<u64, (u64, u64)>,
    site_types: FxHashMap<u64, String>,
    referent: Option<u64>,
}

impl TextNames {
    /// Reads a names file; `Err` has the number of the first invalid line.
    pub fn read(mut input: impl BufRead) -> io::Result<Result<Self, u64>> {
        let (mut names, mut buffer, mut radix) = (Self::default(), Vec::new(), Radix::Hexadecimal);
        for line in 1.. {
            match read_line(&mut input, &mut buffer)? {
                Found::Line => {}
                Found::TooLong => return Ok(Err(line)),
                Found::End => break,
            }
            match buffer.trim_ascii() {
                [] => {}
                comment @ [b'#', ..] => {
                    if comment.strip_prefix(NAMES.as_bytes()) == Some(IDS_DECIMAL.as_bytes()) {
                        radix = Radix::Decimal;
                    }
                }
                text => {
                    if std::str::from_utf8(text).ok().and_then(|text| names.line(text, radix)).is_none() {
                        return Ok(Err(line));
                    }
                }
            }
        }
        Ok(Ok(names))
    }

    fn line(&mut self, text: &str, radix: Radix) -> Option<()> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let id = |at: usize| words.get(at).and_then(|word| parse_number(word, radix));
        let name = |at: usize| words.get(at).map(|word| unescape(word));
        match *words.first()? {
            "C" | "I" => {
                let (class, word) = (id(1)?, *words.get(2)?);
                // Arrays and unknown types are listed by their descriptors.
                let is_descriptor = word.starts_with('[') || word == "?";
                let name = unescape(word).into_owned();
                let descriptor = if is_descriptor { name } else { format!("L{name};") };
                self.by_type.entry(descriptor.clone()).or_insert(class);
                self.classes.insert(class, (descriptor, id(3).unwrap_or(0)));
            }
            "F" => {
                let field = id(2)?;
                if words.get(3..6).is_some_and(|w| w[0] == "referent" && w[2] == "java/lang/ref/Reference") {
                    self.referent = Some(field);
                }
                if let (Some(name), Some(class)) = (name(3), name(5)) {
                    self.fields.insert(field, format!("{}.{name}", class.replace('/', ".")));
                }
            }
            "N" => {
                self.methods.insert(id(1)?, format!("{}.{}", name(3)?.replace('/', "."), name(4)?));
            }
            "S" => {
                let site = id(3)?;
                self.site_types.insert(site, name(4)?.into_owned());
                let line = words.get(6).and_then(|line| line.parse().ok()).unwrap_or(0);
                self.sites.insert(site, (id(1)?, line));
            }
            "E" => {}
            _ => return None,
        }
        Some(())
    }

    /// Descriptor of a class number.
    pub fn descriptor(&self, class: u64) -> Option<String> {
        self.classes.get(&class).map(|(descriptor, _)| descriptor.clone())
    }

    /// Whether there is a class with this number.
    pub(crate) fn has_class(&self, class: u64) -> bool {
        self.classes.contains_key(&class)
    }

    /// The number of the class with this descriptor; `None` if it is not in the file.
    pub fn type_number(&self, descriptor: &str) -> Option<u64> {
        self.by_type.get(descriptor).copied()
    }

    /// Display name of a site: `java.util.HashMap.put:123`.
    pub fn site_text(&self, site: u64) -> Option<String> {
        let &(method, line) = self.sites.get(&site)?;
        let method = self.methods.get(&method).cloned().unwrap_or_else(|| format!("method {method:x}"));
        Some(if line == 0 { method } else { format!("{method}:{line}") })
    }

    /// Display name of a method: `java.util.HashMap.put`.
    pub fn method_text(&self, method: u64) -> Option<&str> {
        self.methods.get(&method).map(String::as_str)
    }

    /// Display name of a field: `java.util.HashMap.table`.
    pub fn field_text(&self, field: u64) -> Option<&str> {
        self.fields.get(&field).map(String::as_str)
    }

    /// The method that contains a site.
    pub fn site_method(&self, site: u64) -> Option<u64> {
        self.sites.get(&site).map(|&(method, _)| method)
    }

    /// Descriptor of what a site allocates.
    pub fn site_type(&self, site: u64) -> Option<&str> {
        self.site_types.get(&site).map(String::as_str)
    }

    /// The field `java.lang.ref.Reference.referent`.
    pub fn referent(&self) -> Option<u64> {
        self.referent
    }

    /// Names of the class and of all its subclasses.
    pub fn family(&self, ancestor: &str) -> Vec<&str> {
        let is_one = |class: u64| {
            let mut at = Some(class);
            // A damaged file may contain a cycle.
            for _ in 0..1000 {
                let Some((descriptor, parent)) = at.and_then(|class| self.classes.get(&class)) else { return false };
                if class_name(descriptor) == Some(ancestor) {
                    return true;
                }
                at = Some(*parent);
            }
            false
        };
        let family = self.classes.iter().filter(|&(&class, _)| is_one(class));
        family.filter_map(|(_, (descriptor, _))| class_name(descriptor)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_names_file_is_read() {
        let text = "C 0x1 java/lang/Object 0x0 I:\nC 0x2 java/lang/ref/Reference 0x1 I:\n\
                    F I 0x5 referent 0x2 java/lang/ref/Reference Ljava/lang/Object;\nE 0x2 java/lang/ref/Reference\n\
                    C 0x3 java/lang/ref/FinalReference 0x2 I: 0x9\nC 0x4 [I 0x1 I:\nN 0xa 0x1 java/lang/Object hashCode ()I I\n\
                    S 0xa 0x1 0x7 [I 1 12\n";
        let names = TextNames::read(text.as_bytes()).unwrap().unwrap();
        assert_eq!(names.descriptor(3).as_deref(), Some("Ljava/lang/ref/FinalReference;"));
        assert_eq!(names.descriptor(4).as_deref(), Some("[I"));
        assert_eq!(names.site_text(7).as_deref(), Some("java.lang.Object.hashCode:12"));
        assert_eq!((names.site_type(7), names.referent()), (Some("[I"), Some(5)));
        assert_eq!(names.family("java/lang/ref/FinalReference"), ["java/lang/ref/FinalReference"]);
        for wrong in [&b"N nonsense"[..], b"\xff", b"\0"] {
            let text = [b"C 0x1 A 0x0 I:\n", wrong].concat();
            assert_eq!(TextNames::read(text.as_slice()).unwrap().unwrap_err(), 2);
        }
    }
}
