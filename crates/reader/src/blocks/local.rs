//! What lives and dies within a part: an object that is made in it, that nothing names later, and that only such objects
//! hold at the end, has died in it. All references to it were stored in the part, so nothing else need be known.
//! Elsewhere ([`forward`](super::forward)) only what remains is seen.

use rustc_hash::FxHashMap;

use super::Wanted;
use super::usage::{self, Old, PartUsage};
use super::walk::{NONE, Named, Part, Put, Stamp};
use crate::model::Node;
use crate::record::Slot;
use et_names::MethodId;

/// A part whose objects are known: those that it makes have their ids.
#[derive(Debug)]
pub struct Known {
    pub part: Part,
    /// Places of its objects in the graph of those that outlive their part, by number; `NONE` for those that have none
    /// yet.
    pub nodes: Vec<u32>,
    /// The objects for which this part was the last that might have named them: hash or id, and place.
    pub last_named: Vec<(u64, Node)>,
    /// Number of objects, bytes and ticks before the part.
    pub births: u64,
    pub bytes: u64,
    pub ticks: u64,
    /// Number of blocks that are behind it.
    pub blocks: u64,
}

impl Known {
    /// The clock, from the clock relative to the part.
    pub fn tick(&self, tick: u32) -> u64 {
        self.ticks + self.part.advance(tick)
    }
}

/// A calling context, relative to the frames at the beginning of the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// No method runs.
    Nothing,
    /// A frame that was there at the beginning.
    Base(u32),
    /// A context of the part.
    Node(u32),
}

/// The calling contexts that a part needs: a tree whose nodes come after those they are called from.
#[derive(Debug, Default)]
pub struct Nodes {
    pub all: Vec<(Caller, MethodId)>,
    /// By caller and method.
    index: FxHashMap<u64, u32>,
    /// By node, the callee looked up last, which is mostly the one looked up next.
    recent: Vec<u32>,
    /// The node of each frame entered in the part, by its number; `NONE` if it has none yet.
    of_frame: Vec<u32>,
    path: Vec<u32>,
}

impl Nodes {
    fn for_part(part: &Part) -> Self {
        // Most likely another core has made them. Read in order here, they are in the cache when they are asked for in random order.
        std::hint::black_box(part.frames.iter().fold(0, |sum, frame| sum ^ frame.caller));
        Self { of_frame: vec![NONE; part.frames.len()], ..Self::default() }
    }

    /// The context of a frame.
    fn of(&mut self, part: &Part, frame: u32) -> Caller {
        let mut at = frame;
        let mut caller = loop {
            if at == NONE {
                break Caller::Nothing;
            }
            let Some(entered) = part.frame(at) else { break Caller::Base(at) };
            let known = self.of_frame[(at - part.base) as usize];
            if known != NONE {
                break Caller::Node(known);
            }
            self.path.push(at);
            at = entered.caller;
        };
        while let Some(at) = self.path.pop() {
            let place = (at - part.base) as usize;
            let node = self.called(caller, part.frames[place].method);
            caller = Caller::Node(node);
            self.of_frame[place] = node;
        }
        caller
    }

    /// The context in which `caller` has called `method`.
    fn called(&mut self, caller: Caller, method: MethodId) -> u32 {
        let from = match caller {
            Caller::Node(node) => node,
            Caller::Base(frame) => 1 << 31 | frame,
            Caller::Nothing => NONE,
        };
        if let Some(&recent) = self.recent.get(from as usize)
            && self.all.get(recent as usize) == Some(&(caller, method))
        {
            return recent;
        }
        let Self { all, index, recent, .. } = self;
        let node = *index.entry(u64::from(from) << 32 | u64::from(method.0)).or_insert_with(|| {
            all.push((caller, method));
            recent.push(NONE);
            all.len() as u32 - 1
        });
        if let Some(recent) = recent.get_mut(from as usize) {
            *recent = node;
        }
        node
    }
}

/// An object that died in the part in which it was made.
#[derive(Clone, Copy, Debug)]
pub struct Dead {
    /// Its number.
    pub object: u32,
    pub at: Stamp,
    pub born_in: Caller,
    pub died_in: Caller,
}

/// A slot of an object that remains, or a static field, which the part has stored to.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// `NONE` for a static field.
    pub origin: u32,
    pub slot: Slot,
    /// What it holds in the end; `NONE` for null.
    pub target: u32,
    /// The first store, which has replaced a target that is not known here. `None` if there was none to replace.
    pub first: Option<First>,
}

/// The first store to a slot.
#[derive(Clone, Copy, Debug)]
pub struct First {
    pub at: Stamp,
    pub in_context: Caller,
    /// Only if it stores this target, and the slot held another one; `None`: whatever it held.
    pub if_not: Option<u32>,
}

