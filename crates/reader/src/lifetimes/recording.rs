//! All steps of a trace with the last mentions marked, from which deaths are computed and inserted between the records.

use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{SyncSender, sync_channel};

use super::LifetimesError;
use super::graph::{Found, Graph, HeldByStack};
use super::last_mention::LastMentions;
use super::spool::Spool;
use super::step::Step;
use super::times::{Times, TimesIter};
use crate::model::OnStack;
use crate::place::Place;
use crate::record::{ObjectId, Record};
use crate::watch::{Unit, Watcher};
use et_format::Nanos;
use et_system::threads::spawn_scoped;

/// The recording of a trace.
#[derive(Debug)]
pub struct Recording {
    spool: Spool,
    last: LastMentions,
    /// What the VM holds at the end.
    held_by_vm: Vec<ObjectId>,
    /// What stacks hold at the end.
    on_stacks: Vec<OnStack>,
    times: Times,
    watcher: Watcher,
}

/// Consecutive steps for which all deaths are known.
struct Window {
    pieces: Range<usize>,
    found: Found,
}

/// A collection follows all references of live objects, so it takes place only when the number of new steps exceeds the
/// number of objects that were alive at the last one by a quarter: the cost per object then does not depend on the size
/// of the heap, and memory is bounded by it. But the replay follows behind and needs deaths, so there are at least this
/// many collections.
const WINDOWS: u64 = 16;

/// An item of a replay.
#[derive(Clone, Copy, Debug)]
pub enum Played<'a> {
    /// A step of the source, with its number.
    Step(u64, &'a Step),
    /// A computed record: a death, or the clearing of a weak reference.
    Found(&'a Record),
    /// The events of the items that follow happened from this time on.
    Time(Nanos),
    /// The place of the items that follow, if [`Recorder::keep_places`](super::Recorder::keep_places) was called.
    At(Place),
}

/// The cost of a replay, and what it found at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Maximum number of objects that were alive or not yet known to be dead at a time.
    pub most_objects: usize,
    /// Number of steps recorded.
    pub steps: u64,
    /// Size of the temporary files in bytes, or of the memory used instead of small ones.
    pub spool_bytes: u64,
    /// What is alive at the end only because methods that have not returned hold it; empty if the replay was stopped.
    pub held_by_stacks: Vec<HeldByStack>,
}

impl Recording {
    pub(super) fn new(
        spool: Spool,
        held_by_vm: impl IntoIterator<Item = ObjectId>,
        on_stacks: Vec<OnStack>,
        times: Times,
        watcher: Watcher,
    ) -> Result<Self, LifetimesError> {
        watcher.begin("finding last uses", Unit::Records, spool.steps());
        let held_by_vm: Vec<ObjectId> = held_by_vm.into_iter().collect();
        let held_at_end = held_by_vm.iter().copied().chain(on_stacks.iter().map(|held| held.object));
        let last = LastMentions::find(&spool, held_at_end, &watcher)?;
        Ok(Self { spool, last, held_by_vm, on_stacks, times, watcher })
    }

    /// Calls `visit` with every record in order, including deaths, until it breaks. One thread computes the deaths
    /// while this one reads the steps behind it.
    pub fn replay(&self, mut visit: impl FnMut(&Record) -> ControlFlow<()>) -> Result<Cost, LifetimesError> {
        self.replay_steps(|played| match played {
            Played::Step(_, step) => step.record().map_or(ControlFlow::Continue(()), |record| visit(&record)),
            Played::Found(record) => visit(record),
            Played::Time(_) | Played::At(_) => ControlFlow::Continue(()),
        })
    }

    /// Like [`replay`](Self::replay), but includes the steps that are not records.
    pub fn replay_steps(&self, mut visit: impl FnMut(Played<'_>) -> ControlFlow<()>) -> Result<Cost, LifetimesError> {
        self.watcher.begin("finding deaths", Unit::Records, self.spool.steps());
        std::thread::scope(|scope| {
            let (send, windows) = sync_channel(1);
            let finder = spawn_scoped(scope, move || self.find(&send))?;
            let mut steps = Vec::new();
            let mut result = Ok(());
            let mut times = self.times.iter();
            for window in &windows {
                match self.merge(window, &mut steps, &mut times, &mut visit) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => break,
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            drop(windows);
            let found = match finder.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            result?;
            let (most_objects, held_by_stacks) = found?;
            let (steps, spool_bytes) = (self.spool.steps(), self.spool.stored_bytes());
            Ok(Cost { most_objects, steps, spool_bytes, held_by_stacks })
        })
    }

    /// Sends window after window. Returns the maximum number of objects at a time, and what only stacks hold at the
    /// end.
    fn find(&self, windows: &SyncSender<Window>) -> io::Result<(usize, Vec<HeldByStack>)> {
        let mut graph = Graph::default();
        let mut most = 0;
        let mut steps = Vec::new();
        // The first piece of the window, and the number of objects alive before it.
        let (mut first, mut alive) = (0, 0);
        for piece in 0..self.spool.pieces() {
            self.spool.read(piece, &mut steps)?;
            let last = self.last.read(piece)?;
            let number = self.spool.first(piece);
            for ((number, step), &last) in (number..).zip(&steps).zip(&last) {
                graph.step(number, step, last);
            }
            most = most.max(graph.alive());
            let steps = self.spool.first(piece + 1) - self.spool.first(first);
            let is_worth_it = graph.pending() >= alive + alive / 4 || steps >= self.spool.steps() / WINDOWS;
            if steps >= self.spool.limits().window_steps && is_worth_it || piece + 1 == self.spool.pieces() {
                let window = Window { pieces: first..piece + 1, found: graph.collect() };
                (first, alive) = (piece + 1, graph.alive());
                if windows.send(window).is_err() {
                    return Ok((most, Vec::new()));
                }
            }
        }
        Ok((most, graph.held_by(&self.on_stacks, &self.held_by_vm)))
    }

    fn merge(
        &self,
        window: Window,
        steps: &mut Vec<Step>,
        times: &mut TimesIter<'_>,
        visit: &mut impl FnMut(Played<'_>) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let mut extras = window.found.extras.into_iter().peekable();
        let mut cleared = window.found.cleared_before.into_iter().peekable();
        for piece in window.pieces {
            self.spool.read(piece, steps)?;
            self.watcher.add(steps.len() as u64);
            let mut places = self.spool.places(piece)?.into_iter().peekable();
            for (number, step) in (self.spool.first(piece)..).zip(steps.iter_mut()) {
                while let Some((_, place)) = places.next_if(|(from, _)| *from <= number) {
                    if visit(Played::At(place)).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                if let Some(time) = times.until(number)
                    && visit(Played::Time(time)).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
                if cleared.next_if_eq(&number).is_some()
                    && let Step::WeakUpdate { old, .. } = step
                {
                    *old = ObjectId::NULL;
                }
                if visit(Played::Step(number, step)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                while let Some(extra) = extras.next_if(|extra| extra.after == number) {
                    if visit(Played::Found(&extra.record)).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
