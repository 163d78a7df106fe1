//! Answers to requests.

use et_ddm::message::Failure;
use et_ddm::ours::{
    ClassInfo, Histogram, HistogramRow, Instance, Instances, Memory, MemoryInfo, MonitorUsage, ObjectInfo, ThreadInfo,
};
use et_ddm::stack::{Frame, Stack};
use et_ddm::threads::{Layout, ThreadState, ThreadStatuses};
use et_ddm::{Message, Request};
use et_jvm::env::{Env, Object};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};
use jni_sys::jvalue;

use super::{failed, heap_info};
use crate::heap::share;
use crate::state::Monitor;
use crate::tags::{self, ClassTag};
use crate::{classes, ids, threads, time};

/// Maximum number of frames returned.
const DEPTH: usize = 1024;
/// Maximum number of threads listed for a monitor.
const MOST_THREADS: usize = 100_000;

/// The reply; none for an empty one.
pub fn answer(monitor: &Monitor, env: Env, request: &Request, is_trusted: bool) -> Option<Message> {
    let no_such = |what: &str| failed(Failure::NO_SUCH_ID, format!("there is no {what} with that id"));
    let vm = |error: JvmtiError| failed(Failure::FAILED, error.to_string());
    Some(match request {
        Request::ThreadStatesOnce => {
            let threads = threads::states(monitor, env, true);
            Message::ThreadStates(ThreadStatuses { layout: Layout::Android, threads })
        }
        Request::Stack { thread } => match threads::find(monitor, env, *thread) {
            Some(object) => stack(monitor, env, *thread, object).map_or_else(vm, Message::Stack),
            None => no_such("thread"),
        },
        Request::HeapInfo(when) => Message::HeapInfo(vec![heap_info(monitor, *when, !is_trusted)]),
        Request::CollectGarbage => match monitor.jvmti.collect_garbage() {
            Ok(()) => return None,
            Err(error) => vm(error),
        },
        Request::DumpHeap { path } => match dump(env, path) {
            Ok(()) => Message::HeapDumped(0),
            Err(why) => failed(Failure::FAILED, why),
        },
        Request::Memory => Message::Memory(memory(monitor)),
        Request::Histogram { rows } => histogram(monitor, env, *rows as usize).map_or_else(vm, Message::Histogram),
        Request::Instances { class, most } => match class_with(monitor, env, *class) {
            Some((class, tag)) => {
                instances(monitor, env, class, tag, *most as usize).map_or_else(vm, Message::Instances)
            }
            None => no_such("class"),
        },
        Request::Object(id) => match ids::find(monitor, env, *id) {
            Some(object) => Message::Object(object_info(monitor, env, *id, object)),
            None => no_such("object"),
        },
        Request::Class(id) => match class_with(monitor, env, *id) {
            Some((class, _)) => Message::Class(class_info(monitor, env, *id, class)),
            None => no_such("class"),
        },
        Request::Monitor(id) => match ids::find(monitor, env, *id) {
            Some(object) => usage(monitor, env, *id, object).map_or_else(vm, Message::Monitor),
            None => no_such("object"),
        },
        Request::Thread(id) => match threads::find(monitor, env, *id) {
            Some(thread) => thread_info(monitor, env, *id, thread).map_or_else(vm, Message::Thread),
            None => no_such("thread"),
        },
        _ => failed(Failure::UNSUPPORTED, "this agent cannot do that"),
    })
}

fn class_with<'a>(monitor: &Monitor, env: Env<'a>, id: u64) -> Option<(Object<'a>, ClassTag)> {
    let class = ids::find(monitor, env, id)?;
    let tag = monitor.jvmti.tag(class).ok().and_then(ClassTag::read)?;
    Some((class, tag))
}

fn stack(monitor: &Monitor, env: Env, id: u32, thread: Object) -> Result<Stack, JvmtiError> {
    let frames = monitor.jvmti.stack_trace(thread, DEPTH)?;
    let frame = |frame: et_jvm::jvmti::Frame| {
        let place = classes::place(monitor, env, frame.method, frame.location);
        Frame { class: place.class, method: place.method, file: place.file, line: place.line }
    };
    Ok(Stack { thread: id, frames: frames.into_iter().map(frame).collect() })
}

