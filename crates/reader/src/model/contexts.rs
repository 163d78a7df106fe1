//! Calling contexts: a tree with a node for each chain of callers that occurred.

use et_names::{MethodId, SiteId};
use rustc_hash::FxHashMap;

/// A chain of callers, given by its node in the tree of [`Contexts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);

impl ContextId {
    /// The empty stack.
    pub const EMPTY: ContextId = ContextId(0);
}

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Context of the caller; for the empty context, itself.
    pub caller: ContextId,
    /// The innermost method; 0 for the empty context.
    pub method: MethodId,
    /// The call at which it is, one of those on the line; 0 if the trace does not tell, or if it calls nothing.
    pub at: SiteId,
    /// Number of frames, including the innermost.
    pub depth: u32,
}

/// Maximum number of contexts. Deep and wide recursion creates more than is useful; 16 million take 600 MB.
const MOST: usize = 1 << 24;

/// An entry of [`Contexts::near`].
#[derive(Clone, Copy, Debug)]
struct Near {
    caller: ContextId,
    method: MethodId,
    at: SiteId,
    id: ContextId,
}

impl Near {
    const NONE: Self = Self { caller: ContextId::EMPTY, method: MethodId(0), at: SiteId(0), id: ContextId::EMPTY };
}

/// Size of the cache of children: 192 KB, which fits in a core's L2 cache.
const NEAR_BITS: u32 = 14;

fn place(caller: ContextId, at: SiteId, method: MethodId) -> usize {
    let mixed =
        (u64::from(caller.0) << 32 | u64::from(method.0 ^ at.0.rotate_left(16))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - NEAR_BITS)) as usize
}

/// The tree. Nodes are numbered in order of creation, so callers come before their callees; 0 is the empty stack.
#[derive(Clone, Debug)]
pub struct Contexts {
    all: Vec<Context>,
    /// The child that was last looked up in each node, usually the next one to be looked up. Empty, like `children`, in
    /// a tree that was loaded until [`call`](Self::call) is used: mere reading should not pay for indexes.
    recent: Vec<ContextId>,
    children: FxHashMap<(ContextId, SiteId, MethodId), ContextId>,
    /// A cache of children, indexed by [`place`]; entries replace each other.
    near: Vec<Near>,
    most: usize,
    cut: u64,
}

impl Default for Contexts {
    fn default() -> Self {
        Self::with_limit(MOST)
    }
}

impl Contexts {
    /// Creates a tree with at most this number of nodes. Further calls are attributed to their caller's context.
    pub fn with_limit(most: usize) -> Self {
        let empty = Context { caller: ContextId::EMPTY, method: MethodId(0), at: SiteId(0), depth: 0 };
        Self {
            all: vec![empty],
            recent: vec![ContextId::EMPTY],
            children: FxHashMap::default(),
            near: Vec::new(),
            most: most.clamp(1, u32::MAX as usize),
            cut: 0,
        }
    }

    /// The context in which `caller` has called `method`.
    #[inline]
    pub fn call(&mut self, caller: ContextId, method: MethodId) -> ContextId {
        self.call_at(caller, SiteId(0), method)
    }

    /// The same of a method that is at this call.
    #[inline]
    pub fn call_at(&mut self, caller: ContextId, at: SiteId, method: MethodId) -> ContextId {
        if let Some(&recent) = self.recent.get(caller.0 as usize).filter(|recent| **recent != ContextId::EMPTY) {
            let there = self.all[recent.0 as usize];
            if there.method == method && there.at == at {
                return recent;
            }
        }
        self.look_up(caller, at, method)
    }

    /// Appends a node when a stored tree is loaded: nodes come in order of their numbers, callers before callees,
    /// without duplicates. `None` if the caller does not exist.
    pub fn append(&mut self, caller: ContextId, at: SiteId, method: MethodId) -> Option<ContextId> {
        let depth = self.all.get(caller.0 as usize)?.depth + 1;
        self.all.push(Context { caller, method, at, depth });
        Some(ContextId(self.all.len() as u32 - 1))
    }

