//! What the VM and native code call: the agent's entry points, the natives of `HeapProxy`, the functions in JNI's table.

pub mod agent;
mod children;
pub mod early;
pub mod jni_table;
pub mod natives;
pub mod start;
