//! The parts of a trace, walked through on all cores and passed on in order.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

use et_format::event::Ticket;
use et_names::{FieldId, MethodId};
use et_system::threads::spawn_scoped;
use rustc_hash::{FxHashMap, FxHashSet};

use super::hands::Hands;
use super::literals::BlockOf;
use super::oracle::{Before, Likely};
use super::pool::{Closing, Pool, Promise, Urgency};
use super::schedule::{PartOf, Planned, Schedule, Unseen};
use super::walk::{Bound, Group, Named, Part, Walk};
use super::{BlocksError, Cost};
use crate::classes::ClassIndex;
use crate::record::{ThreadId, Totals};
use crate::resolve::{Anomalies, CutOffThread, ExtraField, Lost, Outcome};
use crate::trace::Trace;

/// Number of groups that are walked through ahead, on top of some for each thread: what the others do while this one looks for dead
/// objects.
const MORE_AHEAD: usize = 16;
/// Maximum number of parts planned ahead.
pub const PARTS_AHEAD: usize = 4096;

/// Receives the parts in order.
pub trait Taker<'a> {
    /// The places of the objects of a part that are older than it, [`NONE`](super::walk::NONE) for the others. `None` if they were not
    /// known, or known, as was assumed.
    fn places(&mut self, before: &mut Before<'a>, part: &mut Part) -> Option<Vec<u32>>;
    /// The same of a part that was walked through in order.
    fn exact_places(&mut self, before: &mut Before<'a>, part: &mut Part) -> Vec<u32>;
    /// A block has been passed. Adds the objects that no later block names.
    fn passed(&mut self, block: usize, objects: &mut Vec<u64>) -> Result<(), BlocksError>;
    /// The last part of a group has been made. Adds the objects that only this group might still have named.
    fn group_passed(&mut self, group: u64, objects: &mut Vec<u64>);
    /// Receives the next part.
    fn take(&mut self, parts: &mut Parts<'_, 'a>, next: Next) -> Result<(), BlocksError>;
}

/// A part when it is its turn.
#[derive(Debug)]
pub struct Next {
    pub part: Part,
    /// The number of its group; `None` for what follows all events.
    pub group: Option<u64>,
    /// The places of the objects that are older than it, as [`Taker::places`] tells them.
    pub places: Vec<u32>,
    /// Objects that nothing after the part may name, as [`Taker::passed`] and [`Taker::group_passed`] tell them.
    pub passed: Vec<u64>,
}

/// All parts of a group; `None` if they depend on what was before.
type Walked = Option<VecDeque<Part>>;

/// Makes all parts of a group, assuming what is likely.
fn walk_ahead<'a>(
    trace: &'a Trace,
    hands: &mut Hands<'a>,
    group: Arc<Group>,
    bounds: &[Bound],
    mirrors: &[(Ticket, ClassIndex)],
) -> Walked {
    let mut walk = Walk::new(group, trace);
    let Hands { walker, fields, .. } = hands;
    let mut likely = Likely::new(trace, mirrors, fields);
    let mut parts: VecDeque<Part> = bounds.iter().map(|bound| walk.part(bound, walker, &mut likely)).collect();
    if likely.lacks_field || walk.is_lost() || !walk.is_done() {
        return None;
    }
    if parts.len() > 1 {
        let mut later: FxHashSet<u64> = FxHashSet::default();
        for part in parts.iter_mut().rev() {
            for named in &mut part.named {
                if later.contains(&named.key) {
                    named.flags |= Named::LATER;
                }
            }
            later.extend(part.named.iter().map(|named| named.key));
        }
    }
    Some(parts)
}

/// A group whose parts are being applied.
#[derive(Debug)]
enum Running {
    Ahead(Promise<Walked>),
    Parts(VecDeque<Part>),
    /// In order, part by part, with what the parts so far have named.
    Exact(Box<Walk>, FxHashSet<u64>),
}