/// By the VM itself, as `jcmd GC.heap_dump` does; of living objects.
fn dump(env: Env, path: &str) -> Result<(), String> {
    // Its initialization loads the library that has the function.
    env.find_class(c"com/sun/management/internal/PlatformMBeanProviderImpl");
    let bean = env.find_class(c"com/sun/management/internal/HotSpotDiagnostic");
    let bean = bean.ok_or("this JDK has no module jdk.management")?;
    let missing = "this JDK dumps heaps differently";
    let constructor = env.method(bean, c"<init>", c"()V").ok_or(missing)?;
    let function = env.method(bean, c"dumpHeap", c"(Ljava/lang/String;Z)V").ok_or(missing)?;
    let object = env.new_object(bean, constructor, &[]).ok_or(missing)?;
    let path = env.new_text(path).ok_or("out of memory")?;
    env.try_call_void(object, function, &[jvalue { l: path.raw() }, jvalue { z: true }])
        .map_err(|why| why.unwrap_or_else(|| "the VM could not write the dump".to_owned()))
}

fn memory(monitor: &Monitor) -> MemoryInfo {
    use std::sync::atomic::Ordering::Relaxed;
    let hotspot = monitor.hotspot.get();
    let heap = hotspot.map(|hotspot| hotspot.heap_use()).unwrap_or_default();
    let most = hotspot.and_then(|hotspot| hotspot.heap_limit()).unwrap_or(0);
    MemoryInfo {
        time_ms: time::millis(),
        collections: monitor.hub.collections.load(Relaxed),
        pauses_ns: monitor.hub.pauses_ns.load(Relaxed),
        parts: vec![Memory { name: "heap".to_owned(), used: heap.used, size: heap.committed, most }],
    }
}

