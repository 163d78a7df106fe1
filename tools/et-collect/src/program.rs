//! The program: executes the operations in memory that MMTk manages.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use et_simulate::mmtk::{CollectReport, Final, Lengths, MmtkOption, Plan};
use et_simulate::ops::{Amount, ClassKind, Op, OpsReader};
use mmtk::plan::BarrierSelector;
use mmtk::util::VMMutatorThread;
use mmtk::{AllocationSemantics, MMTK, Mutator, memory_manager};

use crate::binding::world::{MutatorPlace, Options, World};
use crate::binding::{self, Replay};
use crate::check;
use crate::error::CollectError;
use crate::object::{Object, Shape};
use crate::table::Table;

/// Maximum number of mutators, shared by the threads of the trace: each mutator reserves some heap memory.
const MOST_MUTATORS: usize = 64;

/// The kind of MMTk's write barrier that the plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barrier {
    None,
    /// Before the store, with the old target (SATB).
    Before,
    /// After the store, with the new target.
    After,
}

struct Program<'a> {
    ops: &'a mut OpsReader,
    world: &'static World,
    mmtk: &'static MMTK<Replay>,
    mutators: Vec<MutatorPlace>,
    current: usize,
    barrier: Barrier,
    /// Maximum size for normal allocation in bytes; larger objects go to the large-object space.
    largest: u64,
    is_array: Vec<bool>,
    /// Objects that died since the last operation of another kind. When that follows, no reference to them may exist.
    dead: Vec<u32>,
    allocated: Amount,
    grown: Amount,
}

/// Executes all operations and a final collection.
pub fn run(ops: &mut OpsReader, options: Options, told: &[MmtkOption]) -> Result<CollectReport, CollectError> {
    let tables = ops.tables();
    if options.heap > binding::MOST {
        return Err(CollectError::TooLargeHeap { heap: options.heap, most: binding::MOST });
    }
    let table = Table::new(tables.handles, tables.static_fields);
    let is_array = tables.classes.iter().map(|class| class.kind != ClassKind::Scalar).collect();
    let threads = tables.threads.len().clamp(1, MOST_MUTATORS);
    let totals = tables.totals;
    let mmtk = binding::start(&options, told)?;
    let world = World::set(options, mmtk, table);
    let mutators: Vec<MutatorPlace> = (1..=threads)
        .map(|number| memory_manager::bind_mutator(mmtk, VMMutatorThread(binding::thread(number))))
        .map(|mutator| MutatorPlace(Box::into_raw(mutator)))
        .collect();
    world.set_mutators(mutators.clone());
    memory_manager::initialize_collection(mmtk, binding::thread(1));
    let constraints = mmtk.get_plan().constraints();
    let barrier = match constraints.barrier {
        _ if options.forgets_stores => Barrier::None,
        BarrierSelector::NoBarrier => Barrier::None,
        // Its post-barrier is not implemented.
        BarrierSelector::SATBBarrier => Barrier::Before,
        _ => Barrier::After,
    };
    let largest = constraints.max_non_los_default_alloc_bytes as u64;
    let mut program = Program {
        ops,
        world,
        mmtk,
        mutators,
        current: 0,
        barrier,
        largest,
        is_array,
        dead: Vec::new(),
        allocated: Amount::default(),
        grown: Amount::default(),
    };
    let begun = Instant::now();
    let operations = program.play()?;
    let (seconds, waited) = (begun.elapsed().as_secs_f64(), world.door.waited().as_secs_f64());
    let (pauses, collections, sums) = {
        let log = world.log();
        (log.lengths.clone(), log.count, log.sums)
    };
    let at_end = program.last_collection()?;
    let log = world.log();
    Ok(CollectReport {
        plan: options.plan,
        heap: options.heap,
        heap_of_peak: options.heap as f64 / totals.peak.bytes.max(1) as f64,
        nursery: options.nursery,
        gc_threads: options.gc_threads,
        mmtk: told.to_vec(),
        operations,
        records: totals.records,
        seconds,
        mutator_seconds: seconds - waited,
        own_seconds: sums.own.as_secs_f64(),
        collections,
        pauses: Lengths::of(pauses),
        scanned: sums.scanned,
        copied: sums.copied,
        peak_used: sums.peak_used.max(memory_manager::used_bytes(mmtk) as u64),
        roots: sums.roots,
        rescued: sums.rescued,
        allocated: program.allocated,
        grown: program.grown,
        is_checked: options.is_checking,
        at_end,
        each: log.pauses.clone(),
    })
}

