//! The replay as a virtual machine, from MMTk's point of view.

mod collection;
mod model;
mod scanning;
pub mod world;

use mmtk::util::heap::vm_layout::VMLayout;
use mmtk::util::{Address, ObjectReference, VMMutatorThread, VMThread, VMWorkerThread};
use mmtk::vm::slot::UnimplementedMemorySlice;
use mmtk::vm::{ActivePlan, ReferenceGlue, VMBinding};
use mmtk::{MMTK, MMTKBuilder, Mutator, memory_manager};

use et_simulate::mmtk::{MmtkOption, Plan};

use crate::error::CollectError;
use crate::object::CompressedSlot;
use world::{Options, world};

/// MMTk's type for the virtual machine; the state is in [`world`].
#[derive(Debug, Default)]
pub struct Replay;

impl VMBinding for Replay {
    type VMObjectModel = model::Model;
    type VMScanning = scanning::Scan;
    type VMCollection = collection::Stop;
    type VMActivePlan = Self;
    type VMReferenceGlue = Self;
    type VMSlot = CompressedSlot;
    /// No bulk array copies: each store is a separate operation.
    type VMMemorySlice = UnimplementedMemorySlice<CompressedSlot>;

    /// Objects are aligned to 8 bytes. With less, MMTk reserves an extra word per allocation, and `MarkSweep` then has
    /// no cell for 64 KiB.
    const MIN_ALIGNMENT: usize = 8;
    const USE_ALLOCATION_OFFSET: bool = false;
}

#[allow(unsafe_code, reason = "MMTk asks for references that outlive any lock")]
impl ActivePlan<Self> for Replay {
    fn is_mutator(tls: VMThread) -> bool {
        number(tls).is_some()
    }

    fn mutator(tls: VMMutatorThread) -> &'static mut Mutator<Self> {
        let place = number(tls.0).and_then(|number| world().mutators().get(number));
        match place {
            // SAFETY: mutators are never freed, and the program waits while MMTk uses them.
            Some(place) => unsafe { &mut *place.0 },
            None => crate::error::exit(1, "MMTk asks for a mutator that there is not"),
        }
    }

    fn mutators<'a>() -> Box<dyn Iterator<Item = &'a mut Mutator<Self>> + 'a> {
        // SAFETY: as in `mutator`.
        Box::new(world().mutators().iter().map(|place| unsafe { &mut *place.0 }))
    }

    fn number_of_mutators() -> usize {
        world().mutators().len()
    }
}

/// The trace clears weak references: until then a weak slot is as strong as any other.
impl ReferenceGlue<Self> for Replay {
    /// There are no finalizers: what a finalizer uses is alive in the trace.
    type FinalizableType = ObjectReference;

    fn clear_referent(_reference: ObjectReference) {}

    fn set_referent(_reference: ObjectReference, _referent: ObjectReference) {}

    fn get_referent(_reference: ObjectReference) -> Option<ObjectReference> {
        None
    }

    fn enqueue_references(_references: &[ObjectReference], _tls: VMWorkerThread) {}
}

/// Mutators are numbered from 1; 0 is for collector threads.
pub fn thread(number: usize) -> VMThread {
    #[allow(unsafe_code, reason = "MMTk takes an address for the name of a thread")]
    // SAFETY: the address is never dereferenced.
    VMThread(mmtk::util::OpaquePointer::from_address(unsafe { Address::from_usize(number) }))
}

fn number(thread: VMThread) -> Option<usize> {
    thread.0.to_address().as_usize().checked_sub(1)
}

/// Up to this heap size, spaces of 2 GiB each suffice for any plan. Larger ones need side metadata of half a gigabyte.
const SMALL: u64 = 3000 << 20;
/// Maximum heap size: slots have 32 bits, and the lowest 2 GiB are not used.
pub const MOST: u64 = 28 << 30;

/// Starts MMTk with the requested plan and heap, and with the user's MMTk options.
pub fn start(options: &Options, told: &[MmtkOption]) -> Result<&'static MMTK<Replay>, CollectError> {
    // The user's environment variables must not influence the measurement.
    let mut builder = MMTKBuilder::new_no_env_vars();
    let mut set = |option: &str, value: String| match builder.set_option(option, &value) {
        true => Ok(()),
        false => Err(CollectError::Option { option: option.to_owned(), value }),
    };
    set("plan", options.plan.name().to_owned())?;
    // MMTk refuses heaps smaller than a page.
    set("gc_trigger", format!("FixedHeapSize:{}", options.heap.max(4096)))?;
    set("threads", options.gc_threads.to_string())?;
    if let Some(nursery) = options.nursery {
        set("nursery", format!("Fixed:{nursery}"))?;
    }
    // NoGC does not support it.
    if let Some(stress) = options.stress.filter(|_| options.plan != Plan::NoGC) {
        set("stress_factor", stress.to_string())?;
        set("precise_stress", "false".to_owned())?;
    }
    for option in told {
        set(&option.name, option.value.clone())?;
    }
    // The trace handles references and finalizers.
    set("no_reference_types", "true".to_owned())?;
    set("no_finalizer", "true".to_owned())?;
    #[allow(unsafe_code, reason = "MMTk takes addresses where to put the heap")]
    // SAFETY: the addresses are only numbers, in a range where no library is mapped.
    let (heap_start, heap_end) = unsafe { (Address::from_usize(0x8000_0000), Address::from_usize(0x8_0000_0000)) };
    builder.set_vm_layout(VMLayout {
        log_address_space: 35,
        heap_start,
        heap_end,
        log_space_extent: 31,
        force_use_contiguous_spaces: options.heap <= SMALL,
    });
    Ok(Box::leak(memory_manager::mmtk_init(&builder)))
}
