//! State before the VM is up: classes may already be created at run time then, as by the module system with options
//! such as `--add-opens`. They get hooks like later ones; their records wait for the trace.
//!
//! Hooks could not be added later: hidden classes cannot be redefined, and the objects of lambdas may live as long as
//! the program.

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

/// For natives of HeapProxyClasses, which get no pointer to it.
static EARLY: OnceLock<Early> = OnceLock::new();

/// The parts of a run that exist from the agent's start.
#[derive(Debug)]
pub struct Early {
    /// The queue of the trace.
    pub queue: Queue,
    /// Ids for methods, sites and fields of classes created at run time.
    pub ids: DynamicIds,
    /// The classes created at run time that get hooks; `None` if none do.
    filter: Option<Filter>,
    dynamic: OnceLock<Dynamic>,
    /// Classes with hooks whose mirrors have no ids yet.
    defined: Mutex<Vec<(Global, ClassId)>>,
    is_over: AtomicBool,
}

/// The early state, once the agent has read its options.
pub fn get() -> Option<&'static Early> {
    EARLY.get()
}

/// Creates the early state, once. `filter` selects the classes created at run time that get hooks; `None` for none.
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
    /// The rewriter of the run; `None` with `dynamic=off`, or if the JDK has no hooks.
    pub fn begin(&self, env: Env) -> Option<&Dynamic> {
        let filter = self.filter.as_ref().filter(|_| !self.is_over.load(Ordering::Acquire))?;
        if self.dynamic.get().is_none() {
            let events = env.frame(4, proxy::jdk_events)?;
            // No lock is held while the VM is called: two threads get the same result.
            let _ = self.dynamic.set(Dynamic::new(events, filter.clone()));
        }
        self.dynamic.get()
    }

    /// The rewriter, if it has been needed so far.
    pub fn dynamic(&self) -> Option<&Dynamic> {
        self.dynamic.get().filter(|_| !self.is_over.load(Ordering::Acquire))
    }

    /// Keeps a class that was defined with hooks until [`publish`](Self::publish).
    pub fn defined(&self, env: Env, class: Object, id: ClassId) {
        if let Some(class) = env.global(class) {
            lock(&self.defined).push((class, id));
        }
    }

    /// Queues the records of classes defined until now. `id` returns the id of a mirror, creating one if needed.
    pub fn publish(&self, env: Env, id: impl Fn(Object) -> u32) {
        let defined = std::mem::take(&mut *lock(&self.defined));
        for (class, class_id) in defined {
            if let Some(dynamic) = self.dynamic.get() {
                dynamic.defined(ObjectHash(id(class.get())), class_id, &self.queue);
            }
            env.delete_global(class);
        }
    }

    /// There will be no trace: no further class gets hooks.
    pub fn give_up(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}
