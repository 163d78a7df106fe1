//! Ids as JVMTI tags, for VMs whose identity hashes repeat.
//!
//! All objects are tagged, not only those that share a hash: an object that is locked when first seen does not reveal
//! its hash. Slow (a native call for every id), but exact.

use std::sync::Mutex;

use rustc_hash::FxHashSet;

use super::claims::{Claims, Subject};
use super::space::{Block, Holder, IdSpace};
use et_jvm::env::{Env, Global, Object, Vm};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};
use et_jvm::sync::lock;

/// The tags, in a JVMTI environment of their own.
#[derive(Debug)]
pub struct Tags {
    jvmti: Jvmti,
    ready: Mutex<Ready>,
    claims: Claims<Global>,
}

/// Ids that are ready for use.
#[derive(Debug, Default)]
struct Ready {
    blocks: Vec<(Holder, Block)>,
    /// Number of blocks taken so far.
    count: u64,
}

/// An object to be tagged.
struct Tagged<'a> {
    jvmti: Jvmti,
    env: Env<'a>,
    object: Object<'a>,
}

impl Subject for Tagged<'_> {
    type Held = Global;

    fn tag(&self) -> u32 {
        self.jvmti.tag(self.object).unwrap_or(0) as u32
    }

    fn set_tag(&self, tag: u32) {
        let _ = self.jvmti.set_tag(self.object, tag.into());
    }

    fn hold(&self) -> Option<Global> {
        self.env.global(self.object)
    }

    fn is(&self, held: &Global) -> bool {
        self.env.is_same(self.object, held.get())
    }

    fn release(&self, held: Global) {
        self.env.delete_global(held);
    }
}

impl Tags {
    /// Makes a JVMTI environment for the tags.
    pub fn new(vm: Vm) -> Result<Self, JvmtiError> {
        let jvmti = Jvmti::new(vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
        jvmti.add_capabilities(&[Capability::TagObjects])?;
        Ok(Self { jvmti, ready: Mutex::default(), claims: Claims::default() })
    }

    /// The object's id, 0 if it has none.
    pub fn of(&self, object: Object) -> u32 {
        self.jvmti.tag(object).unwrap_or(0) as u32
    }

    /// The object's id; assigns one if it has none. `add_known` adds the ids of classes that the runtime knows.
    pub fn give(&self, space: &IdSpace, env: Env, object: Object, add_known: impl Fn(&mut FxHashSet<u32>)) -> u32 {
        match self.of(object) {
            0 => self.tag(space, &Tagged { jvmti: self.jvmti, env, object }, add_known),
            id => id,
        }
    }

    fn tag(&self, space: &IdSpace, object: &Tagged, add_known: impl Fn(&mut FxHashSet<u32>)) -> u32 {
        loop {
            let mut used_up = None;
            let id = self.claims.settle(object, || {
                let (id, holder) = lock(&self.ready).pop()?;
                used_up = holder;
                Some(id)
            });
            if let Some(holder) = used_up {
                space.give_back(holder, Block::default());
            }
            match id {
                Some(id) => return id,
                None if self.refill(space, &add_known) => {}
                None => return 0,
            }
        }
    }

    /// Takes another block of ids; false if there is none.
    fn refill(&self, space: &IdSpace, add_known: impl Fn(&mut FxHashSet<u32>)) -> bool {
        let holder = {
            let mut ready = lock(&self.ready);
            ready.count += 1;
            Holder::Tags(ready.count)
        };
        let block = space.take(holder, || {
            let mut live = self.live()?;
            add_known(&mut live);
            Some(live)
        });
        if block.count > 0 {
            lock(&self.ready).blocks.push((holder, block));
        }
        block.count > 0
    }

    /// Calls `visit` with the id of each object that has one, reachable or not.
    pub fn list(&self, mut visit: impl FnMut(u32)) -> Result<(), JvmtiError> {
        self.jvmti.tags(|tag| visit(tag as u32))
    }

    /// All ids of objects, including ids being assigned.
    fn live(&self) -> Option<FxHashSet<u32>> {
        // Pending ids first: after the walk they may be tags.
        let mut live: FxHashSet<u32> = self.claims.ids().into_iter().collect();
        self.list(|id| _ = live.insert(id)).ok().map(|()| live)
    }
}

impl Ready {
    /// The next id, and the holder of the block if it was the last of it.
    fn pop(&mut self) -> Option<(u32, Option<Holder>)> {
        let (holder, block) = self.blocks.last_mut()?;
        let (holder, id, left) = (*holder, block.pop()?, block.count);
        if left == 0 {
            self.blocks.pop();
        }
        Some((id, (left == 0).then_some(holder)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_used_up_one_after_the_other() {
        let block = |first| Block { first, count: 2 };
        let mut ready = Ready { blocks: vec![(Holder::Tags(1), block(5)), (Holder::Tags(2), block(7))], count: 2 };
        let given: Vec<_> = std::iter::from_fn(|| ready.pop()).collect();
        assert_eq!(given.iter().map(|(id, _)| *id).collect::<Vec<_>>()[..1], [7]);
        assert_eq!(
            given.iter().map(|(_, holder)| *holder).collect::<Vec<_>>(),
            [None, Some(Holder::Tags(2)), None, Some(Holder::Tags(1))]
        );
    }
}
