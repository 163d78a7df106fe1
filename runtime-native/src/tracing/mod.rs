//! Handles JVMTI events once there is a tracer.

pub mod begin;
pub mod control;
pub mod slices;
pub mod survivors;

use et_jvm::env::{Env, MethodId, Object};
use et_jvm::listener::{ClassFile, Listener};

use crate::actions::define::define;
use crate::actions::redefined::redefined;
use crate::actions::{monitors, prepared, threads};
use crate::tracer::{self, Tracer};
use crate::tracing::control::Control;

/// A run that is traced, or will be.
#[derive(Debug)]
pub struct Tracing {
    tracer: &'static Tracer,
    /// When tracing begins and ends.
    pub control: Control,
}

impl Tracing {
    /// Never freed: events may come until the process ends.
    pub fn new(tracer: &'static Tracer, control: Control) -> &'static Self {
        Box::leak(Box::new(Self { tracer, control }))
    }
}

impl Listener for Tracing {
    fn vm_death(&self, env: Env) {
        self.control.end_with_vm(self.tracer, env);
    }

    fn thread_start(&self, env: Env, thread: Object) {
        threads::started(self.tracer, env, thread);
    }

    fn thread_end(&self, env: Env, thread: Object) {
        threads::ended(self.tracer, env, thread);
    }

    /// Only for redefined classes. New classes have their hooks already, or get them in `HeapProxyClasses`, which has
    /// more information and can fall back to the original.
    fn class_file(&self, env: Env, file: ClassFile<'_>) -> Option<Vec<u8>> {
        redefined(self.tracer, env, file.class?, file.bytes)
    }

    fn class_prepare(&self, env: Env, class: Object) {
        self.control.class_prepared(self.tracer, class);
        if self.control.is_tracing() {
            define(self.tracer, env, class, false);
            prepared::announce(self.tracer, env, class);
        }
    }

    fn breakpoint(&self, env: Env, thread: Object, method: MethodId) {
        self.control.method_called(self.tracer, env, thread, method);
    }

    fn monitor_contended_enter(&self, env: Env, thread: Object, object: Object) {
        if self.control.is_tracing() {
            monitors::contended_enter(self.tracer, env, thread, object);
        }
    }

    fn monitor_contended_entered(&self, env: Env, thread: Object, object: Object) {
        if self.control.is_tracing() {
            monitors::contended_entered(self.tracer, env, thread, object);
        }
    }

    fn monitor_wait(&self, env: Env, thread: Object, object: Object, timeout: i64) {
        if self.control.is_tracing() {
            monitors::wait(self.tracer, env, thread, object, timeout);
        }
    }

    fn monitor_waited(&self, env: Env, thread: Object, object: Object, is_timed_out: bool) {
        if self.control.is_tracing() {
            monitors::waited(self.tracer, env, thread, object, is_timed_out);
        }
    }

    fn garbage_collection_start(&self) {
        self.tracer.collections.start(&self.tracer.run, &self.tracer.output);
    }

    fn garbage_collection_finish(&self) {
        self.tracer.collections.finish(&self.tracer.run, &self.tracer.output);
    }

    fn object_free(&self, tag: i64) {
        self.tracer.freed(tag);
    }

    fn panicked(&self, env: Option<Env>, why: &str) {
        tracer::panicked(env, why);
    }
}
