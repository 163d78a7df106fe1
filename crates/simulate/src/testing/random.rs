//! Random programs as operations, for tests of collectors.

use std::collections::BTreeSet;

use super::{bytes_of, classes};
use crate::ops::{Layout, Op};

/// The operations file of a random program: threads with local variables, references between objects, cycles included,
/// static fields, weak references that are cleared at the death of their referents, arrays from empty to larger than a
/// page, reused handles. About `births` objects of 60 bytes on average, of which few are alive at a time.
pub fn random_program(seed: u64, births: usize) -> Vec<u8> {
    let mut program = Program { draw: Draw(seed.wrapping_mul(2) | 1), ..Program::default() };
    program.locals = vec![vec![0; 6]; 3];
    program.statics = vec![0; 4];
    program.objects.push(Object::default());
    while program.births < births {
        program.act();
    }
    program.bury();
    bytes_of(&program.ops)
}

/// An object. Slot 0 of class 0 is weak in objects with an odd handle.
#[derive(Clone, Debug, Default)]
struct Object {
    slots: Vec<u32>,
    is_alive: bool,
    is_weak: bool,
}

#[derive(Default)]
struct Program {
    draw: Draw,
    ops: Vec<Op>,
    /// By handle.
    objects: Vec<Object>,
    free: Vec<u32>,
    /// By thread.
    locals: Vec<Vec<u32>>,
    statics: Vec<u32>,
    thread: usize,
    births: usize,
}

/// A small generator (xorshift): the same programs on every machine.
#[derive(Default)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }
}

impl Program {
    fn act(&mut self) {
        match self.draw.below(100) {
            0..=34 => self.birth(),
            35..=69 => self.store(),
            // Rare, so that targets of static fields grow old.
            70 if self.draw.below(40) == 0 => {
                let (field, target) = (self.draw.below(4), self.some());
                self.put_static(field, target);
            }
            70..=74 => self.keep(),
            75..=84 => {
                let (local, target) = (self.draw.below(6), self.some());
                self.locals[self.thread][local] = target;
            }
            85..=89 => {
                let local = self.draw.below(6);
                self.locals[self.thread][local] = 0;
            }
            90..=94 => {
                let handle = self.some();
                if handle != 0 {
                    self.ops.push(Op::Touch { handle });
                }
            }
            95..=97 => {
                self.thread = self.draw.below(3);
                self.ops.push(Op::Thread { thread: self.thread as u32 % 2 });
            }
            _ => self.bury(),
        }
    }

    /// A reachable object, a few steps from a local or a static field; 0 for null.
    fn some(&mut self) -> u32 {
        let root = self.draw.below(12);
        let mut handle = if root < 6 { self.locals[self.thread][root] } else { self.statics[root % 4] };
        for _ in 0..self.draw.below(8) {
            let slots = self.objects[handle as usize].slots.len();
            if slots > 0 {
                let slot = self.draw.below(slots);
                match self.objects[handle as usize].slots[slot] {
                    0 => {}
                    held => handle = held,
                }
            }
        }
        handle
    }

    fn birth(&mut self) {
        let handle = self.handle();
        let layout = Layout::default();
        let (class, size, slots) = match self.draw.below(20) {
            0..=13 => (0, 16, 1),
            14..=16 => {
                let slots = self.draw.below(12) as u32;
                (1, layout.array_bytes(slots), slots)
            }
            17 => {
                let slots = self.draw.below(200) as u32;
                (1, layout.array_bytes(slots), slots)
            }
            // Occasionally one for the large-object space.
            18 if self.draw.below(100) == 0 => (2, 16 + 8 * self.draw.below(12_000) as u64, 0),
            _ => (2, 16 + 8 * self.draw.below(30) as u64, 0),
        };
        debug_assert!(class < classes().len() as u32);
        self.ops.push(Op::Birth { handle, class, size, slots, site: 0, initial: false });
        let is_weak = class == 0 && self.births.is_multiple_of(5);
        self.objects[handle as usize] = Object { slots: vec![0; slots as usize], is_alive: true, is_weak };
        self.births += 1;
        let local = self.draw.below(6);
        self.locals[self.thread][local] = handle;
    }

