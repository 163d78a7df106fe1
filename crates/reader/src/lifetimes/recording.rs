//! All steps of a trace, with the last mentions marked: from here deaths are found, and merged into the records.

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

/// A trace taken down.
#[derive(Debug)]
pub struct Recording {
    spool: Spool,
    last: LastMentions,
    /// What the VM holds to the end.
    held_by_vm: Vec<ObjectId>,
    /// What stacks hold at the end.
    on_stacks: Vec<OnStack>,
    times: Times,
    watcher: Watcher,
}

/// Steps all of whose dead are known.
struct Window {
    pieces: Range<usize>,
    found: Found,
}

/// A look for the dead follows all references of what is alive, so there is one only when a quarter more was taken down than was alive
/// at the last look: each object costs the same, however large the heap is, and no more is in memory than that. But the dead are
/// needed while steps are played behind: there are at least so many windows.
const WINDOWS: u64 = 16;

/// What a replay comes to.
#[derive(Clone, Copy, Debug)]
pub enum Played<'a> {
    /// A step of the source, with its number.
    Step(u64, &'a Step),
    /// A record that was found: a death, or the clearing of a weak reference.
    Found(&'a Record),
    /// What follows is of events that were made from that time on.
    Time(Nanos),
    /// What follows stands there, if [`Recorder::keep_places`](super::Recorder::keep_places) said to keep it.
    At(Place),
}

/// What it took, and what it found at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Most objects that were alive, or not yet known to be dead, at a time.
    pub most_objects: usize,
    /// Steps taken down.
    pub steps: u64,
    /// Bytes of temporary files (or memory, while they are few).
    pub spool_bytes: u64,
    /// What is alive at the end only because methods that have not returned hold it; nothing if the replay was broken off.
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

    /// Calls `visit` with every record in order, those of deaths included, until it breaks off. One thread looks for the
    /// dead, this one reads the steps again behind it.
    pub fn replay(&self, mut visit: impl FnMut(&Record) -> ControlFlow<()>) -> Result<Cost, LifetimesError> {
        self.replay_steps(|played| match played {
            Played::Step(_, step) => step.record().map_or(ControlFlow::Continue(()), |record| visit(&record)),
            Played::Found(record) => visit(record),
            Played::Time(_) | Played::At(_) => ControlFlow::Continue(()),
        })
    }

    /// As [`replay`](Self::replay), with the steps that are no records as well.
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

    /// Sends window after window; says how many objects there were at most, and what only stacks hold at the end.
    fn find(&self, windows: &SyncSender<Window>) -> io::Result<(usize, Vec<HeldByStack>)> {
        let mut graph = Graph::default();
        let mut most = 0;
        let mut steps = Vec::new();
        // The first piece of the window, and how many objects were alive before it.
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