/// The blocks of a trace in the order in which they were filled, and their numbers in it: by the index of their thread, and the number of
/// the piece.
#[derive(Debug, Default)]
pub struct AllBlocks<'a> {
    pub blocks: Vec<BlockOf<'a>>,
    pub numbers: FxHashMap<(usize, usize), usize>,
}

impl<'a> AllBlocks<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        let mut filled: Vec<(u64, (usize, usize), BlockOf<'_>)> = Vec::new();
        for (at, thread) in trace.threads.iter().enumerate() {
            let Some(events) = trace.file.thread(thread.index) else { continue };
            for piece in 0..events.len() {
                filled.push((trace.file.filled(events, piece), (at, piece), (events, piece)));
            }
        }
        filled.sort_unstable_by_key(|(filled, ..)| *filled);
        let numbers = filled.iter().enumerate().map(|(number, (_, piece, _))| (*piece, number)).collect();
        Self { blocks: filled.iter().map(|(.., block)| *block).collect(), numbers }
    }
}

/// How parts are made.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// The field of references that may be weak.
    pub referent: Option<FieldId>,
    /// Whether each part is walked through in order.
    pub in_order: bool,
    /// Number of threads; `None`: one for each core.
    pub threads: Option<usize>,
}

/// Calls `use_them` with the parts. Returns its result, and the methods that were entered.
pub fn with_parts<'a, T>(
    trace: &'a Trace,
    how: &How,
    use_them: impl FnOnce(Parts<'_, 'a>) -> Result<T, BlocksError>,
) -> Result<(T, FxHashSet<MethodId>), BlocksError> {
    trace.file.begin_events("reading events");
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = how.threads.unwrap_or(cores);
    let pool = Pool::<Hands<'_>>::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads)
            .map_while(|_| {
                let work = || {
                    let mut hands = Hands::new(trace, how.referent);
                    pool.work(&mut hands);
                    hands.walker.ran
                };
                spawn_scoped(scope, work).ok()
            })
            .collect();
        // Also if this thread panics, or returns an error: the others wait for jobs.
        let closing = Closing(&pool);
        let mut hands = Hands::new(trace, how.referent);
        let parts = Parts {
            trace,
            pool: &pool,
            hands: &mut hands,
            before: Before::new(trace),
            in_order: how.in_order,
            running: FxHashMap::default(),
            ahead: threads * 3 + MORE_AHEAD,
            blocks: 0,
            anomalies: Anomalies::default(),
            lost: Lost::known(&trace.file),
            cost: Cost::default(),
        };
        let result = use_them(parts)?;
        drop(closing);
        let mut ran = hands.walker.ran;
        for worker in workers {
            ran.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok((result, ran))
    })
}

/// What is known when all parts have been passed on.
#[derive(Debug)]
pub struct Done {
    anomalies: Anomalies,
    lost: Lost,
    extra_fields: Vec<ExtraField>,
    pub cost: Cost,
}

impl Done {
    /// The outcome, given the threads that have frames on their stacks, and how many.
    pub fn outcome(
        mut self,
        trace: &Trace,
        totals: Totals,
        frames_left: impl IntoIterator<Item = (u32, usize)>,
    ) -> Outcome {
        let mut cut_off = Vec::new();
        for (thread, frames) in frames_left {
            // A thread that calls `System.exit` has no end, nor have those that run at that time.
            if trace.thread(thread).is_some_and(|thread| thread.end.is_some()) {
                self.anomalies.frames_at_thread_end += frames as u64;
            }
            cut_off.push(CutOffThread { thread: ThreadId(thread), frames });
        }
        cut_off.sort_unstable_by_key(|stack| stack.thread);
        let Self { anomalies, lost, extra_fields, .. } = self;
        Outcome { totals, anomalies, lost, cut_off, extra_fields, ..Outcome::default() }
    }
}

