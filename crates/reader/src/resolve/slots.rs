//! The targets of reference slots, for tens of millions of slots.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::record::{ObjectId, Slot};

const SHARD_BITS: u32 = 6;
/// Exclusive upper limit for ids in the compact tables.
const NARROW: u64 = 1 << 31;
/// Value in the compact tables: the target is in the map of wide ids.
const WIDE: u32 = u32::MAX;
/// Minimum number of released objects for which it is worth going through all slots.
const MANY: usize = if cfg!(test) { 1 } else { 1 << 16 };

/// Slots that are not null. Small ids (nearly all) take 12 bytes in open-addressing tables that grow by one 64th at a
/// time, the others are in an ordinary map.
#[derive(Debug)]
pub struct Slots {
    shards: Vec<Shard>,
    wide_targets: FxHashMap<u64, ObjectId>,
    wide_origins: FxHashMap<(ObjectId, u32), ObjectId>,
    statics: FxHashMap<u32, ObjectId>,
    /// Objects whose slots can be dropped.
    released: FxHashSet<ObjectId>,
    /// Number of slots after slots were last dropped.
    kept: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            shards: (0..1 << SHARD_BITS).map(|_| Shard::default()).collect(),
            wide_targets: FxHashMap::default(),
            wide_origins: FxHashMap::default(),
            statics: FxHashMap::default(),
            released: FxHashSet::default(),
            kept: 0,
        }
    }
}

impl Slots {
    /// Stores `target` and returns the old target of the slot.
    #[inline]
    pub fn put(&mut self, origin: ObjectId, slot: Slot, target: ObjectId) -> ObjectId {
        let number = slot.number();
        if origin.is_null() {
            return put_in_map(&mut self.statics, number, target);
        }
        if origin.0 >= NARROW || number >= 1 << 31 {
            return put_in_map(&mut self.wide_origins, (origin, number), target);
        }
        // An object either is an array or has fields, so an index and a field id cannot collide.
        let key = origin.0 << 32 | u64::from(number);
        let hash = mix(key);
        let shard = &mut self.shards[(hash >> (64 - SHARD_BITS)) as usize];
        let value = if target.0 < NARROW { target.0 as u32 } else { WIDE };
        let old = shard.put(key, hash, value);
        let old = if old == WIDE { self.wide_targets.remove(&key).unwrap_or_default() } else { ObjectId(old.into()) };
        if value == WIDE {
            self.wide_targets.insert(key, target);
        }
        old
    }

    /// The slots of this object will not be asked for again and may be dropped.
    pub fn release(&mut self, origin: ObjectId) {
        self.released.insert(origin);
    }

    /// Drops the slots of released objects if it is worth the time: if there are many such objects, or the number of
    /// slots has doubled.
    pub fn tidy(&mut self) {
        let slots = self.len();
        let enough = self.released.len() >= MANY.max(slots / 4);
        if enough || (!self.released.is_empty() && slots > 2 * self.kept + MANY) {
            self.forget_released();
        }
    }

    fn len(&self) -> usize {
        self.wide_origins.len() + self.shards.iter().map(|shard| shard.used).sum::<usize>()
    }

    fn forget_released(&mut self) {
        let released = std::mem::take(&mut self.released);
        let wide_targets = &mut self.wide_targets;
        for shard in &mut self.shards {
            shard.retain(|key, value| {
                let keep = !released.contains(&ObjectId(key >> 32));
                if !keep && value == WIDE {
                    wide_targets.remove(&key);
                }
                keep
            });
        }
        self.wide_origins.retain(|(origin, _), _| !released.contains(origin));
        self.wide_origins.shrink_to_fit();
        self.wide_targets.shrink_to_fit();
        self.kept = self.len();
    }
}

fn put_in_map<K: std::hash::Hash + Eq>(map: &mut FxHashMap<K, ObjectId>, key: K, target: ObjectId) -> ObjectId {
    if target.is_null() { map.remove(&key) } else { map.insert(key, target) }.unwrap_or_default()
}

