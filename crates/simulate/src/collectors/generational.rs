//! Two generations: "an heap arena for each generation"; new_object in the youngest, move_object "as live objects are
//! scavenged from a younger generation to an older generation", delete_arena of the youngest, which frees its garbage,
//! and a new_arena under the same id.
//!
//! The text does not say how the oldest generation is collected. Here it is compacted, with the events of
//! mark-compact. An object larger than the nursery is allocated in the old generation.

use super::mark_compact::compact;
use super::report::CollectionKind;
use super::space::Space;
use super::world::{BASE, World};
use super::{Config, Observer, Scheme, Stop};
use crate::events::{ArenaId, Event};

const YOUNG: ArenaId = ArenaId(1);
const OLD: ArenaId = ArenaId(2);
const YOUNG_NAME: &str = "young generation";

pub struct Generational {
    nursery: Space,
    old: Space,
    /// Objects in the nursery, in birth order.
    young: Vec<u32>,
    /// Objects in the old generation, in address order.
    olds: Vec<u32>,
    /// Old objects that may refer to young ones, including dead ones until they are collected.
    remembered: Vec<u32>,
}

impl Generational {
    pub fn new(config: &Config) -> Self {
        let nursery = config.nursery.unwrap_or(config.heap / 4).min(config.heap) / 8 * 8;
        Self {
            nursery: Space::new(BASE, nursery),
            old: Space::new(BASE + nursery, config.heap - nursery),
            young: Vec::new(),
            olds: Vec::new(),
            remembered: Vec::new(),
        }
    }

    /// A minor collection needs enough free old space for the whole nursery.
    fn collect<O: Observer>(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        if self.old.free() >= self.nursery.used() { self.minor(world) } else { self.full(world) }
    }

    fn minor<O: Observer>(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        let before = world.used;
        let traced = world.trace_young(&self.young, &self.remembered);
        for &place in &traced.order {
            self.promote(world, place)?;
        }
        self.empty_nursery(world);
        let free = self.old.free();
        world.collected(CollectionKind::Minor, before, &traced, traced.reached, [free, free]);
        Ok(())
    }

    fn full<O: Observer>(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        let before = world.used;
        let traced = world.trace_all()?;
        let mut moved = compact(world, &mut self.olds, &mut self.old, OLD)?;
        for &place in &traced.order {
            let object = world.objects[place as usize];
            if !object.is_old {
                self.promote(world, place)?;
                moved.add(object.size);
            }
        }
        self.empty_nursery(world);
        let free = self.old.free();
        world.collected(CollectionKind::Full, before, &traced, moved, [free, free]);
        Ok(())
    }

    fn promote<O: Observer>(&mut self, world: &mut World<'_, O>, place: u32) -> Result<(), Stop> {
        let object = &mut world.objects[place as usize];
        object.is_old = true;
        let address = self.old.take(object.size)?;
        world.move_to(place, YOUNG, OLD, address);
        self.olds.push(place);
        Ok(())
    }

    fn empty_nursery<O: Observer>(&mut self, world: &mut World<'_, O>) {
        for place in self.young.drain(..) {
            if !world.is_marked(place) {
                world.gone(place);
            }
        }
        for place in self.remembered.drain(..) {
            world.objects[place as usize].is_remembered = false;
        }
        world.tell(Event::DeleteArena { arena: YOUNG });
        world.tell(Event::NewArena { arena: YOUNG, name: YOUNG_NAME });
        self.nursery.clear();
    }
}

impl<O: Observer> Scheme<O> for Generational {
    fn begin(&mut self, world: &mut World<'_, O>) {
        world.report.nursery = Some(self.nursery.size());
        world.tell(Event::NewArena { arena: YOUNG, name: YOUNG_NAME });
        world.tell(Event::NewArena { arena: OLD, name: "old generation" });
    }

    fn allocate(&mut self, world: &mut World<'_, O>, place: u32) -> Result<(), Stop> {
        let size = world.objects[place as usize].size;
        if size > self.nursery.size() {
            let address = match self.old.take(size) {
                Ok(address) => address,
                Err(_) => {
                    self.full(world)?;
                    self.old.take(size)?
                }
            };
            world.objects[place as usize].is_old = true;
            self.olds.push(place);
            world.place(place, OLD, address);
            return Ok(());
        }
        let address = match self.nursery.take(size) {
            Ok(address) => address,
            Err(_) => {
                self.collect(world)?;
                self.nursery.take(size)?
            }
        };
        self.young.push(place);
        world.place(place, YOUNG, address);
        Ok(())
    }

    fn stored(&mut self, world: &mut World<'_, O>, origin: u32, target: u32) {
        let is_young = !world.objects[target as usize].is_old;
        let origin_object = &mut world.objects[origin as usize];
        if origin_object.is_old && is_young && !origin_object.is_remembered {
            origin_object.is_remembered = true;
            self.remembered.push(origin);
        }
    }

    fn died(&mut self, _world: &mut World<'_, O>, _place: u32) {}

    fn finish(&mut self, world: &mut World<'_, O>) -> Result<(), Stop> {
        self.full(world)
    }
}
