//! Random programs for property tests.

use std::collections::HashMap;

use proptest::prelude::*;

/// Random programs, as texts without deaths: nodes with two fields, arrays, cycles, static fields, three threads.
pub fn program() -> impl Strategy<Value = String> {
    prop::collection::vec((0..20u8, any::<u16>(), any::<u16>(), 1..4u8), 1..160).prop_map(|acts| {
        let mut maker = Maker::default();
        acts.into_iter().for_each(|act| maker.act(act));
        format!("# Elephant Tracks, dialect et\n{}# lost 0\n", maker.text)
    })
}

#[derive(Default)]
struct Maker {
    text: String,
    /// Length of each object if it is an array.
    objects: Vec<Option<u32>>,
    slots: HashMap<(usize, u32), usize>,
}

impl Maker {
    /// Mostly one of the youngest, from 1; 0 if there is none.
    fn object(&self, draw: u16) -> usize {
        let count = self.objects.len();
        let back = if draw.is_multiple_of(5) { draw as usize } else { draw as usize % 6 };
        if count == 0 { 0 } else { count - back % count }
    }

    fn act(&mut self, (kind, one, other, thread): (u8, u16, u16, u8)) {
        let (origin, target) = (self.object(one), if other.is_multiple_of(4) { 0 } else { self.object(other) });
        let id = self.objects.len() + 1;
        match kind {
            0..=5 => {
                self.objects.push(None);
                self.text += &format!("N {id:x} {:x} LNode; 0 0 {thread}\n", 16 + 8 * (one % 3));
            }
            6 => {
                let length = one % 5;
                self.objects.push(Some(length.into()));
                self.text +=
                    &format!("A {id:x} {:x} [LNode; 0 {length:x} {thread}\n", (16 + 4 * length).next_multiple_of(8));
            }
            7 => {
                self.objects.push(Some(0));
                self.text += &format!("A {id:x} {:x} [B 0 {:x} {thread}\n", 16 + 8 * (one % 9), 8 * (one % 9));
            }
            8..=15 if origin > 0 => {
                let slot = match self.objects[origin - 1] {
                    None => u32::from(one % 2) + 5,
                    Some(0) => return,
                    Some(length) => u32::from(one) % length,
                };
                self.put(origin, slot, target, thread);
            }
            16 => self.put(0, u32::from(one % 3) + 9, target, thread),
            17 | 18 if origin > 0 => {
                self.text += &format!("M 7 {origin:x} {thread}\nE 7 {origin:x} {thread}\n");
            }
            _ => {}
        }
    }

    fn put(&mut self, origin: usize, slot: u32, target: usize, thread: u8) {
        let old = self.slots.insert((origin, slot), target).unwrap_or(0);
        self.text += &format!("U {old:x} {origin:x} {target:x} {slot:x} {thread}\n");
    }
}
