//! Goes through all parts of a trace in order, which others have walked through ahead.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

use et_format::event::{ObjectHash, Ticket};
use et_names::{FieldId, FieldRefId, MethodId};
use et_system::threads::spawn_scoped;
use rustc_hash::{FxHashMap, FxHashSet};

use super::literals::{BlockOf, Literals};
use super::oracle::{Before, Likely, Oracle};
use super::pool::{Pool, Promise, Urgency};
use super::scan::Scanner;
use super::schedule::{PartOf, Planned, Schedule, Unseen};
use super::usage;
use super::walk::{Bound, Group, Named, Part, Walk, Walker};
use super::{BlocksError, Cost};
use crate::classes::ClassIndex;
use crate::lifetimes::Vm;
use crate::record::{Alloc, ObjectId, Slot, ThreadId};
use crate::resolve::allocs::Allocs;
use crate::resolve::{Anomalies, CutOffThread, Lost, each_initial_reference};
use crate::trace::Trace;

/// Number of groups that are walked through ahead, on top of some for each thread: what the others do while this one looks for dead
/// objects.
const MORE_AHEAD: usize = 16;
/// Maximum number of parts planned ahead.
pub(super) const PARTS_AHEAD: usize = 4096;

/// What a thread of the pool works with.
#[derive(Debug)]
pub struct Hands<'a> {
    pub scanner: Scanner<'a>,
    walker: Walker<'a>,
    fields: FxHashMap<FieldRefId, FieldId>,
    pub about_usage: usage::Known<'a>,
}

impl<'a> Hands<'a> {
    pub fn new(trace: &'a Trace, referent: Option<FieldId>) -> Self {
        Self {
            scanner: Scanner::new(&trace.names, &trace.classes),
            walker: Walker::new(trace, referent),
            fields: FxHashMap::default(),
            about_usage: usage::Known::of(trace),
        }
    }
}

/// All parts of a group; `None` if they depend on what was before.
type Walked = Option<VecDeque<Part>>;

/// Makes all parts of a group, assuming what is likely.
fn walk_ahead<'a, M: Mode<'a>>(
    trace: &'a Trace,
    hands: &mut Hands<'a>,
    group: Arc<Group>,
    bounds: &[Bound],
    mirrors: &[(Ticket, ClassIndex)],
) -> Walked {
    let mut walk = Walk::new(group, trace);
    let Hands { walker, fields, .. } = hands;
    let mut likely = Likely::new(trace, mirrors, fields);
    let mut parts: VecDeque<Part> =
        bounds.iter().map(|bound| walk_part::<M, _>(&mut walk, bound, walker, &mut likely)).collect();
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
        if M::TELLS {
            let mut earlier: FxHashSet<u64> = FxHashSet::default();
            for part in &mut parts {
                note_earlier(part, &earlier);
                earlier.extend(part.named.iter().map(|named| named.key));
            }
        }
    }
    Some(parts)
}

/// Notes which objects earlier parts of the group have named.
fn note_earlier(part: &mut Part, earlier: &FxHashSet<u64>) {
    for named in &mut part.named {
        if earlier.contains(&named.key) {
            named.flags |= Named::FORESEEN;
        }
    }
}

/// Makes the next part of a group, with its records if the mode wants them.
fn walk_part<'a, M: Mode<'a>, O: Oracle>(
    walk: &mut Walk,
    until: &Bound,
    walker: &mut Walker<'a>,
    oracle: &mut O,
) -> Part {
    match M::TELLS {
        true => walk.part::<O, true>(until, walker, oracle),
        false => walk.part::<O, false>(until, walker, oracle),
    }
}

