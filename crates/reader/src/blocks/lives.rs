//! What becomes of the objects: parts are settled by others, and applied to the graph in order.

use std::collections::VecDeque;

use et_format::event::{ObjectHash, Ticket};

use super::driver::{Driver, Hands, Mode, Options, cut_off, drive};
use super::forward::{self, Forward, Plan};
use super::glimpse::Glimpses;
use super::living::Entry;
use super::local::{self, Known, Settled};
use super::pool::{Promise, Urgency};
use super::walk::{self, Named, Part};
use super::{BlocksError, Cost, Passed, Rows, Wanted};
use crate::lifetimes::{self, WeakSlots};
use crate::model::Node;
use crate::record::{Alloc, ObjectId};
use crate::resolve::Outcome;
use crate::survival::Marker;
use crate::told::Hold;
use crate::trace::Trace;
use crate::types::TypeId;

/// Reads what is wanted of the objects.
pub(super) fn read_with<R: Rows + Send>(
    trace: &Trace,
    wanted: Wanted,
    rows: R,
    options: &Options,
) -> Result<(R, Passed), BlocksError> {
    let special = lifetimes::special(trace);
    // What walks tell is asked for where deaths are not known.
    let marker = if wanted == Wanted::Births { Marker::of(trace)? } else { None };
    let cuts = marker.as_ref().map(Marker::tickets).unwrap_or_default();
    let mode = |blocks| Lives {
        wanted,
        class_type: special.class,
        forward: Forward::new(
            rows,
            trace,
            marker,
            WeakSlots::new(&special),
            wanted,
            options.most_rows.unwrap_or(forward::MOST_ROWS),
            match wanted {
                Wanted::Deaths if options.glimpses => Plan::Always,
                Wanted::Deaths => Plan::of(blocks),
                Wanted::Uses | Wanted::Births => Plan::Never,
            },
        ),
        settling: VecDeque::new(),
        births: 0,
        bytes: 0,
        ticks: 0,
    };
    let driven = drive(trace, wanted != Wanted::Uses, cuts, options, special.referent, mode)?;
    let finished = driven.mode.forward.finish();
    let mut anomalies = driven.anomalies;
    let cut_off = cut_off(trace, finished.frames_left, &mut anomalies);
    let sums = finished.sums;
    let outcome = Outcome {
        totals: sums.totals,
        anomalies,
        lost: driven.lost,
        cut_off,
        extra_fields: driven.before.fields.into_extra(),
        ..Outcome::default()
    };
    let passed = Passed {
        contexts: finished.contexts,
        objects: sums.births,
        ticks: sums.ticks,
        bytes: sums.bytes,
        time: sums.time,
        late: finished.late,
        held_by_stacks: finished.held_by_stacks,
        held_by_locals: finished.held_by_locals,
        usage: finished.usage,
        glimpses: Glimpses { all: finished.glimpses, extra_fields: outcome.extra_fields.clone() },
        records: sums.of_thread,
        ran: driven.ran,
        fates: finished.fates,
        outcome,
        cost: Cost { most_objects: sums.most_alive, ..driven.cost },
    };
    Ok((finished.rows, passed))
}

struct Lives<'a, R> {
    wanted: Wanted,
    class_type: Option<TypeId>,
    forward: Forward<'a, R>,
    /// Parts that others settle, in order.
    settling: VecDeque<Promise<Settled>>,
    births: u64,
    bytes: u64,
    ticks: u64,
}

