//! What threads waited for: the latest events, and sums by class.

use std::collections::{HashMap, VecDeque};

use et_ddm::ours::{Events, Happened};
use serde_json::{Value, json};

use super::threads::{Threads, shortened};

/// Events that are kept.
const MOST_EVENTS: usize = 500;
/// Classes whose sums are kept; others are one.
const MOST_CLASSES: usize = 2000;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    contended: u64,
    contended_ns: u64,
    longest_ns: u64,
    waits: u64,
    waits_ns: u64,
}

/// What is known of monitors.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    events: VecDeque<Value>,
    by_class: HashMap<String, Sum>,
    /// Events that the VM dropped.
    lost: u64,
}

impl Contention {
    /// Takes them in, and says them as the page takes them.
    pub fn add(&mut self, events: &Events, threads: &Threads) -> Value {
        self.lost += u64::from(events.lost);
        let told: Vec<Value> =
            events.events.iter().map(|event| self.one(event.time_ns, &event.what, threads)).collect();
        self.events.extend(told.iter().cloned());
        self.events.drain(..self.events.len().saturating_sub(MOST_EVENTS));
        json!({ "lost": self.lost, "events": told })
    }

    fn one(&mut self, time_ns: u64, what: &Happened, threads: &Threads) -> Value {
        let time_ms = time_ns as f64 / 1e6;
        let who = |id: &u32| json!({ "id": id, "name": threads.name(*id) });
        match what {
            Happened::ContendedEnter { monitor, class, thread, owner } => json!({
                "timeMs": time_ms, "what": "contended-enter", "monitor": monitor.to_string(), "class": shortened(class.clone()),
                "thread": who(thread), "owner": who(owner),
            }),
            Happened::ContendedEntered { monitor, class, thread, owner, waited_ns } => {
                let sum = self.sum(class);
                sum.contended += 1;
                sum.contended_ns = sum.contended_ns.saturating_add(*waited_ns);
                sum.longest_ns = sum.longest_ns.max(*waited_ns);
                json!({
                    "timeMs": time_ms, "what": "contended-entered", "monitor": monitor.to_string(), "class": shortened(class.clone()),
                    "thread": who(thread), "owner": who(owner), "waitedNs": waited_ns,
                })
            }
            Happened::Wait { monitor, class, thread, timeout_ms } => json!({
                "timeMs": time_ms, "what": "wait", "monitor": monitor.to_string(), "class": shortened(class.clone()),
                "thread": who(thread), "timeoutMs": timeout_ms,
            }),
            Happened::Waited { monitor, class, thread, waited_ns, timed_out } => {
                let sum = self.sum(class);
                sum.waits += 1;
                sum.waits_ns = sum.waits_ns.saturating_add(*waited_ns);
                json!({
                    "timeMs": time_ms, "what": "waited", "monitor": monitor.to_string(), "class": shortened(class.clone()),
                    "thread": who(thread), "waitedNs": waited_ns, "timedOut": timed_out,
                })
            }
            Happened::GcStart => json!({ "timeMs": time_ms, "what": "gc-start" }),
            Happened::GcFinish { pause_ns } => json!({ "timeMs": time_ms, "what": "gc-finish", "pauseNs": pause_ns }),
        }
    }

    fn sum(&mut self, class: &str) -> &mut Sum {
        let is_full = self.by_class.len() >= MOST_CLASSES && !self.by_class.contains_key(class);
        let class = if is_full { "(other classes)".to_owned() } else { shortened(class.to_owned()) };
        self.by_class.entry(class).or_default()
    }

    /// All of it; most waited for first.
    pub fn json(&self) -> Value {
        let mut sums: Vec<(&String, &Sum)> = self.by_class.iter().collect();
        sums.sort_by_key(|(class, sum)| (std::cmp::Reverse(sum.contended_ns), std::cmp::Reverse(sum.waits_ns), *class));
        let classes: Vec<Value> = sums
            .into_iter()
            .map(|(class, sum)| {
                json!({
                    "class": class, "contended": sum.contended, "contendedNs": sum.contended_ns, "longestNs": sum.longest_ns,
                    "waits": sum.waits, "waitsNs": sum.waits_ns,
                })
            })
            .collect();
        json!({ "lost": self.lost, "classes": classes, "events": self.events })
    }
}
