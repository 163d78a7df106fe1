//! The native half of the runtime: a JVMTI agent that starts tracing, hands buffers to threads, and writes the trace.
//! The hooks themselves are Java (`runtime-java`); `docs/inside/runtime.md` explains how the two halves work together.
//!
//! Each folder is one layer, and uses only the layers below it:
//!
//! | layer | what it does |
//! |---|---|
//! | [`entry`] | what the VM and native code call: the agent's start, natives, JNI's table |
//! | [`tracing`] | handles JVMTI's events; begins and ends tracing |
//! | [`actions`] | actions on the VM: class and thread records, heap walks, ids, monitors |
//! | [`tracer`] | the state of a run |
//! | [`proxy`] | `java.lang.HeapProxy` and the layout of objects |
//! | [`classes`] | tables by class, and classes created at run time |
//! | [`stacks`] | numbers of call stacks |
//! | [`output`] | queue, packing, the trace writer |
//! | [`buffers`] | chunks of events and their owners |
//! | [`options`], [`live`], [`ids`] | options of a run; figures for a monitor; object ids |
//! | [`base`] | utilities that do not depend on traces |

pub mod actions;
pub mod base;
pub mod buffers;
pub mod classes;
pub mod entry;
pub mod ids;
pub mod live;
#[cfg(all(test, loom))]
mod loom_models;
pub mod options;
pub mod output;
pub mod proxy;
pub mod stacks;
pub mod tracer;
pub mod tracing;
