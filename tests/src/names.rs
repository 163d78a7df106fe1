//! An independent reader of the names file (`et-trace text --names`): tests must not share bugs with what they test.

use std::collections::HashMap;
use std::rc::Rc;

use anyhow::{Context, Result, bail, ensure};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// With dots: `java.lang.String`.
    pub class: Rc<str>,
    /// Name; `<init>` for a constructor.
    pub name: String,
    pub descriptor: String,
    pub is_static: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Class name with dots.
    pub class: Rc<str>,
    pub name: String,
    pub is_static: bool,
}

/// An allocation site of the names file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The method that contains it.
    pub method: u64,
    /// Descriptor of what is allocated.
    pub descriptor: String,
    /// Number of array dimensions; 0 for an object.
    pub dimensions: u32,
    /// Source line, 0 if not known.
    pub line: u32,
}

/// All names, by id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub methods: HashMap<u64, Method>,
    pub fields: HashMap<u64, Field>,
    pub sites: HashMap<u64, Site>,
    classes: HashMap<u64, Rc<str>>,
}

impl Names {
    /// Reads a names file; an id that is used before its definition is an error, as the format says.
    pub fn parse(text: &str) -> Result<Self> {
        let mut names = Self::default();
        for (index, line) in text.lines().enumerate() {
            names.line(line).with_context(|| format!("names file, line {}: {line:?}", index + 1))?;
        }
        Ok(names)
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["C" | "I", id, name, superclass, rest @ ..] => {
                self.class_if_any(superclass)?;
                for interface in rest.iter().filter(|word| **word != "I:") {
                    self.class(interface)?;
                }
                let class = dotted(name).into();
                ensure!(self.classes.insert(number(id)?, class).is_none(), "class {id} is defined twice");
            }
            ["E", id, _name] => {
                self.class(id)?;
            }
            ["F", kind, id, name, class, _class_name, _descriptor] => {
                let field = Field { class: self.class(class)?, name: (*name).into(), is_static: *kind == "S" };
                ensure!(self.fields.insert(number(id)?, field).is_none(), "field {id} is defined twice");
            }
            ["N", id, class, _class_name, name, descriptor, flags @ ..] => {
                let method = Method {
                    class: self.class(class)?,
                    name: (*name).into(),
                    descriptor: (*descriptor).into(),
                    is_static: flags.first().is_some_and(|flag| flag.starts_with('S')),
                };
                ensure!(self.methods.insert(number(id)?, method).is_none(), "method {id} is defined twice");
            }
            ["S", method, class, id, descriptor, dimensions, line] => {
                self.class(class)?;
                let method = number(method)?;
                ensure!(self.methods.contains_key(&method), "method {method:#x} is not defined yet");
                let site = Site {
                    method,
                    descriptor: (*descriptor).into(),
                    dimensions: u32::try_from(number(dimensions)?)?,
                    line: line.parse()?,
                };
                ensure!(self.sites.insert(number(id)?, site).is_none(), "site {id} is defined twice");
            }
            _ => bail!("not a line of a names file"),
        }
        Ok(())
    }

    fn class(&self, id: &str) -> Result<Rc<str>> {
        self.classes.get(&number(id)?).cloned().with_context(|| format!("class {id} is not defined yet"))
    }

    fn class_if_any(&self, id: &str) -> Result<()> {
        if number(id)? != 0 { self.class(id).map(drop) } else { Ok(()) }
    }
}

fn number(word: &str) -> Result<u64> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    u64::from_str_radix(digits, 16).with_context(|| format!("{word:?} is no hexadecimal number"))
}

/// `java/lang/String` and `Ljava/lang/String;` are `java.lang.String`.
fn dotted(name: &str) -> String {
    let bare = name.strip_prefix('L').and_then(|rest| rest.strip_suffix(';')).unwrap_or(name);
    bare.replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "C 0x1 java/lang/Object 0x0\nC 0x2 a/B 0x1 I:\nF S 0x5 f 0x2 a/B Ljava/lang/Object;\n\
                         N 0x3 0x2 a/B m ()V S\nN 0x4 0x2 a/B <init> ()V I\nS 0x3 0x2 0x9 [I 0x1 12\nE 0x2 a/B\n";

    #[test]
    fn every_kind_of_line() {
        let names = Names::parse(SMALL).unwrap();
        assert_eq!((&*names.methods[&3].class, &*names.methods[&3].name), ("a.B", "m"));
        assert!(names.methods[&3].is_static && !names.methods[&4].is_static);
        assert!(names.fields[&5].is_static);
        assert_eq!((names.sites[&9].line, names.sites[&9].dimensions), (12, 1));
    }

    #[test]
    fn ids_must_be_defined_before_use() {
        let error = format!("{:#}", Names::parse("N 0x3 0x2 a/B m ()V S\n").unwrap_err());
        assert!(error.contains("line 1") && error.contains("0x2 is not defined"), "{error}");
    }
}
