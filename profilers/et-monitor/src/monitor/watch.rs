//! Tracks which VMs are watched. Expensive reports are requested only for these.

use std::sync::Arc;

use tokio::sync::watch;

use super::Monitor;

/// Number of watchers.
#[derive(Debug)]
pub(super) struct Switch {
    count: watch::Sender<usize>,
}

impl Default for Switch {
    fn default() -> Self {
        Self { count: watch::Sender::new(0) }
    }
}

/// A VM is watched until this is dropped.
#[derive(Debug)]
pub struct Watched {
    monitor: Arc<Monitor>,
    id: u32,
}

impl Monitor {
    /// Starts watching a VM.
    pub fn watch(self: &Arc<Self>, id: u32) -> Option<Watched> {
        self.lock().vms.get(&id)?.watch.count.send_modify(|count| *count += 1);
        Some(Watched { monitor: self.clone(), id })
    }

    /// Number of watchers.
    pub(super) fn watchers(&self, id: u32) -> Option<watch::Receiver<usize>> {
        self.lock().vms.get(&id).map(|entry| entry.watch.count.subscribe())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(entry) = self.monitor.lock().vms.get(&self.id) {
            entry.watch.count.send_modify(|count| *count = count.saturating_sub(1));
        }
    }
}
