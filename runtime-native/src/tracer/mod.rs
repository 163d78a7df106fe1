//! The state of a traced run, shared by all callbacks.

pub mod collector;
pub mod live_threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use et_format::event::Ticket;
use et_format::progress::{OVERFLOWS, RunId};
use et_format::{GcRecord, Nanos};
use et_jvm::sync::lock;

use crate::base::patience::Patience;
use crate::base::report::say;
use crate::buffers::{Buffers, CutChunk, FullChunk, NoChunk, ThreadIndex};
use crate::classes::dynamic::Dynamic;
use crate::classes::records::Classes;
use crate::classes::slots::{Kept, Slots};
use crate::ids::{IdSpace, Tags};
use crate::output::packers::Packers;
use crate::output::queue::{Counters, Finish, Queue};
use crate::output::sink::{Sink, SinkError};
use crate::proxy::{Locks, Proxy};
use crate::tracer::collector::Collector;
use et_jvm::env::{Env, Object, Vm};
use et_jvm::hotspot::HeapUse;
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::Jvmti;
use et_jvm::listener::panic_text;
use et_jvm::threads::CurrentThread;
use et_names::DynamicIds;

use crate::classes::unloading::{self, Unloading};
use crate::output::writer::{self, Host, Written};
use crate::tracer::live_threads::Threads;

/// Slots of the table of known ids, as many as HeapProxy counts on.
pub const KNOWN_SLOTS: usize = 1 << 16;

/// Then the process exits anyway. The writer may stand still with the VM, which nobody can tell from here.
const PATIENCE_AT_EXIT: Duration = Duration::from_secs(10);

/// Has the sizes of the tables by class told at the end, for tests of these.
const TABLES_VARIABLE: &str = "ET_TEST_TABLES";

/// What ends a trace as a rule.
pub const VM_DEATH: &str = "VMDeath";

/// For functions that get nothing from whoever calls them: the natives of HeapProxy, the functions in JNI's table, and what runs at the
/// process's exit. Everybody else is given the tracer.
static TRACER: OnceLock<Tracer> = OnceLock::new();

/// A traced run.
#[derive(Debug)]
pub struct Tracer {
    /// Which run this is.
    pub run: RunId,
    /// Which process.
    pub pid: u32,
    /// The machine.
    pub vm: Vm,
    /// Our environment.
    pub jvmti: Jvmti,
    /// Exported functions.
    pub hotspot: HotSpot,
    /// Which thread the current one is.
    pub current_thread: Option<CurrentThread>,
    /// The hooks.
    pub proxy: Proxy,
    /// Whether instance sizes can be asked for.
    pub sizes_known: bool,
    /// Which field lies where.
    pub slots: Slots,
    /// Where events go first.
    pub buffers: Buffers,
    /// What is to be written.
    pub queue: &'static Queue,
    /// Who writes events.
    pub threads: Threads,
    /// Which classes have their record.
    pub classes: Classes,
    /// Ids of objects that are ours to give out.
    pub ids: IdSpace,
    /// Where mark words hold ids, if hooks write them there.
    pub mark_shift: OnceLock<u32>,
    /// Where the hashes of locked objects are, once that is known.
    pub locks: OnceLock<Locks>,
    /// Where ids are, if not in identity hashes.
    pub tags: OnceLock<Tags>,
    /// Static ids that are given out as the program runs.
    pub dynamic_ids: &'static DynamicIds,
    /// The collection that is going on.
    gc: Mutex<Option<(Ticket, Nanos)>>,
    /// Rewrites classes made at run time; none if that is off.
    pub dynamic: Option<&'static Dynamic>,
    /// Contention for monitors is told of, and waits.
    pub tells_monitors: bool,
    /// Is asked which objects it freed; none if that is off.
    pub collector: Option<Collector>,
    /// Says which classes are unloaded; none if the VM does not.
    pub unloading: OnceLock<Unloading>,
    /// When the runtime began to work.
    pub start: Instant,
    /// For the writer.
    pub sink: Mutex<Option<Sink>>,
    /// Met by the writer's thread once it runs.
    pub writer_runs: Barrier,
    /// Looks for names tables.
    pub names: Mutex<Option<JoinHandle<()>>>,
    /// Ids that were announced, see HeapProxy.
    pub known: Box<[AtomicU32]>,
    /// With who reads the trace.
    pub patience: Arc<Patience>,
    /// Who packs what threads hand in.
    pub packers: Packers,
    /// Bytes of events that were thrown away, if that is wanted.
    discarded: Option<AtomicU64>,
    /// All but its end.
    pub written: Mutex<Option<Written<'static, Tracer>>>,
    /// What threads had when they were cut off.
    cut: Mutex<Vec<CutChunk>>,
    lost: AtomicU64,
    /// Events for which there was no buffer any more, at the end.
    late: AtomicU64,
    ended: AtomicBool,
}

