//! The state of a traced run, shared by all callbacks.

pub mod collections;
pub mod collector;
pub mod live_threads;
pub mod machine;
pub mod object_ids;
pub mod output;
pub mod run;
pub mod survival;
pub mod vm_calls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use et_format::StackRecord;
use et_format::progress::OVERFLOWS;
use et_jvm::env::{Env, Object};
use et_jvm::hotspot::HeapUse;
use et_jvm::listener::panic_text;
use et_jvm::sync::lock;

use crate::base::report::say;
use crate::classes::dynamic::Dynamic;
use crate::classes::{ClassTables, unloading};
use crate::output::queue::{Counters, Finish};
use crate::output::sink::SinkError;
use crate::output::writer::{self, Host};
use crate::stacks::Stacks;
use collections::Collections;
use live_threads::Threads;
use machine::Machine;
use object_ids::ObjectIds;
use output::Output;
use run::Run;
use survival::Survival;
use vm_calls::{Call, VmCalls};

/// After this time the process exits anyway: what else may hold the writer up cannot be detected here.
const PATIENCE_AT_EXIT: Duration = Duration::from_secs(10);

/// For tests: records the sizes of the tables keyed by class at the end.
const TABLES_VARIABLE: &str = "ET_TEST_TABLES";

/// The usual reason for the end of a trace.
pub const VM_DEATH: &str = "VMDeath";

/// For functions that get no argument of ours: the natives of HeapProxy, the functions in JNI's table, and exit
/// handlers. All others are passed the tracer.
static TRACER: OnceLock<Tracer> = OnceLock::new();

/// A traced run.
#[derive(Debug)]
pub struct Tracer {
    /// The identity of the run, and its clock.
    pub run: Run,
    /// The VM.
    pub machine: Machine,
    /// From chunks and records to the trace.
    pub output: Output,
    /// State by class.
    pub classes: ClassTables,
    /// Ids of objects.
    pub ids: ObjectIds,
    /// Threads of the trace.
    pub threads: Threads,
    /// Garbage collections.
    pub collections: Collections,
    /// Call stacks of allocations.
    pub stacks: Stacks,
    /// The VM, for the writer.
    pub vm_calls: VmCalls,
    /// Whether contention for monitors and waits are recorded (`monitors=on`).
    pub records_monitors: bool,
    ended: AtomicBool,
}

/// Runs the `body` of a function called from C; a panic in it ends tracing.
pub fn guarded<T>(env: Option<Env>, fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|cause| {
        panicked(env, panic_text(&*cause));
        fallback
    })
}

/// Our own code has panicked with this message: tracing ends, the program continues.
pub fn panicked(env: Option<Env>, why: &str) {
    say(format_args!("internal error, tracing stops here, the program runs on: {why}"));
    if let Some(tracer) = get() {
        // Otherwise the trace would look complete.
        tracer.output.queue.problem(format!("internal error, tracing stopped before the program ended: {why}"), 1);
        tracer.give_up(env);
    }
}

/// The tracer, once tracing has begun.
pub fn get() -> Option<&'static Tracer> {
    TRACER.get()
}

impl Tracer {
    /// The tracer at the beginning of a run.
    pub fn new(
        run: Run,
        machine: Machine,
        output: Output,
        classes: ClassTables,
        ids: ObjectIds,
        collections: Collections,
        records_monitors: bool,
    ) -> Self {
        let (threads, vm_calls, ended) = (Threads::default(), VmCalls::default(), AtomicBool::new(false));
        let stacks = Stacks::new(0);
        Self { run, machine, output, classes, ids, threads, collections, stacks, vm_calls, records_monitors, ended }
    }

    /// With these stacks, which have their limit.
    #[must_use]
    pub fn with_stacks(self, stacks: Stacks) -> Self {
        Self { stacks, ..self }
    }

