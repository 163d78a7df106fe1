//! Server-sent events: the list of VMs, and all that is new of one of them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::App;
use crate::monitor::{Change, Monitor, Watched};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfVm {
    vm: Option<u32>,
}

struct Reader {
    monitor: Arc<Monitor>,
    vm: Option<u32>,
    changes: Receiver<Change>,
    /// Events to send first.
    next: VecDeque<Event>,
    /// While it lives the VM says more than it costs nothing to say.
    _watched: Option<Watched>,
}

/// First all that is known, then what changes.
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    Query(OfVm { vm }): Query<OfVm>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let watched = vm.and_then(|id| app.monitor.watch(id));
    let mut reader = Reader {
        monitor: app.monitor.clone(),
        vm,
        changes: app.monitor.listen(),
        next: VecDeque::new(),
        _watched: watched,
    };
    reader.tell_all();
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.event().await?;
        Some((Ok(event), reader))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

impl Reader {
    fn tell_all(&mut self) {
        self.next.clear();
        self.next.push_back(Event::default().event("vms").data(self.monitor.list().to_string()));
        let of_vm = self.vm.and_then(|id| self.monitor.all(id)).unwrap_or_default();
        self.next.extend(of_vm.into_iter().map(|(event, data)| Event::default().event(event).data(data.to_string())));
    }

    async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.next.pop_front() {
                return Some(event);
            }
            match self.changes.recv().await {
                Ok(change) if change.vm.is_none() || change.vm == self.vm => {
                    return Some(Event::default().event(change.event).data(&change.data));
                }
                Ok(_) => {}
                // The client reads too slowly to get everything: starts again with the full state.
                Err(RecvError::Lagged(_)) => self.tell_all(),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