/// The parts that a tracer starts with.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Parts {
    pub run: RunId,
    pub vm: Vm,
    pub jvmti: Jvmti,
    pub hotspot: HotSpot,
    pub current_thread: Option<CurrentThread>,
    pub proxy: Proxy,
    pub sizes_known: bool,
    pub slots: Slots,
    pub buffers: Buffers,
    pub sink: Sink,
    pub dynamic: Option<&'static Dynamic>,
    pub collector: Option<Collector>,
    pub tells_monitors: bool,
    pub ids: IdSpace,
    pub start: Instant,
    pub patience: Arc<Patience>,
    pub queue: &'static Queue,
    pub dynamic_ids: &'static DynamicIds,
    pub packers: Packers,
    pub discards: bool,
}

/// Runs `body`, which C has called; a panic in it ends tracing.
pub fn guarded<T>(env: Option<Env>, fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|cause| {
        panicked(env, panic_text(&*cause));
        fallback
    })
}

/// Our own code has panicked, in these words: tracing ends, the program runs on.
pub fn panicked(env: Option<Env>, why: &str) {
    say(format_args!("internal error, tracing stops here, the program runs on: {why}"));
    if let Some(tracer) = get() {
        // The trace will have an end, at which all seems well.
        tracer.queue.problem(format!("internal error, tracing stopped before the program ended: {why}"), 1);
        tracer.give_up(env);
    }
}

/// The tracer, once tracing has begun.
pub fn get() -> Option<&'static Tracer> {
    TRACER.get()
}

