//! Method entries and exits, properly nested for each `JNIEnv`.
//!
//! Keeps the entries of a thread that were reported and whose exits were not. An exit of a method that is not among
//! them is dropped: the method was entered before events were enabled. When a method exits below the innermost one,
//! those above are gone (an unmounted virtual thread), and their exits are reported first. So whatever the VM omits,
//! the agent sees nested events.

use std::ffi::CStr;

use et_jvm::env::{Env, MethodId, Object};
use et_jvm::sync::lock;
use jni_sys::jmethodID;

use crate::abi::{Details, MethodCall, MethodEntry2, ObjectId, event};
use crate::classes;
use crate::deliver;
use crate::host::Host;
use crate::objects;
use crate::records::Record;
use crate::starts;

use std::sync::atomic::Ordering;

fn is_left_out(host: &Host, env: Env, thread: Object) -> bool {
    let left_out = !host.tells_virtual.load(Ordering::Relaxed) && starts::is_virtual(env, thread);
    if left_out {
        host.left_out.virtual_threads.fetch_add(1, Ordering::Relaxed);
    }
    left_out
}

/// The current thread enters a method.
pub fn entered(host: &Host, env: Env, thread: Object, id: jmethodID) {
    let record = starts::announce(host, env);
    if record.is_inside() || is_left_out(host, env, thread) {
        return;
    }
    let Some(method) = classes::tell_of_method(host, env, id) else { return };
    enter(host, env, record, id, || if method.is_static { 0 } else { receiver(host, env, 0) });
}

/// Object id of `this` in a frame; 0 if there is none.
pub fn receiver(host: &Host, env: Env, depth: usize) -> ObjectId {
    env.frame(4, |env| match host.jvmti.receiver(env, depth) {
        Ok(Some(receiver)) => objects::define(host, env, receiver),
        _ => 0,
    })
}

/// Reports an entry, in a thread that is not inside the agent, of a method whose class was reported.
pub fn enter(host: &Host, env: Env, record: &Record, id: jmethodID, receiver: impl FnOnce() -> ObjectId) {
    lock(&record.methods).push(id as usize);
    if host.wants(event::METHOD_ENTRY2) {
        let obj_id = receiver();
        let method_entry2 = MethodEntry2 { method_id: id, obj_id };
        deliver::tell(env.raw(), event::METHOD_ENTRY2, Details { method_entry2 });
    }
    deliver::tell(env.raw(), event::METHOD_ENTRY, Details { method: MethodCall { method_id: id } });
}

/// The current thread leaves a method.
pub fn left(host: &Host, env: Env, thread: Object, id: jmethodID) {
    let record = starts::announce(host, env);
    if record.is_inside() || is_left_out(host, env, thread) {
        return;
    }
    leave(env, record, id);
}

/// Whether a method returns an object or an array.
pub fn returns_object(host: &Host, method: MethodId) -> bool {
    let is_object = |signature: &CStr| {
        let mut behind = signature.to_bytes().rsplitn(2, |byte| *byte == b')');
        behind.next().is_some_and(|returned| matches!(returned.first(), Some(b'L' | b'[')))
    };
    match classes::known_method(method.0) {
        Some(known) => is_object(&known.signature),
        None => host.jvmti.method_name_c(method).is_ok_and(|(_, signature)| is_object(&signature)),
    }
}

/// Reports an exit, in a thread that is not inside the agent.
pub fn leave(env: Env, record: &Record, id: jmethodID) {
    let gone = {
        let mut methods = lock(&record.methods);
        match exits(&methods, id as usize) {
            Some(kept) => methods.split_off(kept),
            None => Vec::new(),
        }
    };
    for id in gone.into_iter().rev() {
        let method = MethodCall { method_id: id as jmethodID };
        deliver::tell(env.raw(), event::METHOD_EXIT, Details { method });
    }
}

/// Number of methods that stay on a stack when that one exits; `None` if it is not on it.
fn exits(methods: &[usize], id: usize) -> Option<usize> {
    methods.iter().rposition(|there| *there == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_take_with_them_what_is_above() {
        assert_eq!(exits(&[1, 2, 3], 3), Some(2));
        assert_eq!(exits(&[1, 2, 3, 2, 4], 2), Some(3));
        assert_eq!(exits(&[1, 2], 9), None);
        assert_eq!(exits(&[], 1), None);
    }
}
