//! The state of an agent that every host has: its function table, the enabled events, and the phase of the run.
#![allow(unsafe_code, reason = "calls the agent through the table that it fills in")]

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use jni_sys::{JNIEnv, jint};

use crate::abi::{Details, Event, Interface, Notify};
use crate::foreign;

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The agent may say what it wants.
    Loading = 0,
    /// Events are reported.
    Live = 1,
    /// `JVM_SHUT_DOWN` was reported.
    Ended = 2,
}

/// The state of an agent.
#[derive(Default)]
pub struct Session {
    interface: AtomicPtr<Interface>,
    enabled: AtomicU64,
    phase: AtomicU8,
    /// Panics of the host's, which never reach the agent.
    pub panics: AtomicU64,
    /// Exceptions of the agent's, which come no further than its functions.
    pub thrown: AtomicU64,
}

impl Session {
    /// The table that the agent has; null before [`offer`](Self::offer).
    pub fn interface(&self) -> *mut Interface {
        self.interface.load(Ordering::Acquire)
    }

    /// A table for the agent, which lives for ever.
    pub fn offer(&self, interface: Interface) {
        self.interface.store(Box::leak(Box::new(interface)), Ordering::Release);
    }

    /// The agent's function that takes events, once it has put it into the table.
    fn taker(&self) -> Option<Notify> {
        let interface = self.interface();
        if interface.is_null() {
            return None;
        }
        // SAFETY: the table lives for ever; the agent puts its function there, at any time.
        unsafe { (&raw const (*interface).notify_event).read_volatile() }
    }

    /// Reports an event in that thread, whether it is enabled or not. `None` if the agent no longer receives events;
    /// otherwise, its answer in the event.
    pub fn notify(&self, env: *mut JNIEnv, kind: jint, details: Details) -> Option<Details> {
        let notify = self.taker()?;
        let mut event = Event { event_type: kind, env_id: env, u: details };
        // SAFETY: the agent's function, with an event that lives until it returns.
        self.call_agent(|| unsafe { notify(&mut event) })?;
        Some(event.u)
    }

    /// Runs `body`, which calls a function of the agent's. What that throws is counted; None then.
    pub fn call_agent<R>(&self, body: impl FnOnce() -> R) -> Option<R> {
        let result = foreign::caught(body);
        if result.is_err() {
            self.thrown.fetch_add(1, Ordering::Relaxed);
        }
        result.ok()
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Loading,
            1 => Phase::Live,
            _ => Phase::Ended,
        }
    }

    /// Advances to a phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Whether the agent has enabled an event.
    #[inline]
    pub fn is_enabled(&self, kind: jint) -> bool {
        self.enabled.load(Ordering::Relaxed) & bit(kind) != 0
    }

    /// Enables or disables an event.
    pub fn set_enabled(&self, kind: jint, on: bool) {
        if on {
            self.enabled.fetch_or(bit(kind), Ordering::Relaxed);
        } else {
            self.enabled.fetch_and(!bit(kind), Ordering::Relaxed);
        }
    }

    /// Runs a function of the interface. Returns the fallback after the end of the run, and after a panic, which is
    /// counted.
    pub fn guarded<R>(&self, fallback: R, body: impl FnOnce() -> R) -> R {
        if self.phase() == Phase::Ended {
            return fallback;
        }
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
            self.panics.fetch_add(1, Ordering::Relaxed);
            fallback
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let enabled = self.enabled.load(Ordering::Relaxed);
        f.debug_struct("Session")
            .field("phase", &self.phase())
            .field("enabled", &format_args!("{enabled:#x}"))
            .finish_non_exhaustive()
    }
}

/// Description of what [`Session::thrown`] counts.
pub const THROWN: &str = "exceptions that the agent threw and did not catch";

/// Messages about omissions: those with counts above 0.
pub fn counted(counts: &[(&AtomicU64, &str)]) -> Vec<String> {
    let counts = counts.iter().map(|(count, what)| (count.load(Ordering::Relaxed), what));
    counts.filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

/// Events are bits of a word; numbers out of range have none.
fn bit(kind: jint) -> u64 {
    if (0..64).contains(&kind) { 1 << kind } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_enabled_is_known() {
        let session = Session::default();
        session.set_enabled(61, true);
        session.set_enabled(1000, true);
        session.set_enabled(-1, true);
        assert!(session.is_enabled(61));
        assert!([0, 1, 60, 62, 63, 64, 1000, -1].iter().all(|&kind| !session.is_enabled(kind)));
        session.set_enabled(61, false);
        assert!(!session.is_enabled(61));
    }

    #[test]
    fn after_the_end_functions_answer_nothing() {
        let session = Session::default();
        assert_eq!(session.guarded(0, || 1), 1);
        assert!(session.taker().is_none());
        session.enter(Phase::Ended);
        assert_eq!(session.guarded(0, || 1), 0);
    }

    #[test]
    fn panics_are_counted() {
        let session = Session::default();
        assert_eq!(session.guarded(7, || panic!("for a test")), 7);
        assert_eq!(session.panics.load(Ordering::Relaxed), 1);
    }
}
