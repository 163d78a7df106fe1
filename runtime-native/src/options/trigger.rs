//! Events that begin or end tracing (`docs/runtime-options.md`).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::base::patience::shown;

/// An event that begins or ends tracing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// This time has passed since the start of the program or of tracing.
    After(Duration),
    /// A file of this name exists.
    File(PathBuf),
    /// A method is called.
    Method(MethodName),
}

impl Trigger {
    /// Whether it is a method call.
    pub fn is_method(&self) -> bool {
        matches!(self, Self::Method(_))
    }
}

/// As written in options.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(time) => write!(f, "after:{}", shown(*time)),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Method(method) => write!(f, "method:{}.{}", method.class_name(), method.name),
        }
    }
}

/// A method, or all methods of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName {
    /// The descriptor of the class.
    pub class: String,
    /// The method's name: `run`, `<init>`.
    pub name: String,
}

impl MethodName {
    /// The class in Java's form: `com.acme.Main`.
    pub fn class_name(&self) -> String {
        let name = self.class.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
        name.unwrap_or(&self.class).replace('/', ".")
    }
}

/// A value is not a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write method:com.acme.Main.run, after:30s (ms, s, m) or file:PATH")]
pub struct NoTrigger;

impl FromStr for Trigger {
    type Err = NoTrigger;

    fn from_str(text: &str) -> Result<Self, NoTrigger> {
        let (kind, rest) = text.split_once(':').ok_or(NoTrigger)?;
        let rest = rest.trim();
        match kind.trim() {
            "after" => duration(rest).map(Self::After),
            "file" if !rest.is_empty() => Some(Self::File(rest.into())),
            "method" => method(rest).map(Self::Method),
            _ => None,
        }
        .ok_or(NoTrigger)
    }
}

pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit.trim() {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

fn method(text: &str) -> Option<MethodName> {
    let (class, name) = text.rsplit_once('.')?;
    let is_name = |text: &str| !text.is_empty() && !text.contains(['(', ')', ' ', ';', '*']);
    (is_name(class) && is_name(name))
        .then(|| MethodName { class: format!("L{};", class.replace('.', "/")), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read() {
        let method =
            |class: &str, name: &str| Ok(Trigger::Method(MethodName { class: class.into(), name: name.into() }));
        assert_eq!("method:com.acme.Main.run".parse(), method("Lcom/acme/Main;", "run"));
        assert_eq!("method: A$B.<init>".parse(), method("LA$B;", "<init>"));
        let after = |millis| Ok(Trigger::After(Duration::from_millis(millis)));
        assert_eq!("after:250ms".parse(), after(250));
        assert_eq!("after:3".parse(), after(3000));
        assert_eq!("after: 2m".parse(), after(120_000));
        assert_eq!("file:/tmp/a:b".parse(), Ok(Trigger::File("/tmp/a:b".into())));
    }

    #[test]
    fn triggers_are_told_as_they_were_given() {
        for text in ["method:com.acme.Main.run", "method:A$B.<init>", "after:250ms", "after:120s", "file:/tmp/a:b"] {
            assert_eq!(text.parse::<Trigger>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "method",
            "method:run",
            "method:a.b()",
            "method:a.*",
            "after:",
            "after:soon",
            "after:-1s",
            "after:3h",
            "file:",
            "signal:USR1",
            "after:99999999999999999999",
            "after:999999999999999999m",
        ] {
            assert_eq!(text.parse::<Trigger>(), Err(NoTrigger), "{text}");
        }
    }
}
