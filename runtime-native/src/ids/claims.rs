//! Decides which thread's id an object gets if several try at once, without holding a lock while the VM is called.
//!
//! A suspended thread stops at its next call of the VM, with all locks that it holds. So no thread waits for another
//! here: a thread claims an object for an id, and then sets the tag. The first claim counts, and threads with later
//! claims set its id instead of their own, no matter when the first thread continues.
//!
//! Why all agree: tags never change once set, and a claim is removed only when its object has a tag. A thread that
//! finds no tag after its claim therefore sees all earlier claims for the object, including the first.

use et_jvm::sync::lock;
use std::sync::{Arc, Mutex};

/// An object, and access to its tag in the VM.
pub trait Subject: Sized {
    /// Reference to a claimed object.
    type Held: Clone;
    /// The object's tag, 0 if it has none.
    fn tag(&self) -> u32;
    /// Sets the object's tag.
    fn set_tag(&self, tag: u32);
    /// Creates a reference to the object; `None` if out of memory.
    fn hold(&self) -> Option<Self::Held>;
    /// Whether the reference refers to this object.
    fn is(&self, held: &Self::Held) -> bool;
    /// Releases a reference.
    fn release(&self, held: Self::Held);
}

#[derive(Debug)]
struct Claim<H> {
    held: H,
    id: u32,
}

/// The pending claims of a run.
#[derive(Debug)]
pub struct Claims<H> {
    /// In the order of creation.
    claims: Mutex<Vec<Arc<Claim<H>>>>,
}

impl<H> Default for Claims<H> {
    fn default() -> Self {
        Self { claims: Mutex::default() }
    }
}

impl<H: Clone> Claims<H> {
    /// The id of an object that seems to have none. `next` provides one without calling the VM; `None` if it cannot.
    pub fn settle<S: Subject<Held = H>>(&self, object: &S, next: impl FnOnce() -> Option<u32>) -> Option<u32> {
        let held = object.hold()?;
        let claimed = {
            let mut claims = lock(&self.claims);
            // Under the lock, so that every id given out is either found by `ids` or already a tag.
            match next() {
                Some(id) => {
                    let own = Arc::new(Claim { held, id });
                    let before = claims.clone();
                    claims.push(own.clone());
                    Ok((own, before))
                }
                None => Err(held),
            }
        };
        let (own, before) = match claimed {
            Ok(claimed) => claimed,
            Err(held) => {
                object.release(held);
                return None;
            }
        };
        let id = match object.tag() {
            0 => {
                let first = before.iter().find(|claim| object.is(&claim.held));
                let id = first.map_or(own.id, |claim| claim.id);
                object.set_tag(id);
                id
            }
            id => id,
        };
        lock(&self.claims).retain(|claim| !Arc::ptr_eq(claim, &own));
        for claim in before.into_iter().chain([own]) {
            // The last user of a claim releases its object.
            if let Some(claim) = Arc::into_inner(claim) {
                object.release(claim.held);
            }
        }
        Some(id)
    }

    /// Ids given out that may not be tags yet.
    pub fn ids(&self) -> Vec<u32> {
        lock(&self.claims).iter().map(|claim| claim.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;

    /// A model of the VM: objects are numbers, its memory is an array of tags.
    #[derive(Default)]
    struct Vm {
        tags: [AtomicU32; 2],
        next: AtomicU32,
        held: AtomicUsize,
        claims: Claims<usize>,
    }

    struct Object<'a> {
        vm: &'a Vm,
        number: usize,
        /// Runs before the tag is set.
        suspended: &'a dyn Fn(),
    }

    impl Subject for Object<'_> {
        type Held = usize;
        fn tag(&self) -> u32 {
            self.vm.tags[self.number].load(SeqCst)
        }
        fn set_tag(&self, tag: u32) {
            (self.suspended)();
            let before = self.vm.tags[self.number].swap(tag, SeqCst);
            assert!(before == 0 || before == tag, "the tag was {before} and is {tag}");
        }
        fn hold(&self) -> Option<usize> {
            self.vm.held.fetch_add(1, SeqCst);
            Some(self.number)
        }
        fn is(&self, held: &usize) -> bool {
            self.number == *held
        }
        fn release(&self, _: usize) {
            self.vm.held.fetch_sub(1, SeqCst);
        }
    }

    impl Vm {
        fn give(&self, number: usize, suspended: &dyn Fn()) -> u32 {
            let next = || Some(self.next.fetch_add(1, SeqCst) + 1);
            self.claims.settle(&Object { vm: self, number, suspended }, next).unwrap()
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_is_suspended() {
        let vm = Vm::default();
        std::thread::scope(|scope| {
            let (resume, is_resumed) = mpsc::channel::<()>();
            let (stops, has_stopped) = mpsc::channel::<()>();
            let vm = &vm;
            let suspended = scope.spawn(move || {
                vm.give(0, &|| {
                    let _ = stops.send(());
                    let _ = is_resumed.recv();
                })
            });
            has_stopped.recv().unwrap();
            assert_eq!(vm.claims.ids(), [1]);
            assert_eq!(vm.give(1, &|| {}), 2, "another object");
            assert_eq!(vm.give(0, &|| {}), 1, "the same object has the id that it was to get");
            assert_eq!(vm.tags[0].load(SeqCst), 1);
            drop(resume);
            assert_eq!(suspended.join().unwrap(), 1);
        });
        assert_eq!((vm.claims.ids(), vm.held.into_inner()), (Vec::new(), 0));
    }

    #[test]
    fn without_an_id_nothing_is_claimed() {
        let vm = Vm::default();
        let object = Object { vm: &vm, number: 0, suspended: &|| {} };
        assert_eq!(vm.claims.settle(&object, || None), None);
        assert_eq!((vm.claims.ids(), vm.tags[0].load(SeqCst), vm.held.load(SeqCst)), (Vec::new(), 0, 0));
    }

    #[test]
    fn threads_that_race_agree() {
        for _ in 0..200 {
            let vm = Vm::default();
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|thread| {
                        let vm = &vm;
                        scope
                            .spawn(move || [0, 1].map(|object| vm.give((object + thread) % 2, &std::thread::yield_now)))
                    })
                    .collect();
                for (thread, given) in threads.into_iter().map(|thread| thread.join().unwrap()).enumerate() {
                    let tags = [0, 1].map(|object| vm.tags[(object + thread) % 2].load(SeqCst));
                    assert_eq!(given, tags);
                }
            });
            assert_ne!(vm.tags[0].load(SeqCst), vm.tags[1].load(SeqCst));
            assert_eq!((vm.claims.ids(), vm.held.into_inner()), (Vec::new(), 0));
        }
    }
}
