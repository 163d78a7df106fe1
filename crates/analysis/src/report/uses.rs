//! How objects were used, as a report shows it.

use std::io;
use std::ops::ControlFlow;

use et_names::SiteId;
use et_reader::observed::usage::{StoredIn, Usage, UsageObserver};
use et_reader::population::Population;
use et_reader::record::Record;
use et_reader::source::{Reading, Source};
use et_reader::types::TypeId;
use rustc_hash::FxHashMap;

use super::ReportError;
use crate::selection;
use crate::summary::Amount;

/// Objects that were used once they were made, and all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    pub all: Amount,
    pub unused: Amount,
}

impl Use {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.unused += other.unused;
    }
}

/// Of the objects of a class: how many never got an array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keeping {
    pub all: Amount,
    pub without: Amount,
}

/// Sums over what was observed.
#[derive(Debug)]
pub(super) struct Uses<'u> {
    pub usage: &'u Usage,
    pub all: Use,
    classes: FxHashMap<TypeId, Use>,
    places: FxHashMap<(SiteId, TypeId), Use>,
    pub keeping: FxHashMap<TypeId, Keeping>,
}

impl<'u> Uses<'u> {
    pub fn of(usage: &'u Usage, has_calls: bool) -> Self {
        let mut uses = Self {
            usage,
            all: Use::default(),
            classes: FxHashMap::default(),
            places: FxHashMap::default(),
            keeping: FxHashMap::default(),
        };
        for place in &usage.places {
            if !place.is_array {
                let keeping = uses.keeping.entry(place.ty).or_default();
                keeping.all += place.all;
                keeping.without += place.without_array;
            }
            // Reads of elements are seen by witnesses only, and most other uses are calls.
            if has_calls && (!place.is_array || usage.has_witnesses) {
                let used = Use { all: place.all, unused: place.unused };
                uses.all.add(used);
                uses.classes.entry(place.ty).or_default().add(used);
                uses.places.insert((place.site, place.ty), used);
            }
        }
        uses
    }

    pub fn of_class(&self, class: TypeId) -> Use {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    pub fn of_place(&self, site: SiteId, class: TypeId) -> Use {
        self.places.get(&(site, class)).copied().unwrap_or_default()
    }

    /// The fields that what is alive of a place was stored into last.
    pub fn stored_in(&self, site: SiteId, class: TypeId) -> &'u [StoredIn] {
        let all = &self.usage.stored_in;
        let from = all.partition_point(|stored| (stored.site, stored.ty) < (site, class));
        let len = all[from..].partition_point(|stored| (stored.site, stored.ty) == (site, class));
        &all[from..from + len]
    }
}

/// What was observed of some objects of a trace: those of a population. Reads all records.
pub(super) fn of_selected(source: &Source, population: &Population, reading: Reading) -> Result<Usage, ReportError> {
    if !population.has_deaths {
        return Ok(Usage::default());
    }
    let selected = selection::numbers(population).map_err(|error: io::Error| ReportError::Rows(error))?;
    let (mut observer, mut next) = (UsageObserver::new(source.naming()), 0);
    source.for_each(reading, |record, at| {
        let is_birth = matches!(record, Record::Alloc(_));
        observer.record(record, at.types, !is_birth || selected.has(next));
        next += u64::from(is_birth);
        ControlFlow::Continue(())
    })?;
    Ok(observer.finish(&population.types))
}