/// What a part comes to.
#[derive(Debug)]
pub struct Settled {
    pub known: Known,
    pub nodes: Nodes,
    pub dead: Vec<Dead>,
    /// Whether an object died here, by number.
    pub died: Vec<bool>,
    pub stored: Vec<Stored>,
    /// Stores into slots that may be weak, in order.
    pub weak: Vec<(Put, Caller)>,
    /// Steps that are none, since the slot held the same target before.
    pub unchanged: Vec<u32>,
    /// Contexts of allocations and of last mentions of objects that remain, by number; if only births are wanted, those of
    /// allocations in order.
    pub born_in: Vec<Caller>,
    pub last_in: Vec<Caller>,
    pub usage: PartUsage,
}

/// Slots that a part has stored to, in the order of their first stores.
#[derive(Debug)]
struct Slots {
    all: Vec<Stored>,
    /// Indexes in `all`, plus 1, by hash; 0 is free. Empty if there are so few that they are searched.
    places: Vec<u32>,
}

/// Maximum number of stores of a part whose slots are searched one by one rather than in a table. In tests, most parts would have no
/// more.
const FEW_STORES: usize = if cfg!(test) { 2 } else { 8 };

impl Slots {
    /// With room for this number of slots.
    fn for_stores(most: usize) -> Self {
        let places = if most <= FEW_STORES { Vec::new() } else { vec![0; (most * 2).next_power_of_two()] };
        Self { all: Vec::with_capacity(most), places }
    }

