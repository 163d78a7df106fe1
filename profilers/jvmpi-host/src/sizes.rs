//! Instance sizes, which HotSpot stores in each class, whether or not there are instances.
//!
//! They are found through mirrors, and read during walks only: at other times mirrors may move.
#![allow(unsafe_code, reason = "structures of the VM in a walk")]

use et_jvm::env::Env;
use et_jvm::hotspot::Layout;
use et_jvm::mark_word;
use et_jvm::memory;
use rustc_hash::FxHashMap;

use crate::abi::ObjectId;
use crate::classes;
use crate::host::Host;
use crate::ids;

/// Verifies that what is read from a class is the instance size according to JVMTI. Without this, nothing may be read.
pub fn probe(host: &Host, env: Env) -> Option<Layout> {
    let layout = host.hotspot.get()?.layout?;
    env.frame(4, |env| {
        let thread = host.jvmti.current_thread(env).ok()??;
        let class = env.class_of(thread)?;
        let size = host.jvmti.object_size(thread).ok()?;
        let id = classes::id_of(host, env, class);
        (look_for(host, layout, id).map(u64::from) == Some(size)).then_some(layout)
    })
}

/// Instance size of a class in bytes; its mirror is searched for in the whole heap.
pub fn of_instances(host: &Host, class: ObjectId) -> Option<u32> {
    look_for(host, host.layout()?, class)
}

fn look_for(host: &Host, layout: Layout, class: ObjectId) -> Option<u32> {
    all(host, layout).remove(&(class as u32))
}

/// Of all classes. None where HotSpot does not say it.
pub fn of_all(host: &Host) -> FxHashMap<u32, u32> {
    host.layout().map(|layout| all(host, layout)).unwrap_or_default()
}

fn all(host: &Host, layout: Layout) -> FxHashMap<u32, u32> {
    let mut all = FxHashMap::default();
    let walked = host.jvmti.heap_objects(|object| {
        if *object.tag & ids::CLASS != 0
            && let Some(id) = ids::in_tag(*object.tag)
        {
            // SAFETY: called by a visitor, with what it was given; what is tagged so is the mirror of a class.
            all.extend(unsafe { at_mirror(layout, object.tag_at, object.size) }.map(|size| (id, size)));
        }
    });
    if walked.is_err() { FxHashMap::default() } else { all }
}

/// The same for the class whose mirror is being visited.
///
/// # Safety
/// To be called by a visitor with its arguments, where mark words have been found.
unsafe fn at_mirror(layout: Layout, tag_at: *const i64, size: u64) -> Option<u32> {
    if layout.klass_offset + 8 > size {
        return None;
    }
    // SAFETY: the caller's promise.
    let mirror = unsafe { mark_word::address(tag_at, size) }? as u64;
    let klass = u64::from_ne_bytes(memory::copy(mirror + layout.klass_offset)?);
    let helper = i32::from_ne_bytes(memory::copy(klass.checked_add(layout.layout_helper_offset)?)?);
    instance_size(helper)
}

/// Decodes the instance size from a layout helper: the low bits are flags, and arrays have negative values.
fn instance_size(helper: i32) -> Option<u32> {
    u32::try_from(helper).ok().map(|helper| helper & !7).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_no_part_of_a_size_and_arrays_have_none() {
        assert_eq!([24, 25, 16].map(instance_size), [Some(24), Some(24), Some(16)]);
        assert_eq!([0, 1, -0x7fff_fff0].map(instance_size), [None; 3]);
    }
}
