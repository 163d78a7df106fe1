//! The requested parts of the agent for monitors, and their options.

use thiserror::Error;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Whether monitors may connect.
    pub serves: bool,
    /// Further options of the agent, passed on unchanged.
    options: String,
    /// The log for TPTP.
    xml: Option<String>,
    /// Whether allocations and deaths are logged.
    heap: bool,
    /// Filter for their classes: a file, or lines separated by `;`.
    filter: Option<String>,
}

/// Why these options cannot be used together.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WantedError {
    #[error("ddm={0}: write on, off, or options of the agent such as port=8601,debug=on")]
    Ddm(String),
    #[error("profile={0}: write heap or off")]
    Profile(String),
    #[error("profile=heap needs a log: xml=FILE")]
    NoLog,
    #[error("option filter needs profile=heap")]
    NoProfile,
}

impl Wanted {
    /// Reads the options; `None` if no part of the agent is requested.
    pub fn read<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Self>, WantedError> {
        let mut wanted = Self::default();
        match value("ddm") {
            None | Some("off") => {}
            Some("on") => wanted.serves = true,
            Some(options) if options.split(',').all(|option| option.contains('=')) => {
                (wanted.serves, wanted.options) = (true, options.to_owned());
            }
            Some(other) => return Err(WantedError::Ddm(other.to_owned())),
        }
        wanted.heap = match value("profile") {
            None | Some("off") => false,
            Some("heap") => true,
            Some(other) => return Err(WantedError::Profile(other.to_owned())),
        };
        wanted.xml = value("xml").map(str::to_owned);
        wanted.filter = value("filter").map(str::to_owned);
        if wanted.heap && wanted.xml.is_none() {
            return Err(WantedError::NoLog);
        }
        if wanted.filter.is_some() && !wanted.heap {
            return Err(WantedError::NoProfile);
        }
        Ok((wanted.serves || wanted.xml.is_some()).then_some(wanted))
    }

    /// The agent string: what follows `=` in `-agentpath`.
    pub fn agent_options(&self) -> String {
        let mut options: Vec<String> = Vec::new();
        if !self.serves {
            options.push("listen=off".to_owned());
        }
        options.extend(Some(self.options.clone()).filter(|options| !options.is_empty()));
        // A comma would end the option.
        let escaped = |text: &str| text.replace('\\', "\\\\").replace(',', "\\,");
        options.extend(self.xml.as_ref().map(|path| format!("xml={}", escaped(path))));
        if self.heap {
            options.push("heap=on".to_owned());
        }
        options.extend(self.filter.as_ref().map(|filter| format!("filter={}", escaped(filter))));
        options.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, &'static str)]) -> Result<Option<String>, String> {
        let find = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        Wanted::read(find).map(|wanted| wanted.map(|wanted| wanted.agent_options())).map_err(|error| error.to_string())
    }

    #[test]
    fn the_agent_gets_what_it_needs() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("ddm", "off"), ("profile", "off")]), Ok(None));
        assert_eq!(read(&[("ddm", "on")]), Ok(Some(String::new())));
        assert_eq!(read(&[("ddm", "port=8601,debug=on")]), Ok(Some("port=8601,debug=on".into())));
        assert_eq!(read(&[("xml", "a,b\\c.trcxml")]), Ok(Some("listen=off,xml=a\\,b\\\\c.trcxml".into())));
        let all = [("ddm", "on"), ("xml", "x"), ("profile", "heap"), ("filter", "a.* INCLUDE;* EXCLUDE")];
        assert_eq!(read(&all), Ok(Some("xml=x,heap=on,filter=a.* INCLUDE;* EXCLUDE".into())));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let said = |given: &[(&str, &'static str)]| read(given).unwrap_err();
        assert_eq!(
            said(&[("ddm", "yes")]),
            "ddm=yes: write on, off, or options of the agent such as port=8601,debug=on"
        );
        assert_eq!(said(&[("profile", "threads")]), "profile=threads: write heap or off");
        assert_eq!(said(&[("profile", "heap")]), "profile=heap needs a log: xml=FILE");
        assert_eq!(said(&[("filter", "f"), ("xml", "x")]), "option filter needs profile=heap");
    }
}