/// A group whose parts are being applied.
#[derive(Debug)]
enum Running {
    Ahead(Promise<Walked>),
    Parts(VecDeque<Part>),
    /// In order, part by part, with what the parts so far have named.
    Exact(Box<Walk>, FxHashSet<u64>),
}
/// How to read, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Whether only events tell which objects are named again.
    pub by_events: bool,
    /// Whether each part is walked through in order.
    pub in_order: bool,
    /// Number of threads; `None`: one for each core.
    pub threads: Option<usize>,
    /// At how many new objects dead ones are looked for.
    pub most_rows: Option<usize>,
    /// Whether a glimpse is taken after each part.
    pub glimpses: bool,
}
/// What is made of the parts.
pub(super) trait Mode<'a>: Sized {
    /// Whether parts have their records.
    const TELLS: bool;
    /// What the older objects of a part are.
    type Found;

    /// What existed when tracing began.
    fn begin(driver: &mut Driver<'_, 'a, Self>) -> Result<(), BlocksError>;
    /// Finds the objects of a part that are older than it. `None` if they were not known, or known, as was assumed.
    fn identify(driver: &mut Driver<'_, 'a, Self>, part: &mut Part) -> Option<Self::Found>;
    /// The same of a part that was walked through in order.
    fn identify_exact(driver: &mut Driver<'_, 'a, Self>, part: &mut Part) -> Self::Found;
    /// No later block names the hash.
    fn passed(&mut self, hash: u32);
    /// Handles the next part, behind which no block names the objects `passed`.
    fn commit(
        driver: &mut Driver<'_, 'a, Self>,
        part: Part,
        found: Self::Found,
        passed: Vec<u64>,
    ) -> Result<(), BlocksError>;
    /// Goes on with what others have made of the parts by now; with `all` of them.
    fn advance(driver: &mut Driver<'_, 'a, Self>, all: bool) -> Result<(), BlocksError>;
    /// All parts have been handled.
    fn end(driver: &mut Driver<'_, 'a, Self>) -> Result<(), BlocksError>;
}

/// Dismisses the threads of a pool.
pub(super) struct Closing<'p, 'env, H>(pub &'p Pool<'env, H>);

impl<H> Drop for Closing<'_, '_, H> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A reading under way.
pub(super) struct Driver<'r, 'a, M> {
    pub trace: &'a Trace,
    pub pool: &'r Pool<'a, Hands<'a>>,
    pub hands: &'r mut Hands<'a>,
    pub mode: M,
    pub literals: Literals,
    /// Whether `literals` knows anything.
    looks_ahead: bool,
    in_order: bool,
    pub before: Before<'a>,
    running: FxHashMap<u64, Running>,
    /// Number of blocks whose parts have been committed.
    pub blocks: u64,
    pub anomalies: Anomalies,
    pub lost: Lost,
    pub cost: Cost,
    /// Number of groups that are walked through ahead, and of parts that may be on their way behind.
    pub ahead: usize,
}

/// What remains of a reading.
pub(super) struct Driven<'a, M> {
    pub mode: M,
    pub before: Before<'a>,
    pub anomalies: Anomalies,
    pub lost: Lost,
    pub cost: Cost,
    /// Methods that were entered.
    pub ran: FxHashSet<MethodId>,
}