/// A reading under way.
pub struct Parts<'r, 'a> {
    trace: &'a Trace,
    pub pool: &'r Pool<'a, Hands<'a>>,
    pub hands: &'r mut Hands<'a>,
    pub before: Before<'a>,
    in_order: bool,
    running: FxHashMap<u64, Running>,
    /// Number of groups that are walked through ahead, and of parts that are settled ahead.
    pub ahead: usize,
    /// Number of blocks whose parts have been passed on.
    pub blocks: u64,
    pub anomalies: Anomalies,
    lost: Lost,
    pub cost: Cost,
}

impl<'a> Parts<'_, 'a> {
    /// Passes all parts on, in order. `numbers` are those of [`AllBlocks`], `cuts` tickets at which a part ends.
    pub fn run(
        &mut self,
        taker: &mut impl Taker<'a>,
        numbers: FxHashMap<(usize, usize), usize>,
        cuts: VecDeque<Ticket>,
    ) -> Result<(), BlocksError> {
        let mut schedule = Schedule::new(self.trace, self.changes(), cuts, numbers);
        let mut order: VecDeque<PartOf> = VecDeque::new();
        let mut groups_ahead = 0;
        loop {
            while groups_ahead < self.ahead && order.len() < PARTS_AHEAD && !schedule.is_done() {
                // What is planned can be done meanwhile.
                if order.front().is_some_and(|part| self.may_begin(part, &schedule)) && schedule.waits() {
                    break;
                }
                let before = order.len();
                schedule.plan(self.pool, self.hands, &mut order)?;
                for part in order.range(before..).filter(|part| part.is_last) {
                    groups_ahead += 1;
                    self.dispatch(part.group, &schedule);
                }
            }
            let Some(part) = order.pop_front() else {
                if schedule.is_done() {
                    break;
                }
                continue;
            };
            groups_ahead -= usize::from(part.is_last);
            self.part(part, &mut schedule, taker)?;
        }
        self.cost.read_again = schedule.read_again;
        let mut rest = self.hands.walker.rest(&mut self.before);
        let places = taker.exact_places(&mut self.before, &mut rest);
        self.pass_on(taker, Next { part: rest, group: None, places, passed: Vec::new() })
    }

    fn pass_on(&mut self, taker: &mut impl Taker<'a>, next: Next) -> Result<(), BlocksError> {
        self.before.now = Ticket(next.part.ticket);
        self.anomalies.add(&next.part.anomalies);
        self.lost.add(&next.part.lost);
        taker.take(self, next)
    }

    /// What there is to say of the trace in the end.
    pub fn finish(self) -> Done {
        let Self { before, anomalies, lost, cost, .. } = self;
        Done { anomalies, lost, extra_fields: before.fields.into_extra(), cost }
    }

    /// What no event shows, in order.
    fn changes(&self) -> VecDeque<Unseen> {
        let mut changes: Vec<Unseen> = Vec::new();
        let mut latest = Ticket(0);
        for index in (0..self.trace.classes.len() as u32).map(ClassIndex) {
            let record = &self.trace.classes.get(index).record;
            // Mirrors become known in the order of their records.
            latest = latest.max(record.ticket);
            if !record.class.is_null() {
                changes.push(Unseen { ticket: latest, mirror: Some(index) });
            }
        }
        changes.extend(self.before.holds.iter().map(|&(ticket, ..)| Unseen { ticket, mirror: None }));
        changes.sort_unstable();
        changes.into()
    }

    /// Whether the part's group is planned to its end, or walked through in order already. Others would have to be now, if this part
    /// were the next one.
    fn may_begin(&self, part: &PartOf, schedule: &Schedule<'a>) -> bool {
        let is_whole = || schedule.planned.get(&part.group).is_some_and(|planned| planned.is_whole);
        self.running.contains_key(&part.group) || is_whole()
    }

    /// A group is planned to its end: has it walked through, if that needs nothing from before.
    fn dispatch(&mut self, number: u64, schedule: &Schedule<'a>) {
        let Some(planned) = schedule.planned.get(&number) else { return };
        if planned.is_exact || self.in_order || self.running.contains_key(&number) {
            return;
        }
        let (trace, group, bounds) = (self.trace, Arc::clone(&planned.group), planned.bounds.clone());
        let mirrors = planned.mirrors.clone();
        let walk = move |hands: &mut Hands<'a>| walk_ahead(trace, hands, group, &bounds, &mirrors);
        self.running.insert(number, Running::Ahead(self.pool.add(Urgency::Walk, walk)));
    }

    /// Handles the next part.
    fn part(&mut self, of: PartOf, schedule: &mut Schedule<'a>, taker: &mut impl Taker<'a>) -> Result<(), BlocksError> {
        let Some(planned) = schedule.planned.get(&of.group) else { return Ok(()) };
        let running = match self.running.remove(&of.group) {
            Some(Running::Ahead(promise)) => match self.pool.wait(&promise, self.hands) {
                Some(parts) => Running::Parts(parts),
                None => {
                    self.cost.again += 1;
                    self.cost.exact += 1;
                    Running::Exact(Box::new(Walk::new(Arc::clone(&planned.group), self.trace)), FxHashSet::default())
                }
            },
            Some(running) => running,
            None => {
                self.cost.exact += 1;
                Running::Exact(Box::new(Walk::new(Arc::clone(&planned.group), self.trace)), FxHashSet::default())
            }
        };
        let Some(bound) = planned.bounds.get(of.number) else { return Ok(()) };
        let (running, places) = match running {
            Running::Parts(mut parts) => {
                let places = parts.front_mut().and_then(|part| taker.places(&mut self.before, part));
                (Running::Parts(parts), places)
            }
            running => (running, None),
        };
        let running = match running {
            Running::Parts(parts) if places.is_none() => {
                self.cost.again += 1;
                self.cost.exact += 1;
                Running::Exact(self.walk_to(planned, parts.len()), FxHashSet::default())
            }
            running => running,
        };
        let mut named = Vec::new();
        let (mut part, running) = match running {
            Running::Parts(mut parts) => (parts.pop_front().unwrap_or_default(), Running::Parts(parts)),
            Running::Exact(mut walk, mut so_far) => {
                walk.go_on_in(&planned.group);
                let mut part = walk.part(bound, &mut self.hands.walker, &mut self.before);
                if walk.is_lost() {
                    return Err(BlocksError::Switch { thread: planned.group.thread });
                }
                if of.is_last {
                    named.extend(so_far.drain());
                } else {
                    // They may be named again in the rest of the group.
                    part.named.iter_mut().for_each(|named| named.flags |= Named::LATER);
                    so_far.extend(part.named.iter().map(|named| named.key));
                }
                (part, Running::Exact(walk, so_far))
            }
            Running::Ahead(_) => return Ok(()),
        };
        let places = places.unwrap_or_else(|| taker.exact_places(&mut self.before, &mut part));
        self.cost.parts += 1;
        let mut passed = named;
        if of.is_last {
            self.cost.groups += 1;
            if let Some(planned) = schedule.finish(of.group) {
                self.lost.add(&planned.lost);
                self.blocks += planned.blocks.len() as u64;
                for block in planned.blocks {
                    taker.passed(block, &mut passed)?;
                }
            }
            taker.group_passed(of.group, &mut passed);
        } else {
            self.running.insert(of.group, running);
        }
        self.pass_on(taker, Next { part, group: Some(of.group), places, passed })
    }

    /// Goes to the part of a group behind which this number of parts is left, counting it.
    fn walk_to(&mut self, planned: &Planned, left: usize) -> Box<Walk> {
        let mut walk = Box::new(Walk::new(Arc::clone(&planned.group), self.trace));
        let Hands { walker, fields, .. } = &mut *self.hands;
        let mut likely = Likely::new(self.trace, &planned.mirrors, fields);
        for bound in &planned.bounds[..planned.bounds.len().saturating_sub(left)] {
            walk.part(bound, walker, &mut likely);
        }
        walk
    }
}