impl Program<'_> {
    fn play(&mut self) -> Result<u64, CollectError> {
        self.ops.rewind()?;
        let mut number = 0;
        while let Some(op) = self.ops.next_op()? {
            if self.world.door.is_closing() {
                self.world.door.wait();
            }
            if !self.dead.is_empty() && !matches!(op, Op::Death { .. } | Op::Thread { .. } | Op::Tick { .. }) {
                self.bury()?;
            }
            self.op(op, number)?;
            number += 1;
        }
        self.bury()?;
        Ok(number)
    }

    #[inline]
    fn op(&mut self, op: Op, number: u64) -> Result<(), CollectError> {
        match op {
            Op::Birth { handle, class, size, slots, .. } => self.birth(number, handle, class, size, slots),
            Op::Update { origin, slot, target } => {
                let object = self.living(origin)?;
                let place = object.slot(slot).ok_or_else(|| self.ops.damaged())?;
                let (old, new) = (place.get(), if target == 0 { 0 } else { self.living(target)?.compressed() });
                match self.barrier {
                    Barrier::None => place.set(new),
                    Barrier::Before => {
                        let held = Object::at(old).map(Object::reference);
                        let mutator = self.mutator();
                        memory_manager::object_reference_write_pre(mutator, object.reference(), place, held);
                        place.set(new);
                    }
                    Barrier::After => {
                        place.set(new);
                        let held = Object::at(new).map(Object::reference);
                        let mutator = self.mutator();
                        memory_manager::object_reference_write_post(mutator, object.reference(), place, held);
                    }
                }
                if let Some(mut shadow) = self.world.shadow() {
                    shadow.stored(origin, slot, target);
                }
                self.recount(old, target)
            }
            Op::UpdateStatic { field, target } => {
                let new = if target == 0 { 0 } else { self.living(target)?.compressed() };
                let place = self.world.table.statics.get(field as usize).ok_or_else(|| self.ops.damaged())?;
                let old = place.swap(new, Relaxed);
                if let Some(mut shadow) = self.world.shadow() {
                    shadow.stored_static(field, target);
                }
                self.recount(old, target)
            }
            Op::Death { handle } => {
                let object = self.living(handle)?;
                self.world.table.died(handle);
                self.dead.push(handle);
                for slot in object.slots() {
                    if let Some(held) = Object::at(slot.get()) {
                        self.drop_one(held)?;
                    }
                }
                if let Some(mut shadow) = self.world.shadow() {
                    shadow.died(handle);
                }
                Ok(())
            }
            Op::Touch { handle } => {
                std::hint::black_box(self.living(handle)?.generation());
                Ok(())
            }
            Op::Thread { thread } => {
                self.current = thread as usize % self.mutators.len();
                Ok(())
            }
            Op::Tick { .. } => Ok(()),
        }
    }

    fn birth(&mut self, number: u64, handle: u32, class: u32, size: u64, slots: u32) -> Result<(), CollectError> {
        let world = self.world;
        if world.table.address(handle) != 0 {
            return Err(self.ops.damaged().into());
        }
        let shape = Shape::new(size, slots, self.is_array[class as usize]).ok_or(CollectError::TooLarge { size })?;
        let semantics =
            if shape.bytes > self.largest { AllocationSemantics::Los } else { AllocationSemantics::Default };
        world.operation.store(number, Relaxed);
        world.wanted.store(shape.bytes, Relaxed);
        let bytes = shape.bytes as usize;
        let mutator = self.mutator();
        let address = memory_manager::alloc(mutator, bytes, 8, 0, semantics);
        let generation = world.table.next_generation(handle);
        #[allow(unsafe_code, reason = "the memory is MMTk's")]
        // SAFETY: MMTk has just allocated that many bytes at `address`.
        let object = unsafe { Object::make(address, handle, generation, shape) };
        let Some(object) = object else { world.too_small() };
        memory_manager::post_alloc(mutator, object.reference(), bytes, semantics);
        world.table.born(handle, generation, object);
        if let Some(mut shadow) = world.shadow() {
            shadow.born(handle, shape.bytes, slots);
        }
        self.allocated.add(shape.bytes);
        world.allocated.store(self.allocated.bytes, Relaxed);
        if shape.bytes > size {
            self.grown.add(shape.bytes - size);
        }
        Ok(())
    }

    /// Mutator of the thread that executes the current operations.
    fn mutator(&self) -> &'static mut Mutator<Replay> {
        let place = self.mutators[self.current].0;
        #[allow(unsafe_code, reason = "MMTk's threads have them, too")]
        // SAFETY: mutators are never freed, and MMTk uses them only while this thread waits.
        unsafe {
            &mut *place
        }
    }

    #[inline]
    fn living(&self, handle: u32) -> Result<Object, CollectError> {
        match self.world.table.object(handle) {
            Some(object) => Ok(object),
            None => Err(self.ops.damaged().into()),
        }
    }

    /// Updates reference counts for a slot that changes from address `old` to the handle `target`.
    #[inline]
    fn recount(&mut self, old: u32, target: u32) -> Result<(), CollectError> {
        if target != 0 {
            self.world.table.held(target);
        }
        if let Some(old) = Object::at(old) {
            self.drop_one(old)?;
        }
        Ok(())
    }

    /// Decrements the object's reference count. Valid operations leave no reference to a dead object, so a failure
    /// means that a collection lost it.
    #[inline]
    fn drop_one(&self, object: Object) -> Result<(), CollectError> {
        self.world.table.dropped(object.handle()).ok_or_else(|| {
            let (plan, operation) = (self.world.options.plan.name(), self.ops.operations());
            CollectError::Lost(format!("{plan}: operation {operation} finds a reference to nothing that is alive"))
        })
    }

    /// Checks that no reference to the dead objects is left: a collector would follow it into freed memory.
    fn bury(&mut self) -> Result<(), CollectError> {
        for handle in self.dead.drain(..) {
            if self.world.table.count(handle) != 0 {
                return Err(self.ops.damaged().into());
            }
        }
        Ok(())
    }

    /// After the last operation, a full collection must reach exactly the live objects of the trace.
    fn last_collection(&mut self) -> Result<Final, CollectError> {
        let plan = self.world.options.plan;
        let alive = check::living(&self.world.table).map_err(CollectError::Lost)?;
        let told = self.ops.tables().totals.at_end;
        let is_told = alive.objects == told.objects && (alive.bytes == told.bytes || self.grown.objects > 0);
        if !is_told {
            let said = format!(
                "{} objects of {} bytes are left, and the trace has {} of {} bytes alive at its end",
                alive.objects, alive.bytes, told.objects, told.bytes
            );
            return Err(CollectError::Lost(said));
        }
        if plan == Plan::NoGC {
            return Ok(Final { alive, reached: None });
        }
        let thread = VMMutatorThread(binding::thread(self.current + 1));
        let mut reached = Amount::default();
        // A concurrent plan may have to finish a collection in progress first.
        for _ in 0..3 {
            self.mmtk.handle_user_collection_request(thread, true, true);
            while self.world.door.is_closing() {
                self.world.door.wait();
            }
            let last = self.world.log().last;
            reached = last.map_or(Amount::default(), |last| last.scanned);
            if reached.objects >= alive.objects {
                break;
            }
        }
        // Plans that first mark and then move scan each object twice.
        let times = if plan.has_two_closures() { 2 } else { 1 };
        if (reached.objects, reached.bytes) != (times * alive.objects, times * alive.bytes) {
            return Err(CollectError::Final {
                plan,
                objects: reached.objects,
                bytes: reached.bytes,
                alive_objects: times * alive.objects,
                alive_bytes: times * alive.bytes,
            });
        }
        let found = check::living(&self.world.table).map_err(CollectError::Lost)?;
        if found != alive {
            return Err(CollectError::Lost(format!("{} objects are left of {}", found.objects, alive.objects)));
        }
        Ok(Final { alive, reached: Some(Amount { objects: reached.objects / times, bytes: reached.bytes / times }) })
    }
}
