//! Mark and sweep: "only one heap arena is needed. The collector sends a delete_object event when returning dead objects to the
//! free-pool."

use super::free_list::FreeList;
use super::report::CollectionKind;
use super::world::{BASE, World};
use super::{Config, Observer, Scheme, Stop};
use crate::events::{ArenaId, Event};
use crate::ops::Amount;

const HEAP: ArenaId = ArenaId(1);

pub struct MarkSweep {
    free: FreeList,
    /// Dead objects that are not swept yet.
    dead: Vec<u32>,
}

impl MarkSweep {
    pub fn new(config: &Config) -> Self {
        Self { free: FreeList::new(BASE, config.heap), dead: Vec::new() }
    }

    fn collect<O: Observer>(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        let before = world.used;
        let traced = world.trace_all()?;
        // The sweep visits the heap in address order.
        self.dead.sort_unstable_by_key(|&place| world.objects[place as usize].address);
        for place in self.dead.drain(..) {
            let (address, size) = world.delete(place, HEAP);
            self.free.give(address, size);
        }
        let free = [self.free.free(), self.free.largest()];
        world.collected(CollectionKind::Full, before, &traced, Amount::default(), free);
        Ok(())
    }
}

impl<O: Observer> Scheme<O> for MarkSweep {
    fn begin(&mut self, world: &mut World<'_, O>) {
        world.tell(Event::NewArena { arena: HEAP, name: "heap" });
    }

    fn allocate(&mut self, world: &mut World<'_, O>, place: u32) -> Result<(), Stop> {
        let size = world.objects[place as usize].size;
        let address = match self.free.take(size) {
            Ok(address) => address,
            Err(_) => {
                self.collect(world)?;
                self.free.take(size)?
            }
        };
        world.place(place, HEAP, address);
        Ok(())
    }

    fn died(&mut self, _world: &mut World<'_, O>, place: u32) {
        self.dead.push(place);
    }

    fn finish(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        self.collect(world)
    }
}
