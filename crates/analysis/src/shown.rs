//! Stacks as they are to be shown: with recursion folded, without frames of some methods. All analyses of a population's contexts follow.

use std::io;
use std::ops::RangeInclusive;

use et_names::MethodId;
use et_reader::lifetimes::HeldByStack;
use et_reader::model::{Context, ContextId, Contexts};
use et_reader::population::{Columns, Groups, Joined, Key, Population, Rows};
use rustc_hash::FxHashMap;

use crate::pattern::fits;

/// How stacks are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownStacks {
    /// A method is on a stack once, where it was called first: what calls itself in a circle is one frame for each method of the circle.
    pub fold: bool,
    /// Names of methods that have no frame, `java.util.*`, in which `*` is any text: their callers call what they call.
    pub hide: Vec<String>,
}

impl ShownStacks {
    /// Whether stacks are shown as they are.
    pub fn is_whole(&self) -> bool {
        !self.fold && self.hide.is_empty()
    }

    /// What is done to stacks, for people: `recursion is folded, frames of java.* are hidden`.
    pub fn text(&self) -> String {
        let fold = self.fold.then(|| "recursion is folded".to_owned());
        let hide = (!self.hide.is_empty()).then(|| format!("frames of {} are hidden", self.hide.join(", ")));
        fold.into_iter().chain(hide).collect::<Vec<_>>().join(", ")
    }

    /// The population with such contexts. `name` tells names of methods. Sites stay as they are: the method that allocates is always known.
    pub fn of(&self, population: Population, name: impl Fn(MethodId) -> String) -> Population {
        if self.is_whole() {
            return population;
        }
        let (contexts, shown) = self.contexts(&population.contexts, name);
        let groups = Box::new(ShownGroups { all: population.groups, shown });
        Population { groups, contexts, ..population }
    }

    /// The tree, and for each context of the whole one its place there.
    fn contexts(&self, all: &Contexts, name: impl Fn(MethodId) -> String) -> (Contexts, Vec<ContextId>) {
        let mut hidden: FxHashMap<MethodId, bool> = FxHashMap::default();
        let mut contexts = Contexts::default();
        let mut shown = vec![ContextId::EMPTY; all.len()];
        for (id, &Context { caller, method, at, .. }) in all.iter().filter(|(id, _)| *id != ContextId::EMPTY) {
            let mut caller = shown[caller.0 as usize];
            let is_hidden = || self.hide.iter().any(|pattern| fits(pattern, &name(method)));
            shown[id.0 as usize] = if *hidden.entry(method).or_insert_with(is_hidden) {
                caller
            } else {
                if self.fold
                    && let Some(first) = contexts.frames(caller).find(|frame| frame.method == method)
                {
                    // Beside the first one, since it may be at another line.
                    caller = first.caller;
                }
                contexts.call_at(caller, at, method)
            };
        }
        (contexts, shown)
    }
}

/// Rows with contexts as they are shown.
struct ShownGroups {
    all: Box<dyn Groups>,
    /// By the number of the whole context.
    shown: Vec<ContextId>,
}

impl ShownGroups {
    fn shown(&self, mut rows: Rows) -> Rows {
        let shown = |context: ContextId| self.shown.get(context.0 as usize).copied().unwrap_or(ContextId::EMPTY);
        rows.context.iter_mut().for_each(|context| *context = shown(*context));
        rows.death_context.iter_mut().flatten().for_each(|context| *context = shown(*context));
        rows
    }
}

impl Groups for ShownGroups {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn may_have(&self, group: usize, tick: u64) -> io::Result<bool> {
        self.all.may_have(group, tick)
    }

    fn range(&self, group: usize, key: Key) -> io::Result<RangeInclusive<u64>> {
        self.all.range(group, key)
    }

    fn read(&self, group: usize, columns: Columns) -> io::Result<Rows> {
        Ok(self.shown(self.all.read(group, columns)?))
    }

    fn joined(&self) -> Joined<'_> {
        let joined = self.all.joined();
        Box::new(move |group, columns| Ok(self.shown(joined(group, columns)?)))
    }

    fn held_by_stacks(&self) -> io::Result<Vec<HeldByStack>> {
        self.all.held_by_stacks()
    }
}

#[cfg(test)]
mod tests {
    use et_names::SiteId;
    use et_reader::Trace;
    use et_reader::source::{Reading, Source};
    use proptest::prelude::*;

    use super::*;
    use crate::Labels;
    use crate::profile::profile;

    const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/tests/traces/version-1.trace");

    /// Method and line of each frame, outermost first.
    type Stack = Vec<(u32, u32)>;

    /// Method 0 is hidden; each other one is on the stack once, where it was first, at the line where it was last.
    fn expected(stack: &Stack, fold: bool, hide: bool) -> Stack {
        let mut shown = Stack::new();
        for &(method, line) in stack {
            if hide && method == 0 {
                continue;
            }
            if let Some(first) = shown.iter().position(|frame| fold && frame.0 == method) {
                shown.truncate(first);
            }
            shown.push((method, line));
        }
        shown
    }

    proptest! {
        #[test]
        fn stacks_are_folded_and_frames_hidden(
            stacks in proptest::collection::vec(proptest::collection::vec((0u32..4, 1u32..3), 0..12), 1..20),
            fold: bool,
            hide: bool,
        ) {
            let mut all = Contexts::default();
            let call = |caller, &(method, line): &(u32, u32)| all.call_at(caller, SiteId(line), MethodId(method + 1));
            let mut call = call;
            let ids: Vec<ContextId> =
                stacks.iter().map(|stack| stack.iter().fold(ContextId::EMPTY, &mut call)).collect();
            let hide_patterns = if hide { vec!["a.*".to_owned()] } else { Vec::new() };
            let stacks_shown = ShownStacks { fold, hide: hide_patterns };
            let name = |method: MethodId| if method.0 == 1 { "a.b".to_owned() } else { format!("c.m{}", method.0) };
            let (contexts, shown) = stacks_shown.contexts(&all, name);
            for (stack, id) in stacks.iter().zip(ids) {
                let mut found: Stack =
                    contexts.frames(shown[id.0 as usize]).map(|frame| (frame.method.0 - 1, frame.at.0)).collect();
                found.reverse();
                prop_assert_eq!(found, expected(stack, fold, hide));
            }
        }
    }

    /// Nothing is lost, and no stack has a frame of the JDK.
    #[test]
    fn a_real_profile_keeps_its_bytes() {
        let source = Source::from(Trace::open(REAL.as_ref()).unwrap());
        let open = || et_lives::population(&source, None, Reading::default()).unwrap();
        let bytes = |population: &Population| -> u64 {
            profile(population, source.naming(), 1 << 20).unwrap().total.allocated.bytes
        };
        let whole = open();
        let naming = source.naming();
        let shown = ShownStacks { fold: true, hide: vec!["java.*".to_owned()] };
        assert_eq!(shown.text(), "recursion is folded, frames of java.* are hidden");
        let shown = shown.of(open(), |method| naming.method(method));
        assert_eq!(bytes(&shown), bytes(&whole));
        assert!(shown.contexts.len() < whole.contexts.len());
        let labels = Labels::of(&source, &shown);
        let mut methods = 0;
        for (id, _) in shown.contexts.iter() {
            let names: Vec<String> = shown.contexts.methods(id).map(|method| labels.method(method)).collect();
            assert!(names.iter().all(|name| !name.starts_with("java.")), "{names:?}");
            methods += names.len();
        }
        assert!(methods > 0);
        assert!(ShownStacks::default().is_whole());
    }
}