/// Uses tags of classes in a temporary environment.
fn histogram(monitor: &Monitor, env: Env, rows: usize) -> Result<Histogram, JvmtiError> {
    let walker = Jvmti::new(monitor.vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
    walker.add_capabilities(&[Capability::TagObjects])?;
    let result = env.frame(et_jvm::jvmti::CLASSES, |env| {
        let classes = walker.loaded_classes(env)?;
        for (class, tag) in classes.iter().zip(1..) {
            walker.set_tag(*class, tag)?;
        }
        let mut counts = vec![(0_u64, 0_u64); classes.len() + 1];
        share::walk(|| {
            walker.heap_objects(|here| {
                let index = usize::try_from(here.class_tag).unwrap_or(0);
                if let Some((objects, bytes)) = counts.get_mut(index) {
                    *objects += 1;
                    *bytes += here.size;
                }
            })
        })?;
        let mut order: Vec<usize> = (1..counts.len()).filter(|index| counts[*index].0 > 0).collect();
        order.sort_unstable_by_key(|index| std::cmp::Reverse(counts[*index].1));
        let row = |index: usize| HistogramRow {
            class: classes::tag_of(monitor, env, classes[index - 1]).id,
            name: classes::name(monitor, classes[index - 1]),
            objects: counts[index].0,
            bytes: counts[index].1,
        };
        Ok(Histogram {
            objects: counts.iter().map(|count| count.0).sum(),
            bytes: counts.iter().map(|count| count.1).sum(),
            rows: order.into_iter().take(rows).map(row).collect(),
        })
    });
    walker.dispose();
    result
}

/// The objects that are listed get ids.
fn instances(monitor: &Monitor, env: Env, class: Object, tag: ClassTag, most: usize) -> Result<Instances, JvmtiError> {
    let is_array = monitor.jvmti.class_signature(class).is_ok_and(|name| name.starts_with('['));
    let is_mirror = monitor.class_of_classes(env).is_some_and(|classes| env.is_same(classes, class));
    let (mut total, mut objects, mut fresh) = (0, Vec::new(), Vec::new());
    let _one = tags::tagging();
    share::walk(|| {
        monitor.jvmti.heap_objects(|here| {
            if here.class_tag != tag.tag() {
                return;
            }
            total += 1;
            // Classes get their numbers elsewhere.
            if objects.len() < most && (!is_mirror || *here.tag != 0) {
                if *here.tag == 0 {
                    *here.tag = tags::fresh() as i64;
                    fresh.push(objects.len());
                }
                objects.push(Instance { id: tags::of_tag(*here.tag), size: here.size });
            }
        })
    })?;
    if let Some(xml) = &monitor.xml {
        for at in fresh {
            xml.define_object(objects[at].id, tag.id, Some(objects[at].size), is_array);
        }
    }
    Ok(Instances { class: tag.id, total, objects })
}

fn object_info(monitor: &Monitor, env: Env, id: u64, object: Object) -> ObjectInfo {
    let class = env.class_of(object);
    let tag = class.map(|class| classes::tag_of(monitor, env, class));
    let class_name = class.map_or_else(String::new, |class| classes::name(monitor, class));
    let length = class_name.ends_with("[]").then(|| env.array_length(object).max(0) as u32);
    let size = monitor.jvmti.object_size(object).unwrap_or(0);
    // The thread that allocated it is known only for logged objects, and only in the log.
    ObjectInfo { id, class: tag.map_or(0, |tag| tag.id), class_name, size, length, thread: 0 }
}

fn class_info(monitor: &Monitor, env: Env, id: u64, class: Object) -> ClassInfo {
    let superclass = env.superclass(class);
    let loader = monitor.jvmti.class_loader(env, class).ok().flatten();
    ClassInfo {
        id,
        name: classes::name(monitor, class),
        superclass: superclass.map_or(0, |class| classes::tag_of(monitor, env, class).id),
        superclass_name: superclass.map_or_else(String::new, |class| classes::name(monitor, class)),
        loader: loader.map_or_else(String::new, |loader| classes::name_of_object(monitor, env, loader)),
        source: monitor
            .jvmti
            .source_file_c(class)
            .map_or_else(|_| String::new(), |file| et_jvm::from_modified_utf8(&file)),
        modifiers: monitor.jvmti.class_modifiers(class).unwrap_or(0).cast_unsigned(),
    }
}

fn usage(monitor: &Monitor, env: Env, id: u64, object: Object) -> Result<MonitorUsage, JvmtiError> {
    let usage = monitor.jvmti.monitor_usage(env, object)?;
    let numbers = |threads: &[Object]| -> Vec<u32> {
        threads.iter().take(MOST_THREADS).map(|thread| threads::id(env, *thread)).collect()
    };
    let notify_waiters = numbers(&usage.notify_waiters);
    // Up to 17 those that wait to be notified are among those that wait to enter.
    let waiters = numbers(&usage.waiters).into_iter().filter(|id| !notify_waiters.contains(id)).collect();
    Ok(MonitorUsage {
        object: id,
        class_name: classes::name_of_object(monitor, env, object),
        owner: usage.owner.map_or(0, |owner| threads::id(env, owner)),
        entries: usage.entry_count.max(0).cast_unsigned(),
        waiters,
        notify_waiters,
    })
}

fn thread_info(monitor: &Monitor, env: Env, id: u32, thread: Object) -> Result<ThreadInfo, JvmtiError> {
    let jvmti = monitor.jvmti;
    let names = jvmti.thread_names(env, thread)?;
    let text = |name: &std::ffi::CStr| et_jvm::from_modified_utf8(name);
    // The capability is available during VM startup only.
    let waits_for = jvmti.contended_monitor(env, thread).ok().flatten();
    Ok(ThreadInfo {
        id,
        name: text(&names.thread),
        group: text(&names.group),
        parent: text(&names.parent),
        priority: jvmti.thread_priority(env, thread).unwrap_or(0).max(0).cast_unsigned(),
        is_daemon: jvmti.thread_info(env, thread)?.is_daemon,
        state: jvmti.thread_state(thread).ok().and_then(threads::state_of).unwrap_or(ThreadState::Zombie),
        cpu_ns: jvmti.thread_cpu_time(thread).map_or(u64::MAX, |nanos| nanos.max(0).cast_unsigned()),
        waits_for: waits_for.map_or(0, |object| ids::of(monitor, env, object)),
    })
}