    /// A copy without indexes, as of a tree that was loaded.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self { all: self.all.clone(), cut: self.cut, ..Self::with_limit(self.most) }
    }

    /// Indexes the nodes that were appended.
    fn index(&mut self) {
        let known = self.recent.len();
        let appended = self.all.iter().enumerate().skip(known);
        self.children.extend(appended.map(|(id, node)| ((node.caller, node.at, node.method), ContextId(id as u32))));
        self.recent.resize(self.all.len(), ContextId::EMPTY);
    }

    fn look_up(&mut self, caller: ContextId, at: SiteId, method: MethodId) -> ContextId {
        if self.near.is_empty() {
            self.near.resize(1 << NEAR_BITS, Near::NONE);
        }
        let place = place(caller, at, method);
        let near = self.near[place];
        if (near.caller, near.at, near.method) == (caller, at, method) && near.id != ContextId::EMPTY {
            self.recent[caller.0 as usize] = near.id;
            return near.id;
        }
        let id = self.find(caller, at, method);
        // Not for calls attributed to their caller's context because of the limit: these are counted.
        let found = self.all[id.0 as usize];
        if (found.caller, found.at, found.method) == (caller, at, method) {
            self.near[place] = Near { caller, method, at, id };
        }
        id
    }

    fn find(&mut self, caller: ContextId, at: SiteId, method: MethodId) -> ContextId {
        if self.recent.len() < self.all.len() {
            self.index();
        }
        let all = &mut self.all;
        let recent = &mut self.recent;
        if all.len() >= self.most {
            return self.children.get(&(caller, at, method)).copied().unwrap_or_else(|| {
                self.cut += 1;
                caller
            });
        }
        let id = *self.children.entry((caller, at, method)).or_insert_with(|| {
            let depth = all[caller.0 as usize].depth + 1;
            all.push(Context { caller, method, at, depth });
            recent.push(ContextId::EMPTY);
            ContextId(all.len() as u32 - 1)
        });
        self.recent[caller.0 as usize] = id;
        id
    }

    pub fn get(&self, id: ContextId) -> Context {
        self.all[id.0 as usize]
    }

    /// All contexts, in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ContextId, &Context)> {
        (0..).map(ContextId).zip(&self.all)
    }

    /// Number of contexts, including the empty one.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Always false: there is always the empty context.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Number of calls attributed to their caller's context because the tree had reached its limit.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Methods of a context, innermost first.
    pub fn methods(&self, id: ContextId) -> impl Iterator<Item = MethodId> + '_ {
        self.frames(id).map(|frame| frame.method)
    }

    /// A context and its callers, innermost first, without the empty one.
    pub fn frames(&self, id: ContextId) -> impl Iterator<Item = Context> + '_ {
        let mut at = id;
        std::iter::from_fn(move || {
            if at == ContextId::EMPTY {
                return None;
            }
            let context = self.get(at);
            at = context.caller;
            Some(context)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call_all(contexts: &mut Contexts, chain: &[u32]) -> ContextId {
        chain.iter().fold(ContextId::EMPTY, |caller, &method| contexts.call(caller, MethodId(method)))
    }

    proptest! {
        /// Two chains have the same context if and only if they are equal, and a context leads back to its chain.
        #[test]
        fn contexts_are_chains(chains in prop::collection::vec(prop::collection::vec(1..4u32, 0..6), 1..40)) {
            let mut contexts = Contexts::default();
            let ids: Vec<ContextId> = chains.iter().map(|chain| call_all(&mut contexts, chain)).collect();
            for (chain, &id) in chains.iter().zip(&ids) {
                let mut methods: Vec<u32> = contexts.methods(id).map(|method| method.0).collect();
                methods.reverse();
                prop_assert_eq!(&methods, chain);
                prop_assert_eq!(contexts.get(id).depth as usize, chain.len());
            }
            for (a, b) in chains.iter().zip(&ids).flat_map(|one| chains.iter().zip(&ids).map(move |two| (one, two))) {
                prop_assert_eq!(a.0 == b.0, a.1 == b.1);
            }
        }
    }

    #[test]
    fn a_tree_that_was_kept_goes_on() {
        let mut kept = Contexts::default();
        let two = call_all(&mut kept, &[1, 2]);
        let mut read = Contexts::default();
        for (_, node) in kept.iter().skip(1) {
            read.append(node.caller, node.at, node.method).unwrap();
        }
        assert_eq!(read.append(ContextId(9), SiteId(0), MethodId(1)), None);
        assert_eq!(call_all(&mut read, &[1, 2]), two, "what is there is found");
        assert_eq!(call_all(&mut read, &[1, 3]), ContextId(3), "what is new comes after it");
        assert_eq!(read.get(two), kept.get(two));
    }

    #[test]
    fn a_tree_that_is_full_says_so() {
        let mut contexts = Contexts::with_limit(3);
        let two = call_all(&mut contexts, &[1, 2]);
        assert_eq!(call_all(&mut contexts, &[1, 2, 3]), two);
        assert_eq!(call_all(&mut contexts, &[1, 2]), two, "what is there is found");
        assert_eq!((contexts.len(), contexts.cut()), (3, 1));
    }
}
