//! Two-space copying: two new_arena events, move_object for what is alive, delete_arena of the old space, "thereby freeing all the
//! objects in the old heap arena", and a new_arena "using the same arena id as the old heap arena that was deleted."

use super::report::CollectionKind;
use super::space::Space;
use super::world::{BASE, World};
use super::{Config, Observer, Scheme, Stop};
use crate::events::{ArenaId, Event};

const ARENAS: [ArenaId; 2] = [ArenaId(1), ArenaId(2)];
const NAMES: [&str; 2] = ["semispace 1", "semispace 2"];

pub struct Copying {
    spaces: [Space; 2],
    /// Index of the space in which objects are allocated.
    from: usize,
    dead: Vec<u32>,
}

impl Copying {
    pub fn new(config: &Config) -> Self {
        let half = config.heap / 16 * 8;
        Self { spaces: [0, 1].map(|space| Space::new(BASE + space * half, half)), from: 0, dead: Vec::new() }
    }

    fn collect<O: Observer>(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        let before = world.used;
        let traced = world.trace_all()?;
        let (from, to) = (self.from, 1 - self.from);
        // In the order of Cheney's scan.
        for &place in &traced.order {
            let address = self.spaces[to].take(world.objects[place as usize].size)?;
            world.move_to(place, ARENAS[from], ARENAS[to], address);
        }
        self.dead.drain(..).for_each(|place| world.gone(place));
        world.tell(Event::DeleteArena { arena: ARENAS[from] });
        world.tell(Event::NewArena { arena: ARENAS[from], name: NAMES[from] });
        self.spaces[from].clear();
        self.from = to;
        let free = self.spaces[to].free();
        world.collected(CollectionKind::Full, before, &traced, traced.reached, [free, free]);
        Ok(())
    }
}

impl<O: Observer> Scheme<O> for Copying {
    fn begin(&mut self, world: &mut World<'_, O>) {
        for (arena, name) in ARENAS.into_iter().zip(NAMES) {
            world.tell(Event::NewArena { arena, name });
        }
    }

    fn allocate(&mut self, world: &mut World<'_, O>, place: u32) -> Result<(), Stop> {
        let size = world.objects[place as usize].size;
        let address = match self.spaces[self.from].take(size) {
            Ok(address) => address,
            Err(_) => {
                self.collect(world)?;
                self.spaces[self.from].take(size)?
            }
        };
        world.place(place, ARENAS[self.from], address);
        Ok(())
    }

    fn died(&mut self, _world: &mut World<'_, O>, place: u32) {
        self.dead.push(place);
    }

    fn finish(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        self.collect(world)
    }
}
