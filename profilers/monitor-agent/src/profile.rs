//! The heap profiler: logs allocations and deaths for the classes that the filter includes.
//!
//! Allocations come from JVMTI's sampling events with an interval of 0, which report all of them, including those by
//! the VM itself. Every allocation then takes the VM's slow path, so sampling starts only when a class is loaded that
//! the filter includes.

use std::sync::atomic::{AtomicBool, Ordering};

use et_jvm::env::{Env, MethodId, Object};
use et_jvm::jvmti::{EventKind, JvmtiError};
use et_jvm::profiling::RawFrame;
use et_trcxml::ObjectAlloc;

use crate::state::{Monitor, say};
use crate::xml::XmlLog;
use crate::{classes, ids, tags, threads, time};

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Looks at the classes that are there, and at each that comes.
pub fn start(monitor: &'static Monitor, env: Env) -> Result<(), JvmtiError> {
    if monitor.filter.excludes_everything() {
        return Ok(());
    }
    monitor.jvmti.tell_what_is_freed()?;
    monitor.jvmti.set_event(EventKind::ClassPrepare, true)?;
    env.frame(et_jvm::jvmti::CLASSES, |env| {
        for class in monitor.jvmti.loaded_classes(env).unwrap_or_default() {
            class_prepared(monitor, class);
            env.delete_local(class);
        }
    });
    Ok(())
}

/// A class is there. The first that is included starts the events.
pub fn class_prepared(monitor: &Monitor, class: Object) {
    if IS_ON.load(Ordering::Relaxed) || !monitor.filter.includes(&classes::name(monitor, class)) {
        return;
    }
    if IS_ON.swap(true, Ordering::Relaxed) {
        return;
    }
    let _ = monitor.jvmti.set_event(EventKind::ClassPrepare, false);
    if let Err(error) = monitor.jvmti.set_event(EventKind::SampledObjectAlloc, true) {
        say(&format!("allocations are not reported: {error}"));
    }
    // Threads have allocation buffers from before, in which allocations cause no events.
    let _ = monitor.jvmti.collect_garbage();
}

/// The current thread has made an object. One that is not included gets no tag.
pub fn allocated(monitor: &Monitor, env: Env, object: Object, class: Object, size: u64) {
    let Some(xml) = &monitor.xml else { return };
    let tag = classes::tag_of(monitor, env, class);
    if !tag.is_included {
        return;
    }
    env.frame(8, |env| {
        let thread = monitor.jvmti.current_thread(env).ok().flatten();
        let thread = thread.map(|thread| {
            let number = threads::id(env, thread);
            threads::define(monitor, env, thread, number);
            number
        });
        let thread = thread.filter(|number| *number != 0);
        let mut frames = [RawFrame { method: std::ptr::null_mut(), location: -1 }];
        let frame = match monitor.jvmti.current_stack(None, &mut frames) {
            Ok(1) => Some(frames[0]),
            _ => None,
        };
        let method = frame.map(|frame| method_of(monitor, xml, env, MethodId(frame.method)));
        let line = frame.and_then(|frame| monitor.jvmti.line_at(MethodId(frame.method), frame.location));
        let _one = tags::tagging_in_callback();
        // Java code may have got hold of it before, and entered its monitor.
        if ids::known(monitor, object) != 0 {
            return;
        }
        let id = tags::fresh();
        let is_array = monitor.jvmti.class_signature(class).is_ok_and(|name| name.starts_with('['));
        let (at, size, class) = (time::now(), Some(size), tag.id);
        xml.put(&ObjectAlloc { thread, at, object: id, size, is_array, class, method, line }.element());
        let _ = monitor.jvmti.set_tag(object, id as i64);
    });
    if xml.is_full()
        && let Some(why) = xml.flush()
    {
        say(&why);
    }
}

/// The number of a method, which is defined if it was not.
fn method_of(monitor: &Monitor, xml: &XmlLog, env: Env, method: MethodId) -> u64 {
    if let Some(id) = xml.method(method.0 as usize) {
        return id;
    }
    env.frame(4, |env| {
        let class = monitor.jvmti.declaring_class(env, method).ok().flatten();
        let class = class.map_or(0, |class| classes::tag_of(monitor, env, class).id);
        let member = monitor.jvmti.method_name(method);
        let (name, signature) = member.map_or_else(|_| Default::default(), |member| (member.name, member.descriptor));
        let lines = monitor.jvmti.lines(method).unwrap_or_default();
        let lines = lines.iter().map(|line| line.line);
        let lines = lines.clone().min().zip(lines.max());
        xml.define_method(method.0 as usize, class, &name, &signature, lines)
    })
}

/// An object that had a tag is gone. Inside a collection's pause, or soon after.
pub fn freed(monitor: &Monitor, tag: i64) {
    if let Some(xml) = &monitor.xml {
        xml.put(&et_trcxml::object_free(tags::of_tag(tag), time::now()));
    }
}

/// A collection starts, or is over. Inside its pause, in which nothing can be asked.
pub fn collection(monitor: &Monitor, is_over: bool) {
    if let Some(xml) = &monitor.xml {
        let at = time::now();
        xml.put(&if is_over { et_trcxml::gc_finish(at, None) } else { et_trcxml::gc_start(at) });
    }
}
