//! Call stacks of allocations: their numbers, by the values that the hooks keep in the thread (`docs/inside/stacks.md`).

mod methods;
mod table;
mod tree;

use std::sync::Mutex;

use et_format::StackCounts;
use et_jvm::profiling::RawFrame;
use et_jvm::sync::lock;

pub use methods::{Methods, Place};
pub use table::Table;
pub use tree::{Frame, Tree};

/// The state of a run.
#[derive(Debug)]
pub struct Stacks {
    state: Mutex<State>,
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
    /// Room for the frames of a walk.
    pub frames: Vec<RawFrame>,
}

impl Stacks {
    /// Without stacks; there will be frames for about `most`.
    pub fn new(most: u32) -> Self {
        let table = Table::default();
        let first_table = table.word();
        let (tree, methods) = (Tree::new(most), Methods::default());
        let state = State { table, tree, methods, counts: StackCounts::default(), frames: Vec::new() };
        Self { state: Mutex::new(state), first_table }
    }

    /// Address and size of the table at the beginning, as HeapProxy takes them.
    pub fn first_table(&self) -> u64 {
        self.first_table
    }

    /// Runs `body` while no other thread changes anything.
    pub fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        body(&mut lock(&self.state))
    }

    /// A class gets other methods: what is known of methods is read anew.
    pub fn methods_change(&self) {
        self.with(|state| state.methods.change());
    }

    /// What was counted so far; `None` if there were no stacks.
    pub fn counts(&self) -> Option<StackCounts> {
        Some(lock(&self.state).counts).filter(|counts| counts.values > 0)
    }
}
