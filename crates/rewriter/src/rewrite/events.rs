//! Which hooks a set of events requires, and which ones a method that becomes too large has to forgo.

use et_names::{EventSet, Witness};

/// The hooks that a class or method is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) sites: bool,
    pub(super) arrays: bool,
    /// Whether allocations of primitive arrays get the long form with a site.
    pub(super) array_sites: bool,
    pub(super) fields: bool,
    pub(super) elements: bool,
    /// Whether array updates get the short form.
    pub(super) short_elements: bool,
    pub(super) constants: bool,
    /// Calls of methods that create or change objects.
    pub(super) calls: bool,
    pub(super) methods: bool,
    pub(super) exceptions: bool,
    /// The value of the stack, at calls and allocations.
    pub(super) stacks: bool,
    pub(super) witness: Witness,
}

impl Wanted {
    pub(super) const NOTHING: Wanted = Wanted {
        sites: false,
        arrays: false,
        array_sites: false,
        fields: false,
        elements: false,
        short_elements: false,
        constants: false,
        calls: false,
        methods: false,
        exceptions: false,
        stacks: false,
        witness: Witness::None,
    };

    pub(super) fn of(events: EventSet) -> Self {
        let (alloc, update) = (events.has(EventSet::ALLOC), events.has(EventSet::UPDATE));
        Self {
            sites: alloc,
            arrays: alloc,
            array_sites: alloc,
            fields: update,
            elements: update,
            short_elements: false,
            constants: alloc,
            calls: true,
            methods: events.has(EventSet::METHOD),
            exceptions: events.has(EventSet::EXCEPTION),
            stacks: events.has(EventSet::STACKS),
            witness: events.witness(),
        }
    }

    /// Whether objects are reported when they are created or when references to them are stored.
    pub(super) fn knows_objects(self) -> bool {
        self.sites || self.fields
    }

    /// The steps in which a method that exceeds a limit forgoes hooks: first those of which huge table initializers,
    /// the usual case, mostly consist; last those on which the reconstruction of stacks depends.
    pub(super) fn sacrifices(self) -> impl Iterator<Item = Self> {
        let no_witness = Self { witness: Witness::None, ..self };
        let short_elements = Self { short_elements: self.elements, ..no_witness };
        let no_array_sites = Self { array_sites: false, ..short_elements };
        let no_constants = Self { constants: false, ..no_array_sites };
        let no_elements = Self { elements: false, short_elements: false, ..no_constants };
        let no_exceptions = Self { exceptions: false, ..no_elements };
        let no_fields = Self { fields: false, ..no_exceptions };
        // An object without its stack is more than no object.
        let no_stacks = Self { stacks: false, ..no_fields };
        let no_arrays = Self { arrays: false, ..no_stacks };
        let no_calls = Self { calls: false, ..no_arrays };
        // All fields are spelled out, so that the compiler asks about a new one.
        let no_sites = Self {
            sites: false,
            arrays: false,
            array_sites: false,
            fields: false,
            elements: false,
            short_elements: false,
            constants: false,
            calls: false,
            methods: self.methods,
            exceptions: false,
            stacks: false,
            witness: Witness::None,
        };
        let steps = [
            self,
            no_witness,
            short_elements,
            no_array_sites,
            no_constants,
            no_elements,
            no_exceptions,
            no_fields,
            no_stacks,
            no_arrays,
            no_calls,
            no_sites,
            Self::NOTHING,
        ];
        let mut before = None;
        // A step that only removes hooks that are not wanted is skipped.
        steps.into_iter().filter(move |&step| before.replace(step) != Some(step))
    }

    /// Names of the wanted hooks that `given` lacks; empty if it lacks none.
    pub(super) fn missing_from(self, given: Self) -> String {
        if given == Self::NOTHING {
            return "all hooks".into();
        }
        let Self {
            sites,
            arrays,
            array_sites,
            fields,
            elements,
            // A form of the hook, not a hook.
            short_elements: _,
            constants,
            calls,
            // Only forgone together with all others.
            methods: _,
            exceptions,
            stacks,
            witness,
        } = self;
        let updates = match (fields && !given.fields, elements && !given.elements) {
            (true, true) => "updates",
            (true, false) => "field updates",
            (false, true) => "array updates",
            (false, false) => "",
        };
        let lists = [
            (sites && !given.sites, "allocation sites"),
            (arrays && !given.arrays, "array allocations"),
            (array_sites && given.arrays && !given.array_sites, "sites of arrays of numbers"),
            (calls && !given.calls, "calls that make or change objects"),
            (constants && !given.constants, "string constants"),
            (!updates.is_empty(), updates),
            (exceptions && !given.exceptions, "throws and handlers"),
            (stacks && !given.stacks, "stacks"),
            (witness != given.witness, "witnesses"),
        ];
        let missing: Vec<&str> =
            lists.into_iter().filter(|&(is_missing, _)| is_missing).map(|(_, what)| what).collect();
        missing.join(", ")
    }
}
