//! The threads of a VM, as it last said.

use std::collections::{BTreeMap, VecDeque};

use et_ddm::threads::{ThreadState, ThreadStatus};
use serde_json::{Value, json};

/// Maximum number of threads kept; others are counted.
const MOST_THREADS: usize = 50_000;
/// Maximum number of ended threads whose names are kept, for messages that arrive after their end.
const MOST_ENDED: usize = 1000;
/// Maximum length of names in characters.
const MOST_NAME: usize = 1000;

#[derive(Clone, Debug)]
struct Thread {
    name: String,
    state: ThreadState,
    is_suspended: bool,
    /// Whether its state or name has changed since the last notification.
    has_changed: bool,
}

/// Threads by id.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    threads: BTreeMap<u32, Thread>,
    ended: Vec<u32>,
    /// Names of those that have ended, the latest last.
    names_of_ended: VecDeque<(u32, String)>,
    /// Started when there were too many.
    left_out: u64,
}

/// A name that has a bearable length.
pub fn shortened(mut name: String) -> String {
    if let Some((end, _)) = name.char_indices().nth(MOST_NAME) {
        name.truncate(end);
        name.push('…');
    }
    name
}

impl Threads {
    /// A thread has started, or has another name.
    pub fn named(&mut self, id: u32, name: String) {
        let name = shortened(name);
        if let Some(thread) = self.threads.get_mut(&id) {
            if thread.name != name {
                thread.name = name;
                thread.has_changed = true;
            }
        } else if self.threads.len() < MOST_THREADS {
            let state = ThreadState::Initializing;
            self.threads.insert(id, Thread { name, state, is_suspended: false, has_changed: true });
        } else {
            self.left_out += 1;
        }
    }

    pub fn ended(&mut self, id: u32) {
        if let Some(thread) = self.threads.remove(&id) {
            self.ended.push(id);
            self.names_of_ended.push_back((id, thread.name));
            if self.names_of_ended.len() > MOST_ENDED {
                self.names_of_ended.pop_front();
            }
        }
    }

    /// Handles a report of thread states.
    pub fn states(&mut self, states: &[ThreadStatus]) {
        for status in states {
            if let Some(thread) = self.threads.get_mut(&status.id)
                && (thread.state, thread.is_suspended) != (status.state, status.is_suspended)
            {
                thread.state = status.state;
                thread.is_suspended = status.is_suspended;
                thread.has_changed = true;
            }
        }
    }

    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Changes since the last call; `None` if there are none.
    pub fn changes(&mut self) -> Option<Value> {
        let changed: Vec<Value> =
            self.threads.iter().filter(|(_, thread)| thread.has_changed).map(|(id, thread)| row(*id, thread)).collect();
        self.threads.values_mut().for_each(|thread| thread.has_changed = false);
        let ended = std::mem::take(&mut self.ended);
        (!changed.is_empty() || !ended.is_empty()).then(|| json!({ "all": false, "changed": changed, "ended": ended }))
    }

    /// All threads.
    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self.threads.iter().map(|(id, thread)| row(*id, thread)).collect();
        json!({ "all": true, "changed": rows, "ended": [], "leftOut": self.left_out })
    }

    /// The name of one that lives, or has ended not long ago.
    pub fn name(&self, id: u32) -> Option<&str> {
        let ended = || self.names_of_ended.iter().rev().find(|(it, _)| *it == id).map(|(_, name)| name.as_str());
        self.threads.get(&id).map(|thread| thread.name.as_str()).or_else(ended)
    }
}

fn row(id: u32, thread: &Thread) -> Value {
    json!({ "id": id, "name": thread.name, "state": thread.state.name(), "suspended": thread.is_suspended })
}
