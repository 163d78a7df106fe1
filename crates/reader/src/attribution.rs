//! On whose behalf objects are allocated: a list of the JDK's that grows does so for the method that adds to it.

use et_names::MethodId;
use rustc_hash::FxHashMap;

use crate::made_in::MadeIn;
use crate::model::Contexts;
use crate::naming::Naming;
use crate::owners::{Origin, Owners, PackageId};
use crate::source::Source;
use crate::types::TypeId;

/// No method.
pub const NONE: MethodId = MethodId(0);

/// On whose behalf a method runs: of it and its callers, the innermost of certain owners. [`NONE`] if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Callers {
    /// The innermost that is not the JDK's.
    pub outside: MethodId,
    /// The innermost that is the program's.
    pub program: MethodId,
}

impl Default for Callers {
    fn default() -> Self {
        Self { outside: NONE, program: NONE }
    }
}

impl Callers {
    /// Those of a method that is called by one with these.
    #[inline]
    #[must_use]
    pub fn of_callee(self, method: MethodId, origin: Origin) -> Self {
        Self {
            outside: if origin == Origin::Jdk { self.outside } else { method },
            program: if origin == Origin::Program { method } else { self.program },
        }
    }

    /// Those of each context, by its number.
    pub fn of_contexts(contexts: &Contexts, owners: &mut Owners<'_>) -> Vec<Self> {
        let mut all = vec![Self::default()];
        all.reserve(contexts.len());
        for (_, context) in contexts.iter().skip(1) {
            // Callers precede callees.
            let caller = all.get(context.caller.0 as usize).copied().unwrap_or_default();
            all.push(caller.of_callee(context.method, owners.origin(context.method)));
        }
        all
    }

    /// The innermost method outside the JDK, or `top`, the innermost of all.
    #[inline]
    pub fn nearest(self, top: MethodId) -> MethodId {
        if self.outside == NONE { top } else { self.outside }
    }
}

/// What objects have in common that are counted together: place, type and caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origins {
    pub made_in: MadeIn,
    /// For code of the JDK's the innermost method outside it, for a library's the innermost of the program's.
    /// [`NONE`] if there is none.
    pub caller: MethodId,
    pub ty: TypeId,
}

/// Determines who asked for objects. Caches its answers.
#[derive(Debug)]
pub struct Attribution<'a> {
    pub owners: Owners<'a>,
    naming: Naming<'a>,
    /// The methods of places.
    methods: FxHashMap<MadeIn, MethodId>,
}

impl<'a> Attribution<'a> {
    pub fn of(source: &'a Source) -> Self {
        Self { owners: Owners::of(source), naming: source.naming(), methods: FxHashMap::default() }
    }

    fn method_of(&mut self, place: MadeIn) -> MethodId {
        let naming = self.naming;
        *self.methods.entry(place).or_insert_with(|| place.method(naming).unwrap_or(NONE))
    }

    /// The origins of an object that was allocated while `top` was the innermost method and had these callers.
    pub fn origins(&mut self, made_in: MadeIn, ty: TypeId, callers: Callers, top: MethodId) -> Origins {
        let caller = match self.method_of(made_in) {
            NONE => callers.nearest(top),
            method => match self.owners.origin(method) {
                Origin::Program => NONE,
                Origin::Library => callers.program,
                Origin::Jdk => callers.outside,
            },
        };
        Origins { made_in, caller, ty }
    }

    /// Whose code a place is in.
    pub fn owner_of(&mut self, place: MadeIn) -> Origin {
        match self.method_of(place) {
            NONE => Origin::Jdk,
            method => self.owners.origin(method),
        }
    }

    /// The package on whose behalf objects of these origins were allocated.
    pub fn package_of(&mut self, origins: Origins) -> PackageId {
        let method = match self.method_of(origins.made_in) {
            NONE => origins.caller,
            method if self.owners.origin(method) == Origin::Jdk && origins.caller != NONE => origins.caller,
            method => method,
        };
        if method == NONE { PackageId::JVM } else { self.owners.package_of(method) }
    }
}