#[inline]
fn mix(key: u64) -> u64 {
    let folded = (key ^ (key >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (folded ^ (folded >> 32)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

/// Linear probing with backward-shift deletion. Key 0 marks an empty entry (no origin is 0).
#[derive(Debug, Default)]
struct Shard {
    keys: Vec<u64>,
    values: Vec<u32>,
    used: usize,
}

impl Shard {
    #[inline]
    fn put(&mut self, key: u64, hash: u64, value: u32) -> u32 {
        if self.keys.is_empty() {
            if value == 0 {
                return 0;
            }
            self.grow();
        }
        let mask = self.keys.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            if self.keys[at] == key {
                let old = self.values[at];
                if value == 0 {
                    self.remove(at);
                } else {
                    self.values[at] = value;
                }
                return old;
            }
            if self.keys[at] == 0 {
                break;
            }
            at = (at + 1) & mask;
        }
        if value == 0 {
            return 0;
        }
        if (self.used + 1) * 5 > self.keys.len() * 4 {
            self.grow();
            self.insert_new(key, value);
        } else {
            self.keys[at] = key;
            self.values[at] = value;
        }
        self.used += 1;
        0
    }

    fn insert_new(&mut self, key: u64, value: u32) {
        let mask = self.keys.len() - 1;
        let mut at = mix(key) as usize & mask;
        while self.keys[at] != 0 {
            at = (at + 1) & mask;
        }
        self.keys[at] = key;
        self.values[at] = value;
    }

    fn grow(&mut self) {
        self.resize((self.keys.len() * 2).max(16));
    }

    fn resize(&mut self, size: usize) {
        let keys = std::mem::replace(&mut self.keys, vec![0; size]);
        let values = std::mem::replace(&mut self.values, vec![0; size]);
        for (key, value) in keys.into_iter().zip(values) {
            if key != 0 {
                self.insert_new(key, value);
            }
        }
    }

    /// Keeps the entries for which `keep` returns true, and shrinks the table to what they need.
    fn retain(&mut self, mut keep: impl FnMut(u64, u32) -> bool) {
        for (key, value) in self.keys.iter_mut().zip(&self.values) {
            if *key != 0 && !keep(*key, *value) {
                *key = 0;
                self.used -= 1;
            }
        }
        // The remaining entries have to move in any case, since there are holes.
        match self.used {
            0 => *self = Self::default(),
            used => self.resize((used * 2).next_power_of_two().max(16)),
        }
    }

    fn remove(&mut self, mut hole: usize) {
        let mask = self.keys.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.keys[at] == 0 {
                break;
            }
            let home = mix(self.keys[at]) as usize & mask;
            // Moves an entry back only if it is not already between its home and the hole.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.keys[hole] = self.keys[at];
                self.values[hole] = self.values[at];
                hole = at;
            }
        }
        self.keys[hole] = 0;
        self.values[hole] = 0;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_names::FieldId;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn id() -> impl Strategy<Value = u64> {
        prop_oneof![0..40u64, 0..40u64, Just(0), (1 << 31)..(1 << 31) + 5u64, Just(1 << 62)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_is_a_map(puts in prop::collection::vec((id(), prop_oneof![0..6u32, Just(u32::MAX)], id()), 0..3000)) {
            let mut slots = Slots::default();
            let mut model = HashMap::new();
            for (origin, field, target) in puts {
                let old = slots.put(ObjectId(origin), Slot::Field(FieldId(field)), ObjectId(target));
                let expected = model.insert((origin, field), target).unwrap_or(0);
                prop_assert_eq!(old, ObjectId(expected));
            }
        }

        /// Slots of objects that were not released are unaffected.
        #[test]
        fn only_released_objects_are_forgotten(
            puts in prop::collection::vec((id(), prop_oneof![0..6u32, Just(u32::MAX)], id(), 0..20u8), 0..2000),
        ) {
            let mut slots = Slots::default();
            let mut model = HashMap::new();
            for (origin, field, target, then) in puts {
                let old = slots.put(ObjectId(origin), Slot::Field(FieldId(field)), ObjectId(target));
                let expected = model.insert((origin, field), target).unwrap_or(0);
                prop_assert_eq!(old, ObjectId(expected));
                if then == 0 && origin != 0 {
                    slots.release(ObjectId(origin));
                    slots.forget_released();
                    model.retain(|&(of, _), _| of != origin);
                }
            }
            let held = model.iter().filter(|&(&(origin, _), &target)| origin != 0 && target != 0).count();
            prop_assert_eq!(slots.len(), held);
            let wide = |(origin, field): (u64, u32)| origin >= NARROW || field >= 1 << 31;
            let wide_targets = model.iter().filter(|&(&key, &target)| key.0 != 0 && target >= NARROW && !wide(key)).count();
            prop_assert_eq!(slots.wide_targets.len(), wide_targets);
        }

        #[test]
        fn deletions_keep_what_was_pushed_along(keys in prop::collection::vec((1..2000u64, any::<bool>()), 0..3000)) {
            let mut slots = Slots::default();
            let mut model = HashMap::new();
            for (origin, clear) in keys {
                let target = if clear { 0 } else { origin + 1 };
                let old = slots.put(ObjectId(origin), Slot::Element(0), ObjectId(target));
                prop_assert_eq!(old.0, model.insert(origin, target).unwrap_or(0));
            }
        }
    }
}