/// Reads a trace, on all cores.
///
/// `looks_ahead` tells whether it is found out in advance which objects are named again, and `cuts` are tickets before whose events
/// parts end. `mode` is made with the number of blocks.
pub(super) fn drive<'a, M: Mode<'a>>(
    trace: &'a Trace,
    looks_ahead: bool,
    cuts: VecDeque<Ticket>,
    options: &Options,
    referent: Option<FieldId>,
    mode: impl FnOnce(u64) -> M,
) -> Result<Driven<'a, M>, BlocksError> {
    let mut filled: Vec<(u64, (usize, usize), BlockOf<'_>)> = Vec::new();
    for (at, thread) in trace.threads.iter().enumerate() {
        let Some(events) = trace.file.thread(thread.index) else { continue };
        for piece in 0..events.len() {
            filled.push((trace.file.filled(events, piece), (at, piece), (events, piece)));
        }
    }
    filled.sort_unstable_by_key(|(filled, ..)| *filled);
    let numbers = filled.iter().enumerate().map(|(number, (_, piece, _))| (*piece, number)).collect();
    let blocks: Vec<BlockOf<'_>> = filled.iter().map(|(.., block)| *block).collect();
    let literals = match looks_ahead {
        true => {
            trace.file.begin_events("finding last uses");
            Literals::find(&trace.file, &blocks, options.by_events)?
        }
        false => Literals::find(&trace.file, &[], false)?,
    };
    trace.file.begin_events("reading events");
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = options.threads.unwrap_or(cores);
    let pool = Pool::<Hands<'_>>::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads)
            .map_while(|_| {
                let work = || {
                    let mut hands = Hands::new(trace, referent);
                    pool.work(&mut hands);
                    hands.walker.ran
                };
                spawn_scoped(scope, work).ok()
            })
            .collect();
        // Also if this thread panics, or returns an error: the others wait for jobs.
        let closing = Closing(&pool);
        let mut hands = Hands::new(trace, referent);
        let mut driver = Driver {
            trace,
            pool: &pool,
            hands: &mut hands,
            mode: mode(blocks.len() as u64),
            literals,
            looks_ahead,
            in_order: options.in_order,
            before: Before::new(trace),
            running: FxHashMap::default(),
            blocks: 0,
            anomalies: Anomalies::default(),
            lost: Lost::known(&trace.file),
            cost: Cost::default(),
            ahead: threads * 3 + MORE_AHEAD,
        };
        driver.run(numbers, cuts)?;
        let Driver { mode, anomalies, lost, before, cost, .. } = driver;
        drop(closing);
        let mut ran = hands.walker.ran;
        for worker in workers {
            ran.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok(Driven { mode, before, anomalies, lost, cost, ran })
    })
}

/// The threads whose stacks were not empty at the end, given with their numbers of frames.
pub(super) fn cut_off(
    trace: &Trace,
    frames_left: impl IntoIterator<Item = (u32, usize)>,
    anomalies: &mut Anomalies,
) -> Vec<CutOffThread> {
    let mut cut_off = Vec::new();
    for (thread, frames) in frames_left {
        // A thread that calls `System.exit` has no end, nor have those that run at that time.
        if trace.thread(thread).is_some_and(|thread| thread.end.is_some()) {
            anomalies.frames_at_thread_end += frames as u64;
        }
        cut_off.push(CutOffThread { thread: ThreadId(thread), frames });
    }
    cut_off.sort_unstable_by_key(|stack| stack.thread);
    cut_off
}

