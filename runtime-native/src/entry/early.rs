//! What is there before the VM is up: classes may be made at run time by then, as the module system does when it is given options such as
//! `--add-opens`. They get their hooks as later ones do; what the trace is to say of them waits for it.
//!
//! Later it would be too late: the VM does not let hidden classes be redefined, and the objects of lambdas live as long as who has them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use et_format::event::ObjectHash;
use et_jvm::env::{Env, Global, Object};
use et_jvm::sync::lock;
use et_names::{ClassId, DynamicIds};
use et_rewriter::filter::Filter;

use crate::classes::dynamic::Dynamic;
use crate::output::queue::Queue;
use crate::proxy;

/// For natives of HeapProxyClasses, to which nobody can give anything.
static EARLY: OnceLock<Early> = OnceLock::new();

/// The parts of a run that are there from the agent's start.
#[derive(Debug)]
pub struct Early {
    /// What is to be written.
    pub queue: Queue,
    /// Static ids that are given out as the program runs.
    pub ids: DynamicIds,
    /// Which classes made at run time get hooks; none if none do.
    filter: Option<Filter>,
    dynamic: OnceLock<Dynamic>,
    /// Classes that have hooks already, whose mirrors have no ids yet.
    defined: Mutex<Vec<(Global, ClassId)>>,
    is_over: AtomicBool,
}

/// These parts, once the agent has read its options.
pub fn get() -> Option<&'static Early> {
    EARLY.get()
}

/// Makes them, once. `filter` says which classes made at run time get hooks; none for none.
pub fn install(filter: Option<Filter>) -> &'static Early {
    EARLY.get_or_init(|| Early {
        queue: Queue::default(),
        ids: DynamicIds::default(),
        filter,
        dynamic: OnceLock::new(),
        defined: Mutex::default(),
        is_over: AtomicBool::new(false),
    })
}

impl Early {
    /// The rewriter of the run; none if there is to be none, or the JDK has no hooks.
    pub fn begin(&self, env: Env) -> Option<&Dynamic> {
        let filter = self.filter.as_ref().filter(|_| !self.is_over.load(Ordering::Acquire))?;
        if self.dynamic.get().is_none() {
            let events = env.frame(4, proxy::jdk_events)?;
            // No lock while the VM was asked: if two threads did, they have heard the same.
            let _ = self.dynamic.set(Dynamic::new(events, filter.clone()));
        }
        self.dynamic.get()
    }

    /// The rewriter, if it is needed already.
    pub fn dynamic(&self) -> Option<&Dynamic> {
        self.dynamic.get().filter(|_| !self.is_over.load(Ordering::Acquire))
    }

    /// A class is defined, with hooks.
    pub fn defined(&self, env: Env, class: Object, id: ClassId) {
        if let Some(class) = env.global(class) {
            lock(&self.defined).push((class, id));
        }
    }

    /// Puts into the trace what came of classes until now. `id` tells, or gives, the id of a mirror.
    pub fn publish(&self, env: Env, id: impl Fn(Object) -> u32) {
        let defined = std::mem::take(&mut *lock(&self.defined));
        for (class, class_id) in defined {
            if let Some(dynamic) = self.dynamic.get() {
                dynamic.defined(ObjectHash(id(class.get())), class_id, &self.queue);
            }
            env.delete_global(class);
        }
    }

    /// There will be no trace.
    pub fn give_up(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}