impl Tracer {
    /// Makes it known to the callbacks.
    pub fn install(parts: Parts) -> Option<&'static Tracer> {
        let tracer = Self {
            run: parts.run,
            pid: std::process::id(),
            vm: parts.vm,
            jvmti: parts.jvmti,
            hotspot: parts.hotspot,
            current_thread: parts.current_thread,
            proxy: parts.proxy,
            sizes_known: parts.sizes_known,
            slots: parts.slots,
            buffers: parts.buffers,
            queue: parts.queue,
            threads: Threads::default(),
            classes: Classes::default(),
            ids: parts.ids,
            mark_shift: OnceLock::new(),
            locks: OnceLock::new(),
            tags: OnceLock::new(),
            dynamic_ids: parts.dynamic_ids,
            gc: Mutex::new(None),
            dynamic: parts.dynamic,
            tells_monitors: parts.tells_monitors,
            collector: parts.collector,
            unloading: OnceLock::new(),
            start: parts.start,
            sink: Mutex::new(Some(parts.sink)),
            writer_runs: Barrier::new(2),
            names: Mutex::new(None),
            known: (0..KNOWN_SLOTS).map(|_| AtomicU32::new(0)).collect(),
            patience: parts.patience,
            packers: parts.packers,
            discarded: parts.discards.then(AtomicU64::default),
            written: Mutex::new(None),
            cut: Mutex::default(),
            lost: AtomicU64::new(0),
            late: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        };
        tracer.queue.keep_in(tracer.buffers.journal());
        TRACER.set(tracer).ok()?;
        get()
    }

    /// Whether the trace has its end.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// An event came behind the end.
    pub fn count_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// There was no buffer for an event.
    pub fn count_lost(&self) {
        if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            say("no buffer for a thread, its events are lost: too many threads, or no space beside the trace");
        }
    }

    /// Hands in the chunk that its thread has filled up to `at` until now; 0: none.
    pub fn hand_in(&self, at: usize, now: Nanos) {
        if at != 0 {
            let mut unread = None;
            self.buffers.hand_in(at, now, |chunk| match &self.discarded {
                None => self.queue.chunk(chunk),
                Some(_) => unread = Some(chunk),
            });
            // Not before, which would be under the lock of those who give chunks out.
            self.discard(unread);
        }
    }

    /// A free chunk for `thread`, as [`Buffers::take_or_help`] gives them.
    pub fn take(&self, thread: ThreadIndex, now: Nanos) -> Result<usize, NoChunk> {
        self.buffers.take_or_help(thread, now, || self.packers.help(self.queue, &self.buffers))
    }

    fn discard(&self, chunks: impl IntoIterator<Item = FullChunk>) {
        for chunk in chunks {
            if let Some(discarded) = &self.discarded {
                discarded.fetch_add(chunk.bytes() as u64, Ordering::Relaxed);
            }
            self.buffers.release(chunk);
        }
    }

    /// The world stands still for a collection. Called on a VM thread: no JNI, no JVMTI.
    pub fn gc_starts(&self) {
        let now = (self.buffers.next_ticket(), self.nanos());
        *lock(&self.gc) = Some(now);
        if let Some(collector) = &self.collector {
            collector.begins(self.queue, now.0);
        }
    }

    /// The collection is over. As above.
    pub fn gc_finishes(&self) {
        let started = lock(&self.gc).take();
        if let Some((start, Nanos(start_nanos))) = started {
            self.queue.gc(GcRecord {
                start,
                finish: self.buffers.next_ticket(),
                start_nanos,
                finish_nanos: self.nanos().0,
                heap_used: 0,
                heap_committed: 0,
            });
        }
    }

    /// The collector freed the object with that tag. Called on whatever thread of the VM's: as above.
    pub fn freed(&self, tag: i64) {
        if let Some(class) = unloading::class_with(tag) {
            self.class_is_gone(class);
        } else if let Some(collector) = &self.collector {
            collector.freed(self.queue, tag);
        }
    }

    fn class_is_gone(&self, id: u32) {
        // Its id is free once the classes do not have it, which must be last.
        self.slots.forget(id);
        self.classes.forget(id);
    }

    /// The id of an object, which gets one if it has none. It is not told of.
    pub fn id(&self, env: Env, object: Object) -> u32 {
        match self.tags.get() {
            Some(tags) => tags.give(&self.ids, env, object, |ids| self.classes.add_ids(ids)),
            None => self.hotspot.identity_hash(env, object),
        }
    }

    /// As above; 0 if it has none, as far as can be seen.
    pub fn id_if_any(&self, env: Env, object: Object) -> u32 {
        match self.tags.get() {
            Some(tags) => tags.of(object),
            None => self.proxy.peek_hash(env, object),
        }
    }

    /// Asks the collector about an object that the trace tells of.
    pub fn tag(&self, object: Object, id: u32) {
        if let Some(collector) = &self.collector {
            collector.tag(self.jvmti, object, id);
        }
    }

    /// Lets the collector say its last, if it is asked.
    pub fn ask_what_is_held(&self, env: Env) {
        if let Some(collector) = &self.collector
            && let Err(error) = collector.end(self.queue, self.jvmti, env)
        {
            self.queue.problem(format!("the collector did not say what it held at the end: {error}"), 1);
        }
    }

    /// The body of the writer's thread.
    pub fn write(&'static self) {
        guarded(self.vm.env(), (), || {
            let sink = lock(&self.sink).take();
            self.writer_runs.wait();
            if let Some(sink) = sink {
                let written = writer::run(self.run, self.queue, &self.buffers, &self.packers, sink, self, self.start);
                *lock(&self.written) = Some(written);
            }
        });
        // Also after a panic: the program's end waits for the writer's.
        self.queue.writer_is_gone();
    }

    /// The time.
    pub fn nanos(&self) -> Nanos {
        // 0 would mean that nobody has looked.
        Nanos((self.start.elapsed().as_nanos() as u64).max(1))
    }

    /// Stops the hooks and writes what there is. Returns when the trace is complete.
    pub fn end(&self, env: Env, reason: &'static str) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.proxy.switch(env, false);
            self.finish(Some(env), reason, None);
            self.close(0);
        }
    }

    /// Writes what there is when the VM goes down; the end follows when the process exits. Until then other threads may run, and with
    /// the hooks on what they do is counted.
    pub fn end_with_vm(&self, env: Env) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.patience.program_ends();
            self.proxy.switch_rewriting(env, false);
            self.finish(Some(env), VM_DEATH, None);
        }
    }

    /// The process exits. If the VM was not told, native code called `exit`, or the launcher could not destroy the VM for want
    /// of memory; it cannot be asked for anything then.
    pub fn end_at_exit(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            // The VM has stopped its threads for good.
            let cut = std::mem::take(&mut *lock(&self.cut));
            let late: u64 = cut.into_iter().map(|chunk| self.buffers.late_events(chunk)).sum();
            self.close(late + self.late.load(Ordering::Relaxed));
        } else {
            self.patience.program_ends();
            self.finish(None, "exit", Some(PATIENCE_AT_EXIT));
            self.close(0);
        }
    }

    /// Writes the end, once.
    fn close(&self, late: u64) {
        let written = lock(&self.written).take();
        if let Some(written) = written {
            written.close(late);
        }
    }

    fn finish(&self, env: Option<Env>, reason: &'static str, patience: Option<Duration>) {
        let chunks = self.buffers.hand_in_all(|| self.nanos());
        lock(&self.cut).extend(chunks.iter().filter_map(FullChunk::cut));
        match self.discarded {
            Some(_) => self.discard(chunks),
            None => chunks.into_iter().for_each(|chunk| self.queue.chunk(chunk)),
        }
        let names = lock(&self.names).take();
        if let Some(names) = names {
            let _ = names.join();
        }
        let counters = self.count(env);
        if counters.overflows > 0 {
            self.queue.problem(OVERFLOWS, counters.overflows);
        }
        if self.ids.is_used_up() {
            self.queue.problem("object ids were used up, some are those of other objects", 1);
        }
        if std::env::var_os(TABLES_VARIABLE).is_some() {
            let Kept { own, layouts } = self.slots.kept();
            for (what, count) in [("classes", self.classes.count()), ("fields", own), ("layouts", layouts)] {
                self.queue.problem(format!("kept at the end: {what}"), count as u64);
            }
        }
        self.queue.finish(Finish { reason, end_ticket: self.buffers.last_ticket(), counters }, patience);
    }

    fn count(&self, env: Option<Env>) -> Counters {
        Counters {
            lost_events: self.lost.load(Ordering::Relaxed),
            overflows: env.map_or(0, |env| self.proxy.overflows(env).into()),
            discarded_bytes: self.discarded.as_ref().map(|bytes| bytes.load(Ordering::Relaxed)),
            dynamic: self.dynamic.map(Dynamic::counts),
        }
    }

    /// There is no writer: nothing can be traced, and nobody must wait for it.
    pub fn abandon(&self, env: Env) {
        self.ended.store(true, Ordering::Release);
        self.give_up(Some(env));
        self.buffers.remove_file();
        if let Some(sink) = lock(&self.sink).take() {
            sink.discard();
        }
    }

    /// Something went wrong in our own code: the program must not notice.
    pub fn give_up(&self, env: Option<Env>) {
        self.buffers.stop();
        if let Some(env) = env {
            self.proxy.switch(env, false);
        }
    }
}

impl Host for Tracer {
    fn heap_use(&self) -> HeapUse {
        // Only the writer's thread asks, which the VM knows.
        if self.vm.env().is_some() { self.hotspot.heap_use() } else { HeapUse::default() }
    }

    fn counters(&self) -> Counters {
        self.count(self.vm.env())
    }

    fn failed(&self, error: &SinkError) {
        say(error);
        if let Some(env) = self.vm.env() {
            self.proxy.switch(env, false);
        }
    }
}
