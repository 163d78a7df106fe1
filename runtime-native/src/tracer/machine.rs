//! The VM that is traced: its interfaces, and our Java half in it.

use et_jvm::env::Vm;
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::Jvmti;
use et_jvm::threads::CurrentThread;

use crate::proxy::Proxy;

/// The ways to the VM.
#[derive(Debug)]
pub struct Machine {
    /// JNI's invocation interface, which gives each thread its environment.
    pub vm: Vm,
    /// The tracer's environment of JVMTI.
    pub jvmti: Jvmti,
    /// Functions that libjvm exports.
    pub hotspot: HotSpot,
    /// Tells which thread the current one is; none if the VM has no such method.
    pub current_thread: Option<CurrentThread>,
    /// The hooks, and the rest of the Java half.
    pub proxy: Proxy,
    /// Whether the proxy can say how large instances are.
    pub sizes_known: bool,
}
