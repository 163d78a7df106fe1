//! Mark and compact, sliding: delete_object for dead objects, then move_object "in order to perform compaction of the heap. Only one
//! heap arena is used: the old and new heap arena ids are the same."

use super::report::CollectionKind;
use super::space::Space;
use super::world::{BASE, World};
use super::{Config, Observer, Scheme, Stop};
use crate::events::{ArenaId, Event};
use crate::ops::Amount;

const HEAP: ArenaId = ArenaId(1);

pub struct MarkCompact {
    space: Space,
    /// Objects in the heap, in address order.
    objects: Vec<u32>,
}

impl MarkCompact {
    pub fn new(config: &Config) -> Self {
        Self { space: Space::new(BASE, config.heap), objects: Vec::new() }
    }

    fn collect<O: Observer>(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        let before = world.used;
        let traced = world.trace_all()?;
        let moved = compact(world, &mut self.objects, &mut self.space, HEAP)?;
        let free = self.space.free();
        world.collected(CollectionKind::Full, before, &traced, moved, [free, free]);
        Ok(())
    }
}

/// Deletes the unmarked objects of a space and slides the others to its beginning. Returns what was moved.
pub fn compact<O: Observer>(
    world: &mut World<'_, O>,
    objects: &mut Vec<u32>,
    space: &mut Space,
    arena: ArenaId,
) -> Result<Amount, Stop> {
    objects.retain(|&place| {
        let is_marked = world.is_marked(place);
        if !is_marked {
            world.delete(place, arena);
        }
        is_marked
    });
    space.clear();
    let mut moved = Amount::default();
    for &place in &*objects {
        let object = world.objects[place as usize];
        let address = space.take(object.size)?;
        if address != object.address {
            world.move_to(place, arena, arena, address);
            moved.add(object.size);
        }
    }
    Ok(moved)
}

impl<O: Observer> Scheme<O> for MarkCompact {
    fn begin(&mut self, world: &mut World<'_, O>) {
        world.tell(Event::NewArena { arena: HEAP, name: "heap" });
    }

    fn allocate(&mut self, world: &mut World<'_, O>, place: u32) -> Result<(), Stop> {
        let size = world.objects[place as usize].size;
        let address = match self.space.take(size) {
            Ok(address) => address,
            Err(_) => {
                self.collect(world)?;
                self.space.take(size)?
            }
        };
        self.objects.push(place);
        world.place(place, HEAP, address);
        Ok(())
    }

    fn died(&mut self, _world: &mut World<'_, O>, _place: u32) {}

    fn finish(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        self.collect(world)
    }
}