    /// Makes it available through [`get`]. `None` if there is one already.
    pub fn install(self) -> Option<&'static Tracer> {
        TRACER.set(self).ok()?;
        get()
    }

    /// Whether the trace has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The object with this tag was freed. Called at a safepoint or on a thread of the VM: no JNI, no JVMTI.
    pub fn freed(&self, tag: i64) {
        match unloading::class_with(tag) {
            Some(class) => self.classes.forget(class),
            None => self.collections.freed(&self.output, tag),
        }
    }

    /// The id of an object; assigns one if it has none. Records nothing.
    pub fn id(&self, env: Env, object: Object) -> u32 {
        self.ids.get(&self.machine, &self.classes.records, env, object)
    }

    /// The id of an object; 0 if it has none, or if that cannot be determined.
    pub fn id_if_any(&self, env: Env, object: Object) -> u32 {
        self.ids.get_if_any(&self.machine, env, object)
    }

    /// Asks the collector about an object that the trace mentions.
    pub fn tag(&self, object: Object, id: u32) {
        self.collections.tag(self.machine.jvmti, object, id);
    }

    /// The body of the thread that calls the VM for the writer.
    pub fn call_vm(&self, env: Env) {
        guarded(Some(env), (), || self.vm_calls.serve(&self.machine, env));
        // Also after a panic: the writer waits for answers.
        self.vm_calls.close();
    }

    /// The body of the writer's thread.
    pub fn write(&'static self) {
        let Self { run, machine, output, .. } = self;
        guarded(machine.vm.env(), (), || {
            let sink = lock(&output.sink).take();
            output.writer_runs.wait();
            if let Some(sink) = sink {
                let written =
                    writer::run(run.id, output.queue, &output.buffers, &output.packers, sink, self, run.start);
                *lock(&output.written) = Some(written);
            }
        });
        // Also after a panic: the end of the program waits for the writer.
        output.queue.writer_is_gone();
    }

    /// Switches the hooks off and writes all events. Returns when the trace is complete.
    pub fn end(&self, env: Env, reason: &'static str) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.machine.proxy.switch(env, false);
            self.finish(Some(env), reason, None);
            self.output.close(0);
        }
    }

    /// Writes all events when the VM shuts down; the end of the trace follows when the process exits. Until then other
    /// threads may run, and with the hooks on their events are counted.
    pub fn end_with_vm(&self, env: Env) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.output.patience.program_ends();
            self.machine.proxy.switch_rewriting(env, false);
            self.finish(Some(env), VM_DEATH, None);
        }
    }

    /// The process exits. If the VM has not reported its death, native code has called `exit`, or the launcher could
    /// not destroy the VM because it was out of memory; then the VM cannot be called.
    pub fn end_at_exit(&self) {
        self.vm_calls.close();
        if self.ended.swap(true, Ordering::AcqRel) {
            // The VM has stopped its threads for good.
            self.output.close(self.output.late());
        } else {
            self.output.patience.program_ends();
            self.finish(None, "exit", Some(PATIENCE_AT_EXIT));
            self.output.close(0);
        }
    }

    fn finish(&self, env: Option<Env>, reason: &'static str, patience: Option<Duration>) {
        let Output { queue, buffers, .. } = &self.output;
        self.output.hand_in_all(|| self.run.nanos());
        self.output.join_names();
        let overflows = env.map(|env| self.machine.proxy.overflows(env).into());
        let counters = self.count(overflows.unwrap_or_else(|| self.vm_calls.last_overflows()));
        if counters.overflows > 0 {
            queue.problem(OVERFLOWS, counters.overflows);
        }
        if let Some(counts) = self.stacks.counts() {
            queue.stacks(&[StackRecord::Counts(counts)]);
        }
        if self.ids.space.is_used_up() {
            queue.problem("object ids were used up, some are those of other objects", 1);
        }
        if std::env::var_os(TABLES_VARIABLE).is_some() {
            for (what, count) in self.classes.sizes() {
                queue.problem(format!("kept at the end: {what}"), count as u64);
            }
        }
        queue.finish(Finish { reason, end_ticket: buffers.last_ticket(), counters }, patience);
        // A thread that is in native code when the VM ends holds it up for 0.3 s.
        self.vm_calls.close();
    }

    fn count(&self, overflows: u64) -> Counters {
        Counters {
            lost_events: self.output.lost(),
            overflows,
            discarded_bytes: self.output.discarded(),
            dynamic: self.classes.dynamic.map(Dynamic::counts),
        }
    }

    /// The writer could not be started: nothing can be traced, and nothing must wait for it.
    pub fn abandon(&self, env: Env) {
        self.ended.store(true, Ordering::Release);
        self.vm_calls.close();
        self.give_up(Some(env));
        self.output.remove();
    }

    /// Our own code has failed: ends tracing without disturbing the program.
    pub fn give_up(&self, env: Option<Env>) {
        self.output.buffers.stop();
        self.collections.survival.iter().for_each(Survival::stop);
        if let Some(env) = env {
            self.machine.proxy.switch(env, false);
        }
    }
}

impl Host for Tracer {
    fn heap_use(&self) -> HeapUse {
        self.vm_calls.make(Call::HeapUse).unwrap_or_default().heap
    }

    fn counters(&self) -> Counters {
        _ = self.vm_calls.make(Call::Overflows);
        self.count(self.vm_calls.last_overflows())
    }

    fn failed(&self, error: &SinkError) {
        say(error);
        self.collections.survival.iter().for_each(Survival::stop);
        _ = self.vm_calls.make(Call::SwitchOff);
    }
}
