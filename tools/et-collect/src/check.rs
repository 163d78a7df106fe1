//! Checks the heap after a collection: each live object is where its handle says, and each of its slots contains the
//! reference that the program stored last.

use std::collections::HashMap;

use crate::object::{CompressedSlot, Object};
use crate::table::Table;

/// Expected contents of the heap, by handle.
#[derive(Debug, Default)]
pub struct Shadow {
    objects: HashMap<u32, Expected>,
    statics: Vec<u32>,
}

#[derive(Debug)]
struct Expected {
    bytes: u64,
    slots: Box<[u32]>,
}

impl Shadow {
    pub fn born(&mut self, handle: u32, bytes: u64, slots: u32) {
        self.objects.insert(handle, Expected { bytes, slots: vec![0; slots as usize].into() });
    }

    pub fn died(&mut self, handle: u32) {
        self.objects.remove(&handle);
    }

    pub fn stored(&mut self, origin: u32, slot: u32, target: u32) {
        if let Some(place) = self.objects.get_mut(&origin).and_then(|known| known.slots.get_mut(slot as usize)) {
            *place = target;
        }
    }

    pub fn stored_static(&mut self, field: u32, target: u32) {
        if self.statics.len() <= field as usize {
            self.statics.resize(field as usize + 1, 0);
        }
        self.statics[field as usize] = target;
    }

    /// Compares the heap with the expected contents. Returns a description of the first difference.
    pub fn check(&self, table: &Table) -> Result<(), String> {
        let mut met = 0;
        for (handle, object) in table.living() {
            met += 1;
            let Some(expected) = self.objects.get(&handle) else {
                return Err(format!("object {handle} is dead, and in the table"));
            };
            if object.handle() != handle || !table.is_known(object) {
                return Err(format!("object {handle} is not where it was left"));
            }
            let shape = object.shape();
            if (shape.bytes, shape.slots as usize) != (expected.bytes, expected.slots.len()) {
                return Err(format!("the size of object {handle} has changed"));
            }
            for (slot, (held, &target)) in object.slots().zip(&expected.slots).enumerate() {
                leads_to(table, held.get(), target).map_err(|what| format!("slot {slot} of object {handle} {what}"))?;
            }
        }
        if met != self.objects.len() {
            return Err(format!("{} objects are alive, and {met} are in the table", self.objects.len()));
        }
        for (field, &target) in self.statics.iter().enumerate() {
            let held = table.statics[field].load(std::sync::atomic::Ordering::Relaxed);
            leads_to(table, held, target).map_err(|what| format!("static field {field} {what}"))?;
        }
        Ok(())
    }
}

fn leads_to(table: &Table, held: u32, target: u32) -> Result<(), String> {
    // Only addresses are compared, since `held` may not point to an object. The target itself is checked at its own
    // handle.
    match (table.address(target), held) {
        _ if target == 0 && held == 0 => Ok(()),
        (address, held) if target != 0 && address == held && held != 0 => Ok(()),
        (_, 0) => Err(format!("holds nothing, not object {target}")),
        (address, held) => Err(format!(
            "leads to {:#x}, and object {target} is at {:#x}",
            u64::from(held) << 3,
            u64::from(address) << 3
        )),
    }
}

/// Number and bytes of the live objects; fails if one is not where its handle says or has a slot that leads elsewhere.
/// Needs no shadow.
pub fn living(table: &Table) -> Result<et_simulate::ops::Amount, String> {
    let mut alive = et_simulate::ops::Amount::default();
    for (handle, object) in table.living() {
        if object.handle() != handle || !table.is_known(object) {
            return Err(format!("object {handle} is not where it was left"));
        }
        let lost = |held: &CompressedSlot| Object::at(held.get()).is_some_and(|held| !table.is_known(held));
        if let Some(slot) = object.slots().position(|slot| lost(&slot)) {
            return Err(format!("slot {slot} of object {handle} leads to nothing that is alive"));
        }
        alive.add(object.shape().bytes);
    }
    Ok(alive)
}
