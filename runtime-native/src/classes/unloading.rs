//! Reports unloaded classes, so that the tables keyed by class drop them.
//!
//! Their mirrors are tagged with their ids, in a JVMTI environment used for nothing else, and `ObjectFree` reports the
//! tags of freed mirrors, some time after the collection. Until then no object gets such an id again ([`crate::ids`]).
//! The trace keeps the records.

use et_jvm::env::{Object, Vm};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};
use et_jvm::listener::Listener;

/// Flag in tags of classes: some VMs (25) report tags of one environment to another, namely the one that walks the
/// heap.
const CLASS: i64 = 1 << 33;

/// The JVMTI environment that reports unloaded classes.
#[derive(Clone, Copy, Debug)]
pub struct Unloading {
    jvmti: Jvmti,
}

impl Unloading {
    /// Creates the environment. `listener` gets the tags of freed mirrors.
    pub fn new(vm: Vm, listener: &'static dyn Listener) -> Result<Self, JvmtiError> {
        let jvmti = Jvmti::new(vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
        let told = jvmti
            .add_capabilities(&[Capability::TagObjects, Capability::ObjectFreeEvents])
            .and_then(|()| jvmti.listen(listener))
            .and_then(|()| jvmti.tell_what_is_freed());
        told.inspect_err(|_| jvmti.dispose()).map(|()| Self { jvmti })
    }

    /// Requests a report when this class, which has that id, is unloaded.
    pub fn watch(self, class: Object, id: u32) {
        // Fails only if out of memory: then the class is never dropped.
        let _ = self.jvmti.set_tag(class, tag(id));
    }
}

fn tag(id: u32) -> i64 {
    CLASS | i64::from(id)
}

/// The id of the class with this tag; none if the tag is not that of a class.
pub fn class_with(tag: i64) -> Option<u32> {
    u32::try_from(tag ^ CLASS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_classes_are_those_of_nothing_else() {
        assert_eq!([1, 0x7fff_ffff].map(|id| class_with(tag(id))), [Some(1), Some(0x7fff_ffff)]);
        // Tags of objects that the collector is asked about, of its own objects, and of those marked by a walk.
        assert_eq!([1, 0x7fff_ffff, 1 << 32, (1 << 32) + 1, -1].map(class_with), [None; 5]);
    }
}