impl<'a, R: Rows> Mode<'a> for Lives<'a, R> {
    const TELLS: bool = false;
    /// Their places in the graph, `NONE` for those that the part makes.
    type Found = Vec<u32>;

    fn begin(driver: &mut Driver<'_, 'a, Self>) -> Result<(), BlocksError> {
        let object = |driver: &mut Driver<'_, 'a, Self>, hash: ObjectHash, alloc: Alloc| {
            let known = (driver.literals.may_name(hash.0), driver.before.holds_later(hash));
            let is_class = Some(alloc.ty) == driver.mode.class_type;
            driver.mode.forward.initial_object(alloc, is_class, known);
            driver.mode.births += 1;
        };
        // What slots held is told with the rest.
        let mut vm = driver.initial(object, |_, _, _| {})?;
        let forward = &mut driver.mode.forward;
        let mut tell = |hold| match hold {
            Hold::Initial { origin, slot, target } => forward.initial_reference(origin, slot, target),
            Hold::ToTheEnd { object } => {
                if let Some(node) = forward.initial_node(object) {
                    forward.hold(node);
                }
            }
            Hold::Until { .. } => {}
        };
        vm.begin(&mut tell)?;
        Ok(())
    }

    fn identify(driver: &mut Driver<'_, 'a, Self>, part: &mut Part) -> Option<Vec<u32>> {
        let mut nodes = Vec::with_capacity(part.named.len());
        for named in &mut part.named {
            let node = match u32::try_from(named.key) {
                _ if named.birth == walk::NONE => match driver.node(named) {
                    Some(node) => node.0,
                    None if driver.mode.wanted == Wanted::Births && named.is(Named::BY_STACK) => walk::NONE,
                    None => return None,
                },
                Ok(hash) if named.is(Named::UNKNOWN) && driver.before.ids.current(ObjectHash(hash)).is_some() => {
                    return None;
                }
                _ => walk::NONE,
            };
            nodes.push(node);
        }
        Some(nodes)
    }

    fn identify_exact(driver: &mut Driver<'_, 'a, Self>, part: &mut Part) -> Vec<u32> {
        let node = |named: &mut Named| match named.birth {
            walk::NONE => driver.node(named).map_or(walk::NONE, |node| node.0),
            _ => walk::NONE,
        };
        part.named.iter_mut().map(node).collect()
    }

    fn passed(&mut self, hash: u32) {
        self.forward.living.passed(hash);
    }

    /// Gives the objects that a part has made their ids, and has it settled.
    fn commit(
        driver: &mut Driver<'_, 'a, Self>,
        mut part: Part,
        mut nodes: Vec<u32>,
        passed: Vec<u64>,
    ) -> Result<(), BlocksError> {
        driver.before.now = Ticket(part.ticket);
        driver.anomalies.add(&part.anomalies);
        driver.lost.add(&part.lost);
        let mut last_named = Vec::new();
        let touch = |key: u64| match u32::try_from(key) {
            Ok(hash) => driver.before.ids.touch(ObjectHash(hash)) ^ driver.literals.touch(hash),
            Err(_) => 0,
        };
        let births = part.named.iter().filter(|named| named.birth != walk::NONE);
        std::hint::black_box(births.fold(0, |sum, named| sum ^ touch(named.key)));
        for (named, node) in part.named.iter_mut().zip(&mut nodes).filter(|(named, _)| named.birth != walk::NONE) {
            let alloc = &mut part.births[named.birth as usize].alloc;
            let hash = u32::try_from(named.key);
            let (mut in_blocks, mut by_vm) = (false, false);
            match hash {
                Ok(hash) => {
                    let (object, before) = driver.before.ids.allocate(ObjectHash(hash));
                    alloc.object = object;
                    // Nothing can name an object whose hash is used again.
                    if before.is_some() {
                        let before = driver.mode.forward.living.replace(hash);
                        last_named.extend(before.map(|before| (named.key, before.node())));
                    }
                    (in_blocks, by_vm) = (driver.literals.may_name(hash), driver.before.holds_later(ObjectHash(hash)));
                    if Some(alloc.ty) == driver.mode.class_type {
                        named.flags |= Named::HELD;
                    }
                    if in_blocks || by_vm {
                        named.flags |= Named::LATER;
                    }
                }
                Err(_) => alloc.object = ObjectId(named.key),
            }
            let may_be_named = match driver.mode.wanted {
                Wanted::Deaths => named.flags & (Named::LATER | Named::HELD | Named::ON_STACK) != 0,
                Wanted::Births => named.is(Named::LATER),
                Wanted::Uses => true,
            };
            if !may_be_named {
                continue;
            }
            let place = driver.mode.forward.reserve();
            *node = place.0;
            match hash {
                Ok(hash) => driver.mode.forward.living.add(hash, Entry::new(place, in_blocks, by_vm)),
                Err(_) => driver.mode.forward.living.add_made_up(named.key, place),
            }
        }
        for key in passed {
            match u32::try_from(key) {
                Ok(hash) => {
                    let entry = driver.mode.forward.living.get(hash).filter(|&entry| !driver.may_name(hash, entry));
                    last_named.extend(entry.map(|entry| (key, entry.node())));
                }
                Err(_) => last_named.extend(driver.mode.forward.living.made_up(key).map(|node| (key, node))),
            }
        }
        let known = Known {
            last_named,
            births: driver.mode.births,
            bytes: driver.mode.bytes,
            ticks: driver.mode.ticks,
            blocks: driver.blocks,
            nodes,
            part,
        };
        driver.mode.births += known.part.births.len() as u64;
        driver.mode.bytes += known.part.births.last().map_or(0, |birth| birth.bytes);
        driver.mode.ticks += known.part.advance(known.part.ticks);
        let wanted = driver.mode.wanted;
        let settle = move |hands: &mut Hands<'a>| local::settle(known, wanted, &mut hands.about_usage);
        driver.mode.settling.push_back(driver.pool.add(Urgency::Settle, settle));
        Ok(())
    }

    fn advance(driver: &mut Driver<'_, 'a, Self>, all: bool) -> Result<(), BlocksError> {
        loop {
            let settling = &mut driver.mode.settling;
            if !all && settling.len() <= driver.ahead && !settling.front().is_some_and(Promise::is_kept) {
                return Ok(());
            }
            let Some(promise) = settling.pop_front() else { return Ok(()) };
            let settled = driver.pool.wait(&promise, driver.hands);
            driver.cost.died_at_once += settled.dead.len() as u64;
            driver.mode.forward.apply(settled)?;
        }
    }

    fn end(driver: &mut Driver<'_, 'a, Self>) -> Result<(), BlocksError> {
        let forward = &mut driver.mode.forward;
        for thread in driver.trace.threads.iter().filter(|thread| thread.end.is_none()) {
            if let Some(entry) = forward.living.get(thread.object.0) {
                forward.hold(entry.node());
            }
        }
        Ok(())
    }
}

impl<R: Rows> Driver<'_, '_, Lives<'_, R>> {
    /// The place of an object from before the part. Notes whether it may be named later.
    #[inline]
    fn node(&self, named: &mut Named) -> Option<Node> {
        let Ok(hash) = u32::try_from(named.key) else { return self.mode.forward.living.made_up(named.key) };
        let entry = self.mode.forward.living.get(hash)?;
        if self.may_name(hash, entry) {
            named.flags |= Named::LATER;
        }
        Some(entry.node())
    }

    #[inline]
    fn may_name(&self, hash: u32, entry: Entry) -> bool {
        entry.is_in_blocks() || entry.may_be_held() && self.before.holds_later(ObjectHash(hash))
    }
}
