//! The hooks: what is inserted where. One file per family, with the bytecode before and after.

mod allocation;
mod calls;
mod constructor;
mod continuation;
mod emitter;
mod exception;
mod leaf;
mod method;
mod stack_size;
pub mod stacks;
mod thread_fields;
mod upcalls;
mod update;
mod witness;

pub use allocation::{ArrayAllocation, count_sites};
pub use calls::{CallHook, Calls};
pub use constructor::Constructor;
pub use emitter::{Emitter, HOOKS, Hook};
pub use thread_fields::thread_fields;
pub use upcalls::upcall_arguments;

pub(crate) use allocation::{array_allocation, called, new_numbers, object_init, site};
pub(crate) use calls::{call, constant};
pub(crate) use continuation::{CONTINUATION, switch_stack};
pub(crate) use exception::{handle, handlers, throw};
pub(crate) use leaf::Leaf;
pub(crate) use method::{can_throw, entry, exceptional_exit, exit};
pub(crate) use stack_size::{has_stack_size, stack_size};
pub(crate) use thread_fields::write_thread_fields;
pub(crate) use upcalls::announce;
pub(crate) use update::{field_ref_of, put_element, put_field, put_static, store_element};
pub(crate) use witness::{Told, Use, used, uses};

/// The class with the hook methods. It is in the package `java.lang` of `java.base`, so that every module and every
/// class loader can access it.
pub const HEAP_PROXY: &str = "java/lang/HeapProxy";

/// The class with the hook methods for calls.
pub const HEAP_PROXY_CALLS: &str = "java/lang/HeapProxyCalls";
