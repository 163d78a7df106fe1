//! Display names of what a report tells of, and whose code it is.

use et_names::{FieldId, MethodId, SiteId};
use et_reader::attribution::{Callers, NONE};
use et_reader::made_in::MadeIn;
use et_reader::model::ContextId;
use et_reader::owners::{Origin, Owners};
use et_reader::population::Population;
use et_reader::source::Source;
use et_reader::types::{TypeId, for_people};
use rustc_hash::FxHashMap;

use crate::flame::{self, FrameKind, FrameName};
use crate::named;

/// Label of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Label {
    Root,
    /// At this call; 0 if it is not known.
    Method(MethodId, SiteId),
    Class(TypeId),
    Site(MadeIn, TypeId),
}

/// Display names of classes, places and frames: all that flame graphs need.
pub(crate) struct Names<'a> {
    source: &'a Source,
    population: &'a Population,
    owners: Owners<'a>,
    classes: FxHashMap<TypeId, String>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(source: &'a Source, population: &'a Population) -> Self {
        Self { source, population, owners: Owners::of(source), classes: FxHashMap::default() }
    }

    fn class(&mut self, class: TypeId) -> String {
        let types = &self.population.types;
        self.classes.entry(class).or_insert_with(|| for_people(types.descriptor(class))).clone()
    }

    fn place(&self, place: MadeIn) -> String {
        place.text(self.source.naming())
    }

    /// The method that a place is in, as far as it is known.
    pub(super) fn method_of_place(&self, place: MadeIn) -> Option<MethodId> {
        place.method(self.source.naming())
    }

    pub(super) fn frame(&mut self, label: Label) -> FrameName {
        match label {
            Label::Root => flame::root(),
            Label::Method(method, at) => FrameName {
                name: named::frame(self.source.naming(), method, at),
                kind: self.owners.place(method).into(),
            },
            Label::Class(class) => FrameName { name: self.class(class), kind: FrameKind::Class },
            Label::Site(place, class) => {
                FrameName { name: format!("{}  {}", self.class(class), self.place(place)), kind: FrameKind::Site }
            }
        }
    }
}

/// Display names of ids, and on whose behalf contexts run.
pub(super) struct Told<'a> {
    names: Names<'a>,
    /// On whose behalf each context runs.
    callers: Vec<Callers>,
    /// Whether fields are of code outside the JDK.
    fields: FxHashMap<FieldId, bool>,
}

impl<'a> Told<'a> {
    pub fn new(source: &'a Source, population: &'a Population) -> Self {
        let mut names = Names::new(source, population);
        let callers = Callers::of_contexts(&population.contexts, &mut names.owners);
        Self { names, callers, fields: FxHashMap::default() }
    }

    pub fn source(&self) -> &'a Source {
        self.names.source
    }

    pub fn class(&mut self, class: TypeId) -> String {
        self.names.class(class)
    }

    pub fn method(&self, method: MethodId) -> String {
        self.source().naming().method(method)
    }

    pub fn place(&self, place: MadeIn) -> String {
        self.names.place(place)
    }

    pub fn origin_of_place(&mut self, place: MadeIn) -> Option<Origin> {
        let method = self.names.method_of_place(place)?;
        Some(self.names.owners.origin(method))
    }

    pub fn origin_of_descriptor(&self, descriptor: &str) -> Origin {
        self.names.owners.origin_of_descriptor(descriptor)
    }

    /// Whether a field is of a class of the program's or a library's.
    pub fn is_outside_jdk(&mut self, field: FieldId) -> bool {
        if let Some(&known) = self.fields.get(&field) {
            return known;
        }
        let text = self.source().naming().field(field);
        let is_outside = text
            .rsplit_once('.')
            .is_some_and(|(class, _)| self.names.owners.origin_of_class(&class.replace('.', "/")) != Origin::Jdk);
        self.fields.insert(field, is_outside);
        is_outside
    }

    pub fn outside(&self, context: ContextId) -> Option<MethodId> {
        self.callers.get(context.0 as usize).map(|callers| callers.outside).filter(|&method| method != NONE)
    }

    /// The methods of a context, innermost first.
    pub fn context(&self, context: ContextId, most: usize) -> Vec<String> {
        let frames = self.names.population.contexts.frames(context).take(most);
        frames.map(|frame| named::frame(self.source().naming(), frame.method, frame.at)).collect()
    }
}
