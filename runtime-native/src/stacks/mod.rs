//! Call stacks of allocations: their numbers, by the values that the hooks keep in the thread (`docs/inside/stacks.md`).

mod methods;
mod table;
mod tree;

use std::sync::Mutex;

use et_format::{StackCounts, StackRecord};
use et_jvm::profiling::RawFrame;
use et_jvm::sync::lock;

pub use methods::{Methods, Place, Pools};
pub use table::{Look, Table};
pub use tree::{Frame, Tree};

/// The state of a run.
#[derive(Debug)]
pub struct Stacks {
    state: Mutex<State>,
    /// What was counted by the walks that are over. Under a lock of its own, which nobody holds while calling the VM: a thread may be suspended in the
    /// midst of a walk, and then keeps `state`.
    counted: Mutex<StackCounts>,
    first_table: u64,
}

/// What is changed by one thread at a time.
#[derive(Debug)]
pub struct State {
    /// The numbers by value, which HeapProxy searches as well.
    pub table: Table,
    /// The frames by number.
    pub tree: Tree,
    /// The sites in methods.
    pub methods: Methods,
    /// What was counted.
    pub counts: StackCounts,
    /// Room for walks, which is used again.
    pub room: Room,
}

/// What a walk fills.
#[derive(Debug, Default)]
pub struct Room {
    /// Frames, innermost first, as far as they have been asked for.
    pub frames: Vec<RawFrame>,
    /// The next frames.
    pub ahead: Vec<Ahead>,
    /// Values of stacks, and the sites of their innermost frames.
    pub found: Vec<(u64, u32)>,
    /// What the trace gets.
    pub records: Vec<StackRecord>,
}

/// A frame whose value is being looked for.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    pub place: Place,
    /// The value of the stack at the frame.
    pub at: u64,
    /// Where the table may have that.
    pub look: Look,
}

impl Room {
    /// The same without content; what an unusually deep stack has taken is given back.
    pub fn emptied(mut self) -> Self {
        const KEPT: usize = 1 << 12;
        self.frames.clear();
        self.ahead.clear();
        self.found.clear();
        self.records.clear();
        if self.frames.capacity() > KEPT { Self::default() } else { self }
    }
}

impl Stacks {
    /// Without stacks; there will be frames for about `most`.
    pub fn new(most: u32) -> Self {
        let table = Table::default();
        let first_table = table.word();
        let (tree, methods) = (Tree::new(most), Methods::default());
        let state = State { table, tree, methods, counts: StackCounts::default(), room: Room::default() };
        Self { state: Mutex::new(state), counted: Mutex::default(), first_table }
    }

    /// Address and size of the table at the beginning, as HeapProxy takes them.
    pub fn first_table(&self) -> u64 {
        self.first_table
    }

    /// Runs `body` while no other thread changes anything.
    pub fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.state);
        let result = body(&mut state);
        *lock(&self.counted) = state.counts;
        result
    }

    /// A class gets other methods: what is known of methods is read anew.
    pub fn methods_change(&self) {
        self.with(|state| state.methods.change());
    }

    /// What was counted so far; `None` if there were no stacks. Does not wait for a walk: its thread may be suspended.
    pub fn counts(&self) -> Option<StackCounts> {
        Some(*lock(&self.counted)).filter(|counts| counts.values > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread::scope;
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_waits_for_a_walk_to_learn_what_was_counted() {
        let stacks = Stacks::new(10);
        assert_eq!(stacks.counts(), None);
        stacks.with(|state| state.counts.values += 1);
        let (resume, suspended) = channel::<()>();
        let (walking, walks) = channel();
        let stacks = &stacks;
        let counts = scope(|scope| {
            scope.spawn(move || {
                stacks.with(|state| {
                    state.counts.values += 1;
                    walking.send(()).unwrap();
                    _ = suspended.recv();
                });
            });
            walks.recv().unwrap();
            let (tell, told) = channel();
            scope.spawn(move || tell.send(stacks.counts()).unwrap());
            let counts = told.recv_timeout(Duration::from_secs(20));
            drop(resume);
            counts
        });
        let values = |counts: Option<StackCounts>| counts.map(|counts| counts.values);
        assert_eq!((values(counts.unwrap()), values(stacks.counts())), (Some(1), Some(2)));
    }
}
