//! The object model for MMTk.

use mmtk::util::copy::{CopySemantics, GCWorkerCopyContext};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::{
    ObjectModel, VMGlobalLogBitSpec, VMLocalForwardingBitsSpec, VMLocalForwardingPointerSpec,
    VMLocalLOSMarkNurserySpec, VMLocalMarkBitSpec,
};

use super::Replay;
use super::world::world;
use crate::counters;
use crate::object::Object;

#[derive(Debug)]
pub struct Model;

/// Source and destination may overlap.
#[allow(unsafe_code, reason = "objects lie in memory that MMTk manages")]
fn copy_bytes(from: Address, to: Address, bytes: usize) {
    // SAFETY: MMTk reserved the destination for the object, whose bytes are at the source.
    unsafe { std::ptr::copy(from.to_ptr::<u8>(), to.to_mut_ptr::<u8>(), bytes) }
}

fn moved(from: Object, handle: u32, to: Address) -> ObjectReference {
    let Some(reference) = ObjectReference::from_raw_address(to) else {
        crate::error::exit(1, "MMTk has no room to copy an object to")
    };
    world().table.moved(handle, from, Object::of(reference));
    reference
}

impl ObjectModel<Replay> for Model {
    const GLOBAL_LOG_BIT_SPEC: VMGlobalLogBitSpec = VMGlobalLogBitSpec::side_first();
    const LOCAL_FORWARDING_POINTER_SPEC: VMLocalForwardingPointerSpec = VMLocalForwardingPointerSpec::in_header(0);
    const LOCAL_FORWARDING_BITS_SPEC: VMLocalForwardingBitsSpec = VMLocalForwardingBitsSpec::side_first();
    const LOCAL_MARK_BIT_SPEC: VMLocalMarkBitSpec =
        VMLocalMarkBitSpec::side_after(Self::LOCAL_FORWARDING_BITS_SPEC.as_spec());
    const LOCAL_LOS_MARK_NURSERY_SPEC: VMLocalLOSMarkNurserySpec =
        VMLocalLOSMarkNurserySpec::side_after(Self::LOCAL_MARK_BIT_SPEC.as_spec());

    const UNIFIED_OBJECT_REFERENCE_ADDRESS: bool = true;
    /// A copy has the size of the original.
    const VM_WORST_CASE_COPY_EXPANSION: f64 = 1.0;
    const OBJECT_REF_OFFSET_LOWER_BOUND: isize = 0;

    fn copy(
        from: ObjectReference,
        semantics: CopySemantics,
        context: &mut GCWorkerCopyContext<Replay>,
    ) -> ObjectReference {
        let object = Object::of(from);
        let (bytes, handle) = (object.bytes(), object.handle());
        let to = context.alloc_copy(from, bytes, 8, 0, semantics);
        copy_bytes(object.address(), to, bytes);
        let copied = moved(object, handle, to);
        context.post_copy(copied, bytes, semantics);
        counters::copied(bytes);
        copied
    }

    fn copy_to(from: ObjectReference, to: ObjectReference, _region: Address) -> Address {
        let object = Object::of(from);
        let (bytes, handle) = (object.bytes(), object.handle());
        let to = to.to_raw_address();
        if to != object.address() {
            copy_bytes(object.address(), to, bytes);
            moved(object, handle, to);
            counters::copied(bytes);
        }
        to + bytes
    }

    fn get_reference_when_copied_to(_from: ObjectReference, to: Address) -> ObjectReference {
        match ObjectReference::from_raw_address(to) {
            Some(reference) => reference,
            None => crate::error::exit(1, "MMTk moves an object to nowhere"),
        }
    }

    fn get_current_size(object: ObjectReference) -> usize {
        Object::of(object).bytes()
    }

    fn get_size_when_copied(object: ObjectReference) -> usize {
        Object::of(object).bytes()
    }

    fn get_align_when_copied(_object: ObjectReference) -> usize {
        8
    }

    fn get_align_offset_when_copied(_object: ObjectReference) -> usize {
        0
    }

    fn get_type_descriptor(_object: ObjectReference) -> &'static [i8] {
        &[]
    }

    fn ref_to_object_start(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    fn ref_to_header(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    #[allow(clippy::print_stderr, reason = "for whoever debugs MMTk")]
    fn dump_object(object: ObjectReference) {
        let object = Object::of(object);
        eprintln!("{object:?}: handle {}, {:?}", object.handle(), object.shape());
    }
}
