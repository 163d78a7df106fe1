//! The options after `-agentpath:libet_monitor.so=`: `name=value`, separated by commas.

use std::path::PathBuf;

use thiserror::Error;

/// Support for debuggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Debugging {
    /// `libjdwp` is not loaded: it has a small cost even without a debugger.
    #[default]
    Off,
    /// It is loaded, and started when the first debugger comes.
    On,
    /// The program does not start before.
    Wait,
}

/// Selection of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterOption {
    File(PathBuf),
    /// Its lines, with `;` between them.
    Lines(String),
}

impl FilterOption {
    /// A value that contains a mode is not a file name.
    fn read(value: &str) -> Self {
        let has_mode = |line: &str| line.trim_end().ends_with("INCLUDE") || line.trim_end().ends_with("EXCLUDE");
        if value.split(';').any(has_mode) { Self::Lines(value.replace(';', "\n")) } else { Self::File(value.into()) }
    }
}

/// The parts between commas; `\\,` is a comma within one.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped =
            (character == '\\').then(|| characters.clone().next()).flatten().filter(|next| ",\\".contains(*next));
        let last = parts.len() - 1;
        match escaped {
            Some(escaped) => {
                characters.next();
                parts[last].push(escaped);
            }
            None if character == ',' => parts.push(String::new()),
            None => parts[last].push(character),
        }
    }
    parts
}

/// See the module; [`docs/monitor-agent.md`] has the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Accept no connections: the agent only writes its log.
    pub is_deaf: bool,
    /// A port of loopback's; none: the first that is free of the ranges.
    pub port: Option<u16>,
    /// Trust all connections as if they had the token.
    pub trusts_all: bool,
    /// Print nothing on standard error.
    pub is_quiet: bool,
    /// Name displayed by monitors; by default the program's main class or jar.
    pub name: Option<String>,
    pub debugging: Debugging,
    /// The log for the viewers of TPTP; `%p` is the process id.
    pub xml: Option<PathBuf>,
    /// Allocations and deaths go to the log.
    pub heap: bool,
    /// Selection of classes.
    pub filter: Option<FilterOption>,
    /// The references between all objects go to the log when the program ends.
    pub dumps_at_end: bool,
}

/// Why options are not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OptionError {
    #[error("unknown option {0}: use listen, port, trust, quiet, name, debug, xml, heap, filter and dump")]
    Unknown(String),
    #[error("option {name} cannot be {value}: it must be {expected}")]
    Value { name: String, value: String, expected: &'static str },
    #[error("option {0} has no effect without xml=FILE")]
    NeedsXml(&'static str),
    #[error("option filter has no effect without heap=on")]
    NeedsHeap,
    #[error("option listen=off needs a log: xml=FILE")]
    NeedsLog,
}

impl Options {
    /// Parses the text after the `=`.
    pub fn parse(text: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        let parts = parts(text);
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part.as_str(), ""));
            let wrong = |expected: &'static str| OptionError::Value {
                name: name.to_owned(),
                value: if value.is_empty() { "empty".to_owned() } else { value.to_owned() },
                expected,
            };
            let switch = || match value {
                "on" => Ok(true),
                "off" => Ok(false),
                _ => Err(wrong("on or off")),
            };
            let file = || if value.is_empty() { Err(wrong("a file")) } else { Ok(Some(PathBuf::from(value))) };
            match name {
                "listen" => options.is_deaf = !switch()?,
                "port" => options.port = Some(value.parse().map_err(|_| wrong("a port: 0 to 65535"))?),
                "trust" => {
                    options.trusts_all = match value {
                        "all" => true,
                        "token" => false,
                        _ => return Err(wrong("token or all")),
                    }
                }
                "quiet" => options.is_quiet = switch()?,
                "name" if value.is_empty() => return Err(wrong("a name")),
                "name" => options.name = Some(value.to_owned()),
                "debug" => {
                    options.debugging = match value {
                        "off" => Debugging::Off,
                        "on" => Debugging::On,
                        "wait" => Debugging::Wait,
                        _ => return Err(wrong("off, on or wait")),
                    }
                }
                "xml" => options.xml = file()?,
                "heap" => options.heap = switch()?,
                "filter" if value.is_empty() => return Err(wrong("a file, or lines with ; between them")),
                "filter" => options.filter = Some(FilterOption::read(value)),
                "dump" => {
                    options.dumps_at_end = match value {
                        "end" => true,
                        "off" => false,
                        _ => return Err(wrong("end or off")),
                    }
                }
                _ => return Err(OptionError::Unknown(name.to_owned())),
            }
        }
        if options.is_deaf && options.xml.is_none() {
            return Err(OptionError::NeedsLog);
        }
        if options.xml.is_none() {
            for (is_given, name) in [(options.heap, "heap"), (options.dumps_at_end, "dump")] {
                if is_given {
                    return Err(OptionError::NeedsXml(name));
                }
            }
        }
        if options.filter.is_some() && !options.heap {
            return Err(OptionError::NeedsHeap);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_options_are_read() {
        let all = "listen=on,port=8601,trust=all,quiet=on,name=The shop,debug=wait,xml=run-%p.trcxml,heap=on,filter=f.txt,dump=end";
        let options = Options::parse(all).unwrap();
        assert_eq!(
            options,
            Options {
                is_deaf: false,
                port: Some(8601),
                trusts_all: true,
                is_quiet: true,
                name: Some("The shop".to_owned()),
                debugging: Debugging::Wait,
                xml: Some("run-%p.trcxml".into()),
                heap: true,
                filter: Some(FilterOption::File("f.txt".into())),
                dumps_at_end: true,
            }
        );
        assert_eq!(Options::parse(""), Ok(Options::default()));
    }

    #[test]
    fn commas_and_lines_may_be_in_values() {
        let options = Options::parse("listen=off,xml=a\\,b\\\\c\\d,heap=on,filter=a.* INCLUDE; * * EXCLUDE").unwrap();
        assert_eq!(options.xml, Some("a,b\\c\\d".into()));
        assert_eq!(options.filter, Some(FilterOption::Lines("a.* INCLUDE\n * * EXCLUDE".into())));
        assert!(options.is_deaf);
        assert_eq!(Options::parse("listen=off").unwrap_err().to_string(), "option listen=off needs a log: xml=FILE");
    }

    #[test]
    fn messages_say_what_to_write_instead() {
        let said = |text: &str| Options::parse(text).unwrap_err().to_string();
        assert_eq!(said("port=80000"), "option port cannot be 80000: it must be a port: 0 to 65535");
        assert_eq!(said("debug"), "option debug cannot be empty: it must be off, on or wait");
        assert_eq!(said("heap=on"), "option heap has no effect without xml=FILE");
        assert_eq!(said("xml=a,filter=b"), "option filter has no effect without heap=on");
        assert!(said("prot=1").starts_with("unknown option prot: use listen, port, "));
    }
}