#[cfg(test)]
mod tests {
    use et_names::SiteId;

    use super::*;
    use crate::made_in::Means;
    use crate::model::ContextId;
    use crate::testing::{ClassNamesExt, TraceBuilder, class, table};
    use crate::{Trace, TraceFile};

    /// A method of the program's, one of a library's, and one of the JDK's.
    const MAIN: MethodId = MethodId(5_000_000);
    const POOL: MethodId = MethodId(6_000_000);
    const LIST: MethodId = MethodId(1);

    fn source() -> Source {
        let mut builder = TraceBuilder::new();
        builder.names(&table("jdk", LIST.0, &[class("java/util/List", "", &["add ()V"]).with_sites(&[(0, "[I", 5)])]));
        builder.names(&table("shop.jar", MAIN.0, &[class("shop/Main", "", &["main ()V"]).with_sites(&[(0, "[I", 6)])]));
        builder.names(&table("pool.jar", POOL.0, &[class("pool/Pool", "", &["take ()V"]).with_sites(&[(0, "[I", 7)])]));
        builder.loaded_classes(&[(0x12, 16, "Lshop/Main;")]);
        Trace::from_file(TraceFile::from_bytes(builder.finish(), None).unwrap()).unwrap().into()
    }

    #[test]
    fn contexts_have_the_callers_of_their_stacks() {
        let source = source();
        let mut owners = Owners::of(&source);
        let mut contexts = Contexts::default();
        let main = contexts.call(ContextId::EMPTY, MAIN);
        let in_main = contexts.call(main, LIST);
        let pool = contexts.call(main, POOL);
        let in_pool = contexts.call(pool, LIST);
        let alone = contexts.call(ContextId::EMPTY, LIST);
        let all = Callers::of_contexts(&contexts, &mut owners);
        assert_eq!(all.len(), contexts.len());
        let of = |context: ContextId| (all[context.0 as usize].outside, all[context.0 as usize].program);
        assert_eq!(of(ContextId::EMPTY), (NONE, NONE));
        assert_eq!((of(main), of(in_main)), ((MAIN, MAIN), (MAIN, MAIN)));
        assert_eq!((of(pool), of(in_pool)), ((POOL, MAIN), (POOL, MAIN)));
        assert_eq!(of(alone), (NONE, NONE));
        assert_eq!(all[alone.0 as usize].nearest(LIST), LIST);
        assert_eq!(all[in_pool.0 as usize].nearest(LIST), POOL);
    }

    #[test]
    fn who_asked_depends_on_whose_code_allocates() {
        let source = source();
        let mut attribution = Attribution::of(&source);
        let callers = Callers { outside: POOL, program: MAIN };
        let mut caller = |place| attribution.origins(place, TypeId::UNKNOWN, callers, LIST).caller;
        let site = |method: MethodId| MadeIn::Site(SiteId(method.0));
        assert_eq!(caller(site(LIST)), POOL, "of the JDK's code the innermost outside it");
        assert_eq!(caller(site(POOL)), MAIN, "of a library's the program's");
        assert_eq!(caller(site(MAIN)), NONE, "the program asks for itself");
        assert_eq!(caller(MadeIn::Nowhere(Means::Native)), POOL);
        let alone = attribution.origins(MadeIn::Nowhere(Means::Native), TypeId::UNKNOWN, Callers::default(), LIST);
        assert_eq!(alone.caller, LIST);
        assert_eq!(attribution.owner_of(site(LIST)), Origin::Jdk);
        assert_eq!(attribution.owner_of(MadeIn::Nowhere(Means::Native)), Origin::Jdk);
        let mut package = |made_in, caller| {
            let id = attribution.package_of(Origins { made_in, caller, ty: TypeId::UNKNOWN });
            attribution.owners.package(id).name.clone()
        };
        assert_eq!(package(site(LIST), MAIN), "shop");
        assert_eq!(package(site(LIST), NONE), "java.util");
        assert_eq!(package(site(POOL), MAIN), "pool");
        assert_eq!(package(MadeIn::Nowhere(Means::Native), NONE), "the JVM itself");
    }
}
