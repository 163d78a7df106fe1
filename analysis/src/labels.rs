//! What the numbers in the rows of a population mean, for people.

use et_names::{MethodId, SiteId};
use et_trace::naming::Naming;
use et_trace::population::Population;
use et_trace::source::Source;
use et_trace::types::{TypeId, for_people};
use serde::Serialize;

/// A site with what it allocates, for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// `java.util.HashMap.put:123`
    pub site: String,
    /// What it allocates.
    #[serde(rename = "type")]
    pub ty: String,
}

/// Names of classes, sites and methods.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations)]
pub struct Labels<'a> {
    population: &'a Population,
    naming: Naming<'a>,
}

impl<'a> Labels<'a> {
    /// Those of a trace.
    pub fn of(source: &'a Source, population: &'a Population) -> Self {
        Self { population, naming: source.naming() }
    }

    /// What a trace names otherwise.
    pub fn naming(&self) -> Naming<'a> {
        self.naming
    }

    /// `java.lang.String[]`
    pub fn class(&self, class: TypeId) -> String {
        for_people(self.population.types.descriptor(class))
    }

    /// `java.util.HashMap.put:123`; what made objects without a site.
    pub fn site(&self, site: SiteId) -> String {
        if site.0 == 0 { "(the VM or native code)".to_owned() } else { self.naming.site(site) }
    }

    /// A site with a class that it allocates.
    pub fn place(&self, (site, class): (SiteId, TypeId)) -> Place {
        Place { site: self.site(site), ty: self.class(class) }
    }

    /// `java.util.HashMap.put`
    pub fn method(&self, method: MethodId) -> String {
        self.naming.method(method)
    }
}
