//! Speaks to one VM from its greeting to its end.

use std::sync::Arc;
use std::time::Duration;

use et_ddm::heap::When;
use et_ddm::ours::{Events, features};
use et_ddm::{Message, Request};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::Monitor;
use crate::connection::{Arrived, Connection, LinkError};

/// How long a VM may take to answer what costs it little.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval in milliseconds at which thread states are sent while the VM is watched.
const STATES_MS: u32 = 500;
/// How often it says what is allocated, and how large its heap is.
const RATES_MS: u32 = 1000;
/// Rows of a report of allocations.
const ROWS: u32 = 50;
/// Interval at which changes are collected before they are sent to clients.
const COLLECTED: Duration = Duration::from_millis(200);

/// One run of a VM.
pub(super) struct Drive {
    pub(super) monitor: Arc<Monitor>,
    pub(super) id: u32,
    pub(super) connection: Connection,
    pub(super) arrived: mpsc::Receiver<Arrived>,
}

impl Drive {
    /// Runs until the connection ends.
    pub(super) async fn run(mut self) -> LinkError {
        let Some(mut watchers) = self.monitor.watchers(self.id) else { return LinkError::Closed };
        // Threads as they come and go, and the heap at every collection: that costs next to nothing.
        self.ask(Request::ThreadEvents { on: true });
        self.ask(Request::HeapInfo(When::EveryGc));
        let mut is_watched = false;
        let mut tell_at = None;
        let mut poll = interval(Duration::from_millis(RATES_MS.into()));
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wanted = *watchers.borrow_and_update() > 0;
            if wanted != is_watched {
                is_watched = wanted;
                self.look(is_watched);
            }
            tokio::select! {
                what = self.arrived.recv() => match what {
                    Some(Arrived::Ended(why)) => return why,
                    None => return LinkError::Closed,
                    Some(what) => {
                        let has_features = matches!(what, Arrived::Message(Message::Features(_)));
                        self.take(what);
                        if has_features && is_watched {
                            self.look(true);
                        }
                        if tell_at.is_none() && self.has_news() {
                            tell_at = Some(Instant::now() + COLLECTED);
                        }
                    }
                },
                () = at(tell_at) => {
                    tell_at = None;
                    self.tell();
                }
                _ = poll.tick(), if is_watched => self.ask(self.size_request()),
                changed = changed(&mut watchers) => if !changed { return LinkError::Closed },
            }
        }
    }

    /// Asks without waiting for the answer, which arrives like anything else.
    fn ask(&self, request: Request) {
        let connection = self.connection.clone();
        tokio::spawn(async move { connection.request(&request, PATIENCE).await });
    }

    fn can(&self, feature: &str) -> bool {
        self.monitor.look(self.id, |vm| vm.can(feature)).unwrap_or(false)
    }

    fn size_request(&self) -> Request {
        if self.can(features::MEMORY) { Request::Memory } else { Request::HeapInfo(When::Now) }
    }

    /// The VM is watched from now on, or no longer.
    fn look(&self, on: bool) {
        self.ask(Request::ThreadStates { interval_ms: if on { STATES_MS } else { 0 } });
        if self.can(features::EVENTS) {
            self.ask(Request::Events {
                kinds: if on { Events::MONITORS | Events::COLLECTIONS | Events::PLACES } else { 0 },
            });
        }
        if self.can(features::ALLOCATIONS) {
            self.ask(Request::Allocations { interval_ms: if on { RATES_MS } else { 0 }, rows: ROWS });
        }
    }

    fn take(&self, what: Arrived) {
        match what {
            Arrived::Message(message) => self.monitor.take(self.id, message),
            Arrived::Malformed(error) => {
                if let Some(entry) = self.monitor.lock().vms.get_mut(&self.id) {
                    entry.vm.malformed(&error);
                }
            }
            Arrived::Ended(_) => {}
        }
    }

    fn has_news(&self) -> bool {
        self.monitor.look(self.id, crate::vm::Vm::has_news).unwrap_or(false)
    }

    fn tell(&self) {
        let (news, list) = match self.monitor.lock().vms.get_mut(&self.id) {
            Some(entry) => entry.vm.news(),
            None => return,
        };
        for (event, data) in news {
            self.monitor.tell(Some(self.id), event, &data);
        }
        if list {
            self.monitor.tell_list();
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Whether there is anything left that could change.
async fn changed(watchers: &mut watch::Receiver<usize>) -> bool {
    watchers.changed().await.is_ok()
}
