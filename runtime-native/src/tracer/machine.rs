//! The traced VM: its interfaces, and the Java half in it.

use et_jvm::env::Vm;
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::Jvmti;
use et_jvm::threads::CurrentThread;

use crate::proxy::Proxy;

/// Interfaces of the VM.
#[derive(Debug)]
pub struct Machine {
    /// JNI's invocation interface, which returns the environment of each thread.
    pub vm: Vm,
    /// The tracer's JVMTI environment.
    pub jvmti: Jvmti,
    /// Functions exported by libjvm.
    pub hotspot: HotSpot,
    /// Returns the current thread; `None` if the VM has no such method.
    pub current_thread: Option<CurrentThread>,
    /// The hooks, and the rest of the Java half.
    pub proxy: Proxy,
    /// Whether the proxy knows instance sizes.
    pub sizes_known: bool,
}