impl<'a, M: Mode<'a>> Driver<'_, 'a, M> {
    fn run(&mut self, numbers: FxHashMap<(usize, usize), usize>, cuts: VecDeque<Ticket>) -> Result<(), BlocksError> {
        M::begin(self)?;
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
            self.part(part, &mut schedule)?;
            M::advance(self, false)?;
        }
        self.cost.read_again = schedule.read_again;
        let mut rest = self.hands.walker.rest(&mut self.before, M::TELLS);
        let found = M::identify_exact(self, &mut rest);
        M::commit(self, rest, found, Vec::new())?;
        M::advance(self, true)?;
        M::end(self)
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
        let walk = move |hands: &mut Hands<'a>| walk_ahead::<M>(trace, hands, group, &bounds, &mirrors);
        self.running.insert(number, Running::Ahead(self.pool.add(Urgency::Walk, walk)));
    }

    /// Handles the next part.
    fn part(&mut self, of: PartOf, schedule: &mut Schedule<'a>) -> Result<(), BlocksError> {
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
        let (running, found) = match running {
            Running::Parts(mut parts) => {
                let found = parts.front_mut().and_then(|part| M::identify(self, part));
                (Running::Parts(parts), found)
            }
            running => (running, None),
        };
        let running = match running {
            Running::Parts(parts) if found.is_none() => {
                self.cost.again += 1;
                self.cost.exact += 1;
                let (walk, so_far) = self.walk_to(planned, parts.len());
                Running::Exact(walk, so_far)
            }
            running => running,
        };
        let mut named = Vec::new();
        let (mut part, running) = match running {
            Running::Parts(mut parts) => (parts.pop_front().unwrap_or_default(), Running::Parts(parts)),
            Running::Exact(mut walk, mut so_far) => {
                walk.go_on_in(&planned.group);
                let mut part = walk_part::<M, _>(&mut walk, bound, &mut self.hands.walker, &mut self.before);
                if walk.is_lost() {
                    return Err(BlocksError::Switch { thread: planned.group.thread });
                }
                note_earlier(&mut part, &so_far);
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
        let found = found.unwrap_or_else(|| M::identify_exact(self, &mut part));
        self.cost.parts += 1;
        let mut passed = named;
        if of.is_last {
            self.cost.groups += 1;
            if let Some(planned) = schedule.finish(of.group) {
                self.lost.add(&planned.lost);
                self.blocks += planned.blocks.len() as u64;
                if self.looks_ahead {
                    for block in planned.blocks {
                        for hash in self.literals.pass(block)? {
                            self.mode.passed(hash);
                            passed.push(hash.into());
                        }
                    }
                }
            }
        } else {
            self.running.insert(of.group, running);
        }
        M::commit(self, part, found, passed)
    }

    /// Goes to the part of a group behind which this number of parts is left, counting it. Returns also what the parts before it name.
    fn walk_to(&mut self, planned: &Planned, left: usize) -> (Box<Walk>, FxHashSet<u64>) {
        let mut walk = Box::new(Walk::new(Arc::clone(&planned.group), self.trace));
        let mut so_far = FxHashSet::default();
        let Hands { walker, fields, .. } = &mut *self.hands;
        let mut likely = Likely::new(self.trace, &planned.mirrors, fields);
        for bound in &planned.bounds[..planned.bounds.len().saturating_sub(left)] {
            let part = walk_part::<M, _>(&mut walk, bound, walker, &mut likely);
            so_far.extend(part.named.iter().map(|named| named.key));
        }
        (walk, so_far)
    }

    /// What existed when tracing began: `object` gets each object with its hash, `reference` what each slot held. Returns what the VM held,
    /// which has not been told.
    pub fn initial(
        &mut self,
        mut object: impl FnMut(&mut Self, ObjectHash, Alloc),
        mut reference: impl FnMut(&mut M, &Literals, (ObjectId, Slot, ObjectId)),
    ) -> Result<Vm<'a>, BlocksError> {
        let trace = self.trace;
        let mut vm = Vm::new(trace);
        self.before.holds = vm.changes.iter().copied().collect();
        for (_, hash, _) in &vm.changes {
            *self.before.held_later.entry(*hash).or_default() += 1;
        }
        for thread in trace.threads.iter().filter(|thread| thread.end.is_none()) {
            *self.before.held_later.entry(thread.object).or_default() += 1;
        }
        let allocs = Allocs::new(trace);
        trace.initial_objects(|initial| {
            let hash = initial.object;
            if hash.is_null() || self.before.ids.current(hash).is_some() {
                return;
            }
            let alloc = allocs.initial(initial, &mut self.anomalies);
            let alloc = Alloc { object: self.before.ids.allocate(hash).0, ..alloc };
            vm.saw(&alloc, true);
            object(self, hash, alloc);
        })?;
        let Self { mode, literals, anomalies, before: Before { ids, fields, .. }, .. } = self;
        each_initial_reference(
            trace,
            fields,
            |hash| ids.current(hash),
            |found| match found {
                Some(found) => reference(mode, literals, found),
                None => anomalies.bad_initial_references += 1,
            },
        )?;
        Ok(vm)
    }
}
