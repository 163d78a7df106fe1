//! Breakpoints at the methods named by `start` and `stop`.

use std::sync::Mutex;

use crate::options::{MethodName, Trigger};
use et_jvm::env::{Env, MethodId, Object};
use et_jvm::jvmti::{CLASSES, EventKind, Jvmti, JvmtiError};
use et_jvm::sync::lock;

/// Breakpoints at the start of methods.
#[derive(Debug)]
pub struct Breakpoints {
    wanted: Vec<MethodName>,
    set: Mutex<Vec<(MethodId, MethodName)>>,
    /// Search results for the methods to wait for.
    found: Mutex<Vec<(MethodName, Found)>>,
}

/// Search result for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Class,
    Method,
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
        Self { wanted, set: Mutex::default(), found: Mutex::default() }
    }

    /// Sets breakpoints in loaded classes, and from now on in classes being loaded.
    pub fn open(&self, jvmti: Jvmti, env: Env) -> Result<(), JvmtiError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        jvmti.set_event(EventKind::Breakpoint, true).and_then(|()| jvmti.set_event(EventKind::ClassPrepare, true))?;
        env.frame(CLASSES, |env| {
            for class in jvmti.loaded_classes(env).unwrap_or_default() {
                self.class_prepared(jvmti, class);
            }
        });
        Ok(())
    }

    /// Sets the breakpoints of a class that has been prepared.
    pub fn class_prepared(&self, jvmti: Jvmti, class: Object) {
        if self.wanted.is_empty() {
            return;
        }
        let Ok(signature) = jvmti.class_signature(class) else { return };
        for wanted in self.wanted.iter().filter(|wanted| wanted.class == signature) {
            // A class that is not prepared yet has no methods; it comes later.
            let methods = jvmti.methods(class).unwrap_or_default();
            if !methods.is_empty() {
                self.note(wanted, Found::Class);
            }
            for method in methods {
                let is_wanted = jvmti.method_name(method).is_ok_and(|member| member.name == wanted.name);
                if is_wanted && jvmti.set_breakpoint(method).is_ok() {
                    self.note(wanted, Found::Method);
                    lock(&self.set).push((method, wanted.clone()));
                }
            }
        }
    }

    fn note(&self, wanted: &MethodName, found: Found) {
        lock(&self.found).push((wanted.clone(), found));
    }

    /// Search result for a method that was not called, for a message.
    pub fn found(&self, wanted: &MethodName) -> String {
        let found = lock(&self.found);
        let most = found.iter().filter(|(name, _)| name == wanted).map(|(_, found)| *found).max();
        let class = wanted.class_name();
        match most {
            None => format!("no class {class} was loaded"),
            Some(Found::Class) => format!("class {class} has no method {}", wanted.name),
            Some(Found::Method) => "it was not called".to_owned(),
        }
    }

    /// The requested name that matches this method.
    pub fn name(&self, method: MethodId) -> Option<MethodName> {
        lock(&self.set).iter().find(|(set, _)| *set == method).map(|(_, name)| name.clone())
    }

    /// Clears the breakpoints of a method name.
    pub fn forget(&self, jvmti: Jvmti, name: &MethodName) {
        let mut cleared = Vec::new();
        lock(&self.set).retain(|(method, set)| {
            if set == name {
                cleared.push(*method);
            }
            set != name
        });
        // Without the lock: see docs/inside/runtime.md, "Rules".
        for method in cleared {
            let _ = jvmti.clear_breakpoint(method);
        }
    }

    /// Clears all breakpoints.
    pub fn close(&self, jvmti: Jvmti) {
        for wanted in &self.wanted {
            self.forget(jvmti, wanted);
        }
        if !self.wanted.is_empty() {
            let _ = jvmti.set_event(EventKind::Breakpoint, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_of_a_method_is_told() {
        let wanted: Trigger = "method:com.acme.Main.run".parse().unwrap();
        let Trigger::Method(name) = &wanted else { panic!("{wanted}") };
        let breakpoints = Breakpoints::new([&wanted].into_iter());
        assert_eq!(breakpoints.found(name), "no class com.acme.Main was loaded");
        breakpoints.note(name, Found::Class);
        assert_eq!(breakpoints.found(name), "class com.acme.Main has no method run");
        breakpoints.note(name, Found::Method);
        breakpoints.note(name, Found::Class);
        assert_eq!(breakpoints.found(name), "it was not called");
    }
}
