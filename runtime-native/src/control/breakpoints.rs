//! Breakpoints at the methods that `start` and `stop` name.

use std::sync::{Mutex, PoisonError};

use super::{MethodName, Trigger};
use crate::jvm::env::{Env, Object};
use crate::jvm::jvmti::{CLASSES, EventKind, JvmtiError, MethodId};
use crate::tracer::Tracer;

/// Breakpoints at the start of methods.
#[derive(Debug)]
pub struct Breakpoints {
    wanted: Vec<MethodName>,
    set: Mutex<Vec<(MethodId, MethodName)>>,
}

impl Breakpoints {
    pub fn new<'a>(triggers: impl Iterator<Item = &'a Trigger>) -> Self {
        let mut wanted: Vec<MethodName> = triggers
            .filter_map(|trigger| match trigger {
                Trigger::Method(name) => Some(name.clone()),
                _ => None,
            })
            .collect();
        wanted.dedup();
        Self { wanted, set: Mutex::default() }
    }

    /// From now on they are noticed, in classes that are there and in those that come.
    pub fn open(&self, tracer: &Tracer, env: Env) -> Result<(), JvmtiError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let jvmti = tracer.jvmti;
        jvmti.set_event(EventKind::Breakpoint, true).and_then(|()| jvmti.set_event(EventKind::ClassPrepare, true))?;
        env.frame(CLASSES, |env| {
            for class in jvmti.loaded_classes(env).unwrap_or_default() {
                self.class_prepared(tracer, class);
            }
        });
        Ok(())
    }

    /// Sets those in this class.
    pub fn class_prepared(&self, tracer: &Tracer, class: Object) {
        if self.wanted.is_empty() {
            return;
        }
        let jvmti = tracer.jvmti;
        let Ok(signature) = jvmti.class_signature(class) else { return };
        for wanted in self.wanted.iter().filter(|wanted| wanted.class == signature) {
            // A class that is not prepared has none yet; its turn comes.
            for method in jvmti.methods(class).unwrap_or_default() {
                let is_wanted = jvmti.method_name(method).is_ok_and(|member| member.name == wanted.name);
                if is_wanted && jvmti.set_breakpoint(method).is_ok() {
                    self.lock().push((method, wanted.clone()));
                }
            }
        }
    }

    /// Which of those that are waited for this method is.
    pub fn name(&self, method: MethodId) -> Option<MethodName> {
        self.lock().iter().find(|(set, _)| *set == method).map(|(_, name)| name.clone())
    }

    /// Clears those of this name.
    pub fn forget(&self, tracer: &Tracer, name: &MethodName) {
        let mut cleared = Vec::new();
        self.lock().retain(|(method, set)| {
            if set == name {
                cleared.push(*method);
            }
            set != name
        });
        // Without the lock: see docs/inside/runtime.md, "Rules".
        for method in cleared {
            let _ = tracer.jvmti.clear_breakpoint(method);
        }
    }

    /// Nothing is noticed any more.
    pub fn close(&self, tracer: &Tracer) {
        for wanted in &self.wanted {
            self.forget(tracer, wanted);
        }
        if !self.wanted.is_empty() {
            let _ = tracer.jvmti.set_event(EventKind::Breakpoint, false);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(MethodId, MethodName)>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
