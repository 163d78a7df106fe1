//! Calls into the VM for the writer, on a thread of their own.
//!
//! A VM that is out of memory may call `exit` while its threads are being stopped for a collection, or under the lock of
//! its heap: whoever calls it then never comes back. The writer must: it waits for the answer only until the process
//! exits.

use std::sync::{Condvar, Mutex};

use et_jvm::env::Env;
use et_jvm::hotspot::HeapUse;
use et_jvm::sync::{lock, unpoisoned};

use super::machine::Machine;

/// A call for the writer.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// Measure the heap.
    HeapUse,
    /// Read the number of objects and elements that were not recorded for lack of room.
    Overflows,
    /// Switch the hooks off.
    SwitchOff,
}

/// What the VM answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// To [`Call::HeapUse`].
    pub heap: HeapUse,
    /// To [`Call::Overflows`].
    pub overflows: u64,
}

/// The calls: one at a time, as there is one writer.
#[derive(Debug, Default)]
pub struct VmCalls {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    call: Option<Call>,
    answer: Option<Answer>,
    overflows: u64,
    is_closed: bool,
}

impl VmCalls {
    /// Has the VM called. `None` if it no longer can be.
    pub fn make(&self, call: Call) -> Option<Answer> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return None;
        }
        (state.call, state.answer) = (Some(call), None);
        self.changed.notify_all();
        while state.answer.is_none() && !state.is_closed {
            state = unpoisoned(self.changed.wait(state));
        }
        state.answer.take()
    }

    /// The last answer to [`Call::Overflows`].
    pub fn last_overflows(&self) -> u64 {
        lock(&self.state).overflows
    }

    /// The body of the thread: returns after [`close`](Self::close).
    pub fn serve(&self, machine: &Machine, env: Env) {
        self.serve_with(|call| match call {
            Call::HeapUse => Answer { heap: machine.hotspot.heap_use(), ..Answer::default() },
            Call::Overflows => Answer { overflows: machine.proxy.overflows(env).into(), ..Answer::default() },
            Call::SwitchOff => {
                machine.proxy.switch(env, false);
                Answer::default()
            }
        });
    }

    fn serve_with(&self, answer: impl Fn(Call) -> Answer) {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return;
            }
            let Some(call) = state.call.take() else {
                state = unpoisoned(self.changed.wait(state));
                continue;
            };
            drop(state);
            let answer = answer(call);
            state = lock(&self.state);
            state.answer = Some(answer);
            if matches!(call, Call::Overflows) {
                state.overflows = answer.overflows;
            }
            self.changed.notify_all();
        }
    }

    /// Ends the waits for answers: the VM may not come back from calls any more.
    pub fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn calls_are_answered_one_after_the_other() {
        let calls = VmCalls::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                calls.serve_with(|call| Answer {
                    overflows: if matches!(call, Call::Overflows) { 7 } else { 0 },
                    ..Answer::default()
                });
            });
            assert_eq!(calls.make(Call::SwitchOff).unwrap().overflows, 0);
            assert_eq!(calls.make(Call::Overflows).unwrap().overflows, 7);
            calls.close();
        });
        assert!(calls.make(Call::Overflows).is_none());
        assert_eq!(calls.last_overflows(), 7);
    }

    #[test]
    fn a_vm_that_does_not_come_back_holds_nobody_up() {
        let (calls, called, back) = (VmCalls::default(), Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                calls.serve_with(|_| {
                    called.wait();
                    back.wait();
                    Answer::default()
                });
            });
            let waits = scope.spawn(|| calls.make(Call::HeapUse).is_none());
            called.wait();
            calls.close();
            assert!(waits.join().unwrap());
            back.wait();
        });
    }
}
