//! Chunks of the program's own: `org.elephanttracks.ddm`. Its handlers run on a thread of their own, as they may take any time.
#![allow(unsafe_code, reason = "native methods of a Java class, which get raw references")]

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use et_ddm::message::Failure;
use et_ddm::{Chunk, ChunkType, Message};
use et_jvm::env::{Env, Global, Object, StaticMethod};
use et_jvm::jvmti::JvmtiError;
use et_jvm::threads::agent_thread;
use jni_sys::{JNIEnv, jbyteArray, jclass, jint, jstring, jvalue};

use crate::hub::Note;
use crate::state::{self, Monitor};
use crate::task::Call;

/// The class of the program's, if it has one.
#[derive(Debug)]
struct Api {
    class: Global,
    dispatch: StaticMethod,
    connection: StaticMethod,
}

static API: OnceLock<Api> = OnceLock::new();

/// Descriptor of the class.
const CLASS: &str = "Lorg/elephanttracks/ddm/DdmServer;";

fn register(env: Env, class: Object) {
    if API.get().is_some() {
        return;
    }
    let find = || {
        Some(Api {
            dispatch: env.static_method(class, c"dispatch", c"(I[B)[B")?,
            connection: env.static_method(class, c"connection", c"(Z)V")?,
            class: env.global(class)?,
        })
    };
    if let Some(api) = find() {
        let _ = API.set(api);
    }
}

/// Looks for the class, if the agent was loaded after it.
pub fn find(monitor: &Monitor, env: Env) {
    env.frame(et_jvm::jvmti::CLASSES, |env| {
        for class in monitor.jvmti.loaded_classes(env).unwrap_or_default() {
            if monitor.jvmti.class_signature(class).is_ok_and(|name| name == CLASS) {
                register(env, class);
            }
            env.delete_local(class);
        }
    });
}

/// Starts the thread.
pub fn start(monitor: &'static Monitor, env: Env) -> Result<Sender<Call>, JvmtiError> {
    let (sender, receiver) = channel();
    env.frame(8, |env| {
        agent_thread(monitor.jvmti, env, c"ET monitor handlers", move |env| {
            for call in receiver {
                env.frame(16, |env| run(monitor, env, call));
            }
        })
        .map(drop)
    })?;
    Ok(sender)
}

fn run(monitor: &Monitor, env: Env, call: Call) {
    match (call, API.get()) {
        (Call::Chunk(asker, chunk), Some(api)) => {
            let reply = dispatch(env, api, &chunk);
            monitor.hub.reply(&asker, reply);
        }
        // No handler is registered for the type.
        (Call::Chunk(asker, _), None) => monitor.hub.reply(&asker, None),
        (Call::Connection(is_open), Some(api)) => {
            env.call_static_void(api.class.get(), api.connection, &[jvalue { z: is_open }]);
        }
        (Call::Connection(_), None) => {}
    }
}

fn dispatch(env: Env, api: &Api, chunk: &Chunk) -> Option<Message> {
    let failed = |message: &str| Some(Message::Fail(Failure { code: Failure::FAILED, message: message.to_owned() }));
    let Some(data) = env.byte_array_of(&chunk.data) else { return failed("the program is out of memory") };
    let arguments = [jvalue { i: i32::from_be_bytes(chunk.kind.0) }, jvalue { l: data.raw() }];
    let reply = match env.try_call_static_object(api.class.get(), api.dispatch, &arguments) {
        Ok(reply) => reply?,
        Err(()) => return failed("a handler of the program threw an exception"),
    };
    let bytes = env.bytes_of(reply, 0, env.array_length(reply))?;
    let (kind, data) = bytes.split_first_chunk::<4>()?;
    Some(Message::Other(Chunk::new(ChunkType(*kind), data.to_vec())))
}

/// `DdmServer.attach0`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_org_elephanttracks_ddm_DdmServer_attach0(env: *mut JNIEnv, class: jclass) {
    // SAFETY: as the VM hands them over.
    if let (Some(env), Some(class)) = unsafe { (Env::new(env), Object::new(class)) } {
        register(env, class);
    }
}

/// `DdmServer.send0`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_org_elephanttracks_ddm_DdmServer_send0(
    env: *mut JNIEnv,
    class: jclass,
    kind: jint,
    data: jbyteArray,
) {
    // SAFETY: as the VM hands them over.
    let given = unsafe { (Env::new(env), Object::new(class), Object::new(data)) };
    let ((Some(env), Some(class), Some(data)), Some(monitor)) = (given, state::get()) else { return };
    register(env, class);
    if let Some(bytes) = env.bytes_of(data, 0, env.array_length(data)) {
        monitor.hub.put(Note::ToAll(Chunk::new(ChunkType(kind.to_be_bytes()), bytes)));
    }
}

/// `DdmServer.name0`.
///
/// # Safety
/// To be called by the VM only.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_org_elephanttracks_ddm_DdmServer_name0(
    env: *mut JNIEnv,
    class: jclass,
    name: jstring,
) {
    // SAFETY: as the VM hands them over.
    let given = unsafe { (Env::new(env), Object::new(class), Object::new(name)) };
    let ((Some(env), Some(class), Some(name)), Some(monitor)) = (given, state::get()) else { return };
    register(env, class);
    if let Some(name) = env.text(name) {
        monitor.set_name(name.clone());
        monitor.hub.put(Note::Name(name));
    }
}