    /// Stores a large object into a static field, or a young object into an old one.
    fn keep(&mut self) {
        let field = self.draw.below(4);
        match self.statics[field] {
            0 => {
                let handle = self.handle();
                let slots = 100;
                let size = Layout::default().array_bytes(slots);
                self.ops.push(Op::Birth { handle, class: 1, size, slots, site: 0, initial: false });
                self.objects[handle as usize] =
                    Object { slots: vec![0; slots as usize], is_alive: true, is_weak: false };
                self.births += 1;
                self.put_static(field, handle);
            }
            old => {
                let count = self.objects[old as usize].slots.len();
                let (local, slot) = (self.draw.below(6), self.draw.below(count.max(1)));
                if count > 0 {
                    self.put(old, slot, self.locals[self.thread][local]);
                }
            }
        }
    }

    fn put_static(&mut self, field: usize, target: u32) {
        self.statics[field] = target;
        self.ops.push(Op::UpdateStatic { field: field as u32, target });
    }

    /// An unused handle.
    fn handle(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.objects.push(Object::default());
            self.objects.len() as u32 - 1
        })
    }

    fn store(&mut self) {
        let (origin, target) = (self.some(), if self.draw.below(6) == 0 { 0 } else { self.some() });
        let count = self.objects[origin as usize].slots.len();
        if count > 0 {
            let slot = self.draw.below(count);
            self.put(origin, slot, target);
        }
    }

    fn put(&mut self, origin: u32, slot: usize, target: u32) {
        self.objects[origin as usize].slots[slot] = target;
        self.ops.push(Op::Update { origin, slot: slot as u32, target });
    }

    /// Kills unreachable objects immediately; weak references to them are cleared first.
    fn bury(&mut self) {
        let roots = self.statics.iter().chain(self.locals.iter().flatten());
        let mut next: Vec<u32> = roots.copied().filter(|&handle| handle != 0).collect();
        let mut reached: BTreeSet<u32> = next.iter().copied().collect();
        while let Some(handle) = next.pop() {
            let object = &self.objects[handle as usize];
            if !object.is_weak {
                next.extend(object.slots.iter().copied().filter(|&held| held != 0 && reached.insert(held)));
            }
        }
        for &handle in &reached {
            let object = &self.objects[handle as usize];
            if object.is_weak && object.slots[0] != 0 && !reached.contains(&object.slots[0]) {
                self.put(handle, 0, 0);
            }
        }
        for handle in 1..self.objects.len() as u32 {
            if self.objects[handle as usize].is_alive && !reached.contains(&handle) {
                self.objects[handle as usize].is_alive = false;
                self.ops.push(Op::Death { handle });
                self.free.push(handle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::{Collector, Config, simulate, smallest_heap};

    /// They are valid programs: every simulated collector runs them and ends with exactly the live objects.
    #[test]
    fn programs_at_random_are_sound() {
        for seed in 0..20 {
            let mut ops = super::super::open(&random_program(seed, 2000)).unwrap();
            let totals = ops.tables().totals;
            assert!(totals.births >= 2000 && ops.tables().handles < 1900, "{seed}: {totals:?}");
            assert!(totals.peak.objects.max(totals.at_end.objects) > 40, "{seed}: {totals:?}");
            for collector in Collector::ALL {
                let config = Config { backup_trace: true, ..Config::new(collector, 0) };
                let heap = smallest_heap(&mut ops, &config).unwrap();
                let report = simulate(&mut ops, &Config { heap, ..config }, &mut ()).unwrap();
                assert_eq!(report.at_end, totals.at_end, "{seed} {collector:?}");
            }
        }
    }
}
