//! Reads a names file: what the ids of a text mean.

use std::io::{self, BufRead};

use rustc_hash::FxHashMap;

use super::line::{Radix, parse_number};

/// A names file in memory.
#[derive(Clone, Debug, Default)]
pub struct TextNames {
    /// Name and superclass.
    classes: FxHashMap<u64, (String, u64)>,
    by_name: FxHashMap<String, u64>,
    methods: FxHashMap<u64, String>,
    /// Method and line.
    sites: FxHashMap<u64, (u64, u64)>,
    site_types: FxHashMap<u64, String>,
    referent: Option<u64>,
}

impl TextNames {
    /// Reads a file; the number of the line that is wrong.
    pub fn read(input: impl BufRead) -> io::Result<Result<Self, u64>> {
        let mut names = Self::default();
        for (line, text) in (1..).zip(input.lines()) {
            let text = text?;
            if !text.is_empty() && !text.starts_with('#') && names.line(&text).is_none() {
                return Ok(Err(line));
            }
        }
        Ok(Ok(names))
    }

    fn line(&mut self, text: &str) -> Option<()> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let id = |at: usize| words.get(at).and_then(|word| parse_number(word, Radix::Hexadecimal));
        match *words.first()? {
            "C" | "I" => {
                let (class, name) = (id(1)?, *words.get(2)?);
                self.by_name.entry(name.to_owned()).or_insert(class);
                self.classes.insert(class, (name.to_owned(), id(3).unwrap_or(0)));
            }
            "F" => {
                let field = id(2)?;
                if words.get(3..6).is_some_and(|w| w[0] == "referent" && w[2] == "java/lang/ref/Reference") {
                    self.referent = Some(field);
                }
            }
            "N" => {
                self.methods.insert(id(1)?, format!("{}.{}", words.get(3)?.replace('/', "."), words.get(4)?));
            }
            "S" => {
                let site = id(3)?;
                self.site_types.insert(site, (*words.get(4)?).to_owned());
                let line = words.get(6).and_then(|line| line.parse().ok()).unwrap_or(0);
                self.sites.insert(site, (id(1)?, line));
            }
            "E" => {}
            _ => return None,
        }
        Some(())
    }

    /// The type that a class number stands for.
    pub fn descriptor(&self, class: u64) -> Option<String> {
        let (name, _) = self.classes.get(&class)?;
        // Arrays and unknown types are listed by their descriptors.
        Some(if name.starts_with('[') || name == "?" { name.clone() } else { format!("L{name};") })
    }

    /// The number of a class, or of an array type by its descriptor.
    pub fn class_number(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    /// `java.util.HashMap.put:123` for people.
    pub fn site_text(&self, site: u64) -> Option<String> {
        let &(method, line) = self.sites.get(&site)?;
        let method = self.methods.get(&method).cloned().unwrap_or_else(|| format!("method {method:x}"));
        Some(if line == 0 { method } else { format!("{method}:{line}") })
    }

    /// Descriptor of what a site allocates.
    pub fn site_type(&self, site: u64) -> Option<&str> {
        self.site_types.get(&site).map(String::as_str)
    }

    /// The field `java.lang.ref.Reference.referent`.
    pub fn referent(&self) -> Option<u64> {
        self.referent
    }

    /// Names of the classes that are or extend that class.
    pub fn family(&self, ancestor: &str) -> Vec<&str> {
        let is_one = |class: u64| {
            let mut at = Some(class);
            // A damaged file could close a circle.
            for _ in 0..1000 {
                let Some((name, parent)) = at.and_then(|class| self.classes.get(&class)) else { return false };
                if name == ancestor {
                    return true;
                }
                at = Some(*parent);
            }
            false
        };
        self.classes.iter().filter(|&(&class, _)| is_one(class)).map(|(_, (name, _))| name.as_str()).collect()
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
        assert_eq!(TextNames::read("C 0x1 A 0x0 I:\nN nonsense".as_bytes()).unwrap().unwrap_err(), 2);
    }
}