    /// The slot; if it is not there yet, the place for [`add`](Self::add).
    #[inline]
    fn find(&mut self, origin: u32, slot: Slot) -> Result<&mut Stored, usize> {
        if self.places.is_empty() {
            let found = self.all.iter().position(|stored| (stored.origin, stored.slot) == (origin, slot));
            return found.map_or(Err(0), |index| Ok(&mut self.all[index]));
        }
        let key = u64::from(origin) << 32 | u64::from(slot.number());
        let mask = self.places.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            match self.places[at].checked_sub(1).map(|index| index as usize) {
                None => return Err(at),
                Some(index) if (self.all[index].origin, self.all[index].slot) == (origin, slot) => {
                    return Ok(&mut self.all[index]);
                }
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    fn add(&mut self, at: usize, stored: Stored) {
        self.all.push(stored);
        if let Some(place) = self.places.get_mut(at) {
            *place = self.all.len() as u32;
        }
    }
}

fn later(named: &mut Named, at: Stamp) {
    if named.last.is_never() || named.last.step < at.step {
        named.last = at;
    }
}

/// A store that turned out to be one names origin and target.
fn changed(part: &mut Part, put: &Put) {
    for (number, is_use) in [(put.origin, true), (put.target, false)] {
        if number == NONE {
            continue;
        }
        let holder = part.named[number as usize].holder;
        // If both frames are still active at the end of the part, the outer one used it first. Outer frames have lower numbers.
        let holds = part.runs_on(put.at.frame) && (!part.runs_on(holder) || put.at.frame < holder);
        let named = &mut part.named[number as usize];
        later(named, put.at);
        if is_use && (named.used == NONE || named.used < put.at.tick) {
            named.used = put.at.tick;
        }
        if holds {
            named.holder = put.at.frame;
        }
    }
}

/// Finds what has died in the part, if deaths are wanted.
pub fn settle(mut known: Known, wanted: Wanted, about: &mut usage::Known<'_>) -> Settled {
    let part = &mut known.part;
    let mut usage = if wanted == Wanted::Deaths { PartUsage::for_part(part, about) } else { PartUsage::default() };
    let mut nodes = Nodes::for_part(part);
    let mut unchanged = Vec::new();
    let mut weak = Vec::new();
    let puts = std::mem::take(&mut part.puts);
    let mut slots = Slots::for_stores(puts.len());
    for put in &puts {
        if put.is_weak && wanted != Wanted::Births {
            weak.push((*put, nodes.of(part, put.at.frame)));
            continue;
        }
        let is_new = |number: u32| number != NONE && part.named[number as usize].birth != NONE;
        match slots.find(put.origin, put.slot) {
            Ok(stored) => {
                let old = stored.target;
                if put.if_changed && old == put.target {
                    unchanged.push(put.at.step);
                    continue;
                }
                stored.target = put.target;
                if put.if_changed {
                    changed(part, put);
                }
                usage.put(part, put, Old::Known(old != NONE), about);
                if old != NONE {
                    later(&mut part.named[old as usize], put.at);
                }
            }
            Err(place) => {
                let mut stored = Stored { origin: put.origin, slot: put.slot, target: put.target, first: None };
                if is_new(put.origin) {
                    if put.if_changed && put.target == NONE {
                        unchanged.push(put.at.step);
                        continue;
                    }
                    if put.if_changed {
                        changed(part, put);
                    }
                    usage.put(part, put, Old::Known(false), about);
                } else {
                    // What was made here cannot have been there before.
                    let is_certain = !put.if_changed || is_new(put.target);
                    if put.if_changed && is_certain {
                        changed(part, put);
                    }
                    usage.put(part, put, Old::First { is_certain }, about);
                    let if_not = (!is_certain).then_some(put.target);
                    let in_context = match wanted {
                        Wanted::Births => Caller::Nothing,
                        Wanted::Deaths | Wanted::Uses => nodes.of(part, put.at.frame),
                    };
                    stored.first = Some(First { at: put.at, in_context, if_not });
                }
                slots.add(place, stored);
            }
        }
    }
    if wanted == Wanted::Births {
        return births(known, nodes, slots.all, unchanged);
    }
    let count = part.named.len();
    let can_die = |named: &Named| {
        const REMAINS: u8 = Named::LATER | Named::HELD | Named::WEAK | Named::ON_STACK;
        wanted == Wanted::Deaths && named.birth != NONE && named.flags & REMAINS == 0
    };
    // References between objects made here: chains from each origin.
    let mut head = vec![NONE; count];
    let mut edges: Vec<(u32, u32)> = Vec::with_capacity(slots.all.len());
    let mut died: Vec<bool> = part.named.iter().map(can_die).collect();
    let mut reached: Vec<u32> = Vec::new();
    let reach = |number: u32, died: &mut [bool], reached: &mut Vec<u32>| {
        if std::mem::replace(&mut died[number as usize], false) {
            reached.push(number);
        }
    };
    for &Stored { origin, target, .. } in &slots.all {
        if target == NONE {
            continue;
        }
        match origin != NONE && part.named[origin as usize].birth != NONE {
            true => {
                edges.push((target, head[origin as usize]));
                head[origin as usize] = edges.len() as u32 - 1;
            }
            false => reach(target, &mut died, &mut reached),
        }
    }
    // The targets of an origin.
    let (head, edges) = (&head, &edges);
    let of = |origin: u32| {
        let mut at = head[origin as usize];
        std::iter::from_fn(move || {
            let &(target, next) = edges.get(at as usize)?;
            at = next;
            Some(target)
        })
    };
    for number in 0..count as u32 {
        if part.named[number as usize].birth != NONE && !can_die(&part.named[number as usize]) {
            reached.push(number);
        }
    }
    while let Some(origin) = reached.pop() {
        for target in of(origin) {
            reach(target, &mut died, &mut reached);
        }
    }
    // Merlin: from the latest down, what a dead object holds dies no earlier than it does.
    let mut order_of_death: Vec<u32> = (0..count as u32).filter(|&number| died[number as usize]).collect();
    order_of_death.sort_unstable_by_key(|&number| {
        let Named { last, birth, .. } = part.named[number as usize];
        (std::cmp::Reverse(last.step), part.births[birth as usize].alloc.object)
    });
    let mut dead = Vec::with_capacity(order_of_death.len());
    let mut is_stamped = vec![false; count];
    let mut stack = Vec::new();
    for first in order_of_death {
        if std::mem::replace(&mut is_stamped[first as usize], true) {
            continue;
        }
        let at = part.named[first as usize].last;
        stack.push(first);
        while let Some(number) = stack.pop() {
            part.named[number as usize].last = at;
            let birth = part.births[part.named[number as usize].birth as usize];
            let born_in = nodes.of(part, birth.frame);
            let died_in = nodes.of(part, at.frame);
            dead.push(Dead { object: number, at, born_in, died_in });
            for target in of(number) {
                if !died[target as usize] {
                    later(&mut part.named[target as usize], at);
                } else if !std::mem::replace(&mut is_stamped[target as usize], true) {
                    stack.push(target);
                }
            }
        }
    }
    usage.died(part, dead.iter().map(|dead| dead.object), about);
    // In the order of deaths, as rows are: here, many parts are sorted in parallel. The sort is stable, so holders stay before what
    // they hold.
    dead.sort_by_key(|dead| dead.at.step);
    let mut stored = slots.all;
    stored.retain(|stored| stored.origin == NONE || !died[stored.origin as usize]);
    let (mut born_in, mut last_in) = (vec![Caller::Nothing; count], vec![Caller::Nothing; count]);
    for number in (0..count).filter(|&number| !died[number]) {
        let Named { birth, last, .. } = part.named[number];
        if birth != NONE {
            born_in[number] = nodes.of(part, part.births[birth as usize].frame);
        }
        if !last.is_never() {
            last_in[number] = nodes.of(part, last.frame);
        }
    }
    Settled { known, nodes, dead, died, stored, weak, unchanged, born_in, last_in, usage }
}

/// Only how objects were made is wanted.
fn births(known: Known, mut nodes: Nodes, stored: Vec<Stored>, unchanged: Vec<u32>) -> Settled {
    let born_in = known.part.births.iter().map(|birth| nodes.of(&known.part, birth.frame)).collect();
    let (dead, died, weak, last_in) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let usage = PartUsage::default();
    Settled { known, nodes, dead, died, stored, weak, unchanged, born_in, last_in, usage }
}
