//! The parameters of a request, and what they mean.

use std::str::FromStr;

use et_analysis::groups::{Filter, Level, Query};

/// Why a request cannot be answered, as a sentence.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is wrong.
    Wrong(String),
    /// There is no such thing.
    None(String),
    /// A file cannot be read.
    Failed(String),
}

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!("cannot read the tables of the trace: {error}"))
    }
}

/// Parameters that may be given several times.
const LISTS: [&str; 2] = ["path", "name"];

/// Names with values, in the order of the request.
#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Refuses names that are not `known`, or given twice unless they are lists.
    pub fn new(pairs: Vec<(String, String)>, known: &[&str]) -> Result<Self, Refused> {
        for (at, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) && name != "trace" {
                return Err(Refused::Wrong(format!(
                    "{name}: there is no such parameter; there are: {}",
                    known.join(", ")
                )));
            }
            if !LISTS.contains(&name.as_str()) && pairs[..at].iter().any(|(other, _)| other == name) {
                return Err(Refused::Wrong(format!("{name} is given twice")));
            }
        }
        Ok(Self(pairs))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// All values of a name.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s String> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value)
    }

    pub fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refused> {
        let wrong = |text: &str| Refused::Wrong(format!("{name}={text}: a number is needed"));
        self.get(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }

    /// A number, or what counts if there is none, up to the largest that is allowed.
    pub fn count(&self, name: &str, otherwise: usize, most: usize) -> Result<usize, Refused> {
        Ok(self.number(name)?.unwrap_or(otherwise).min(most))
    }

    /// A moment, as a tick; `end` and nothing are the end of the trace.
    pub fn tick(&self, name: &str) -> Result<u64, Refused> {
        match self.get(name) {
            None | Some("end") => Ok(u64::MAX),
            Some(_) => Ok(self.number(name)?.unwrap_or(u64::MAX)),
        }
    }

    /// The place in the tree of groups.
    pub fn query(&self, is_of_moment: bool) -> Result<Query, Refused> {
        let by = self.get("by").unwrap_or("class").split(',').map(|name| {
            let none = || {
                let all: Vec<&str> = Level::ALL.into_iter().map(|(name, _)| name).collect();
                Refused::Wrong(format!("by={name}: there is no such level; there are: {}", all.join(", ")))
            };
            let level = Level::of(name.trim()).ok_or_else(none)?;
            if level.is_of_moments() && !is_of_moment {
                return Err(Refused::Wrong(format!("by={name} is only known of what is alive at a moment")));
            }
            Ok(level)
        });
        let by: Vec<Level> = by.collect::<Result<_, _>>()?;
        let path: Vec<String> = self.all("path").cloned().collect();
        if path.len() > by.len() {
            return Err(Refused::Wrong(format!("{} levels are opened, there are {}", path.len(), by.len())));
        }
        let text = |name| self.get(name).map(str::to_owned);
        let filter = Filter {
            class: text("class"),
            site: text("site"),
            context: text("context"),
            thread: self.number("thread")?,
        };
        Ok(Query { filter, by, path })
    }
}
