//! Display names of the numbers in the rows of a population.

use et_names::MethodId;
use et_reader::made_in::MadeIn;
use et_reader::naming::Naming;
use et_reader::population::Population;
use et_reader::source::Source;
use et_reader::types::{TypeId, for_people};
use serde::Serialize;

/// A place with what it allocates, for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// `java.util.HashMap.put:123`; where no site is known, the method that ran and how it allocated: `shop.Page.clone, by clone()`
    pub site: String,
    /// The type that it allocates.
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
    /// Creates the labels of a trace.
    pub fn of(source: &'a Source, population: &'a Population) -> Self {
        Self { population, naming: source.naming() }
    }

    /// Names that come from the trace itself.
    pub fn naming(&self) -> Naming<'a> {
        self.naming
    }

    /// Display name of a class: `java.lang.String[]`.
    pub fn class(&self, class: TypeId) -> String {
        for_people(self.population.types.descriptor(class))
    }

    /// `java.util.HashMap.put:123`; `shop.Page.clone, by clone()`
    pub fn made_in(&self, place: MadeIn) -> String {
        place.text(self.naming)
    }

    /// A place with a class that it allocates.
    pub fn place(&self, (place, class): (MadeIn, TypeId)) -> Place {
        Place { site: self.made_in(place), ty: self.class(class) }
    }

    /// Display name of a method: `java.util.HashMap.put`.
    pub fn method(&self, method: MethodId) -> String {
        self.naming.method(method)
    }
}
