//! Classes that are unloaded: the tables by class forget them.
//!
//! Their mirrors are tagged with their ids, in an environment of JVMTI's that is for nothing else, and the VM names the tags of
//! those that the collector has freed, some time after the collection. Until then no object gets such an id again
//! ([`crate::ids`]). The trace keeps what it was told.

use et_jvm::env::{Object, Vm};
use et_jvm::jvmti::{Capability, Jvmti, JvmtiError};
use et_jvm::listener::Listener;

/// Tells the tags of classes from all others: some VMs (25) tell the environment that walks the heap what is due to another.
const CLASS: i64 = 1 << 33;

/// Who is told of classes that go.
#[derive(Clone, Copy, Debug)]
pub struct Unloading {
    jvmti: Jvmti,
}

impl Unloading {
    /// An environment of JVMTI's is made for it. `listener` is told the tags of what is gone.
    pub fn new(vm: Vm, listener: &'static dyn Listener) -> Result<Self, JvmtiError> {
        let jvmti = Jvmti::new(vm).ok_or(JvmtiError::NO_ENVIRONMENT)?;
        let told = jvmti
            .add_capabilities(&[Capability::TagObjects, Capability::ObjectFreeEvents])
            .and_then(|()| jvmti.listen(listener))
            .and_then(|()| jvmti.tell_what_is_freed());
        told.inspect_err(|_| jvmti.dispose()).map(|()| Self { jvmti })
    }

    /// From now on somebody waits for the end of this class, which has that id.
    pub fn watch(self, class: Object, id: u32) {
        // Fails for want of memory only: then the class is never forgotten.
        let _ = self.jvmti.set_tag(class, tag(id));
    }
}

fn tag(id: u32) -> i64 {
    CLASS | i64::from(id)
}

/// The id of the class that has this tag; none if it is no class's.
pub fn class_with(tag: i64) -> Option<u32> {
    u32::try_from(tag ^ CLASS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_classes_are_those_of_nothing_else() {
        assert_eq!([1, 0x7fff_ffff].map(|id| class_with(tag(id))), [Some(1), Some(0x7fff_ffff)]);
        // Objects that the collector is asked about, its own, and those that a walk has marked.
        assert_eq!([1, 0x7fff_ffff, 1 << 32, (1 << 32) + 1, -1].map(class_with), [None; 5]);
    }
}
