//! Reference counting: "a new_object event each time an object is allocated, and a delete_object event when the
//! reference count of an object drops to zero."
//!
//! The count of a new object is one, for the reference from the program's stacks. That reference goes at the object's
//! death in the trace, when it becomes unreachable. Cyclic garbage stays; a backup trace finds it when the heap is
//! full.

use super::free_list::FreeList;
use super::report::CollectionKind;
use super::world::{BASE, World};
use super::{Config, Observer, Scheme, Stop};
use crate::events::{ArenaId, Event};
use crate::ops::Amount;

const HEAP: ArenaId = ArenaId(1);

pub struct Counting {
    free: FreeList,
    backup_trace: bool,
    /// Objects whose count is zero, to be freed.
    zero: Vec<u32>,
}

impl Counting {
    pub fn new(config: &Config) -> Self {
        Self { free: FreeList::new(BASE, config.heap), backup_trace: config.backup_trace, zero: Vec::new() }
    }

    /// Frees the objects with a count of zero, and transitively those that only they referred to.
    fn free_all<O: Observer>(&mut self, world: &mut World<'_, O>) {
        let mut held = Vec::new();
        while let Some(place) = self.zero.pop() {
            held.extend(world.held(place).iter().copied().filter(|&held| held != 0));
            let (address, size) = world.delete(place, HEAP);
            self.free.give(address, size);
            for held in held.drain(..) {
                let object = &mut world.objects[held as usize];
                object.incoming -= 1;
                // A live object is held by a stack.
                if object.incoming == 0 && !object.is_alive {
                    self.zero.push(held);
                }
            }
        }
    }

    /// Frees cyclic garbage.
    fn collect<O: Observer>(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        let before = world.used;
        let traced = world.trace_all()?;
        let is_garbage = |place: u32| {
            let object = &world.objects[place as usize];
            object.size > 0 && object.address > 0 && !object.is_alive
        };
        let mut garbage: Vec<u32> = (1..world.objects.len() as u32).filter(|&place| is_garbage(place)).collect();
        garbage.sort_unstable_by_key(|&place| world.objects[place as usize].address);
        for &place in &garbage {
            for slot in 0..world.held(place).len() {
                let held = world.held(place)[slot];
                if held != 0 {
                    world.objects[held as usize].incoming -= 1;
                }
            }
        }
        for place in garbage {
            let (address, size) = world.delete(place, HEAP);
            self.free.give(address, size);
        }
        let free = [self.free.free(), self.free.largest()];
        world.collected(CollectionKind::Full, before, &traced, Amount::default(), free);
        Ok(())
    }
}

impl<O: Observer> Scheme<O> for Counting {
    const COUNTS_THE_DEAD: bool = true;

    fn begin(&mut self, world: &mut World<'_, O>) {
        world.tell(Event::NewArena { arena: HEAP, name: "heap" });
    }

    fn allocate(&mut self, world: &mut World<'_, O>, place: u32) -> Result<(), Stop> {
        let size = world.objects[place as usize].size;
        let address = match self.free.take(size) {
            Err(_) if self.backup_trace => {
                self.collect(world)?;
                self.free.take(size)?
            }
            taken => taken?,
        };
        world.place(place, HEAP, address);
        Ok(())
    }

    fn died(&mut self, world: &mut World<'_, O>, place: u32) {
        if world.objects[place as usize].incoming == 0 {
            self.zero.push(place);
            self.free_all(world);
        }
    }

    fn finish(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        if self.backup_trace { self.collect(world) } else { Ok(()) }
    }
}
