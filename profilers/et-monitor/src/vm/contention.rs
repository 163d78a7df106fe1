//! What threads waited for: the latest events, and sums by class and by line of code.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use et_ddm::ours::{Event, Events, Happened};
use serde_json::{Value, json};

use super::threads::{Threads, shortened};

/// Maximum number of events kept.
const MOST_EVENTS: usize = 500;
/// Maximum number of classes, and of lines of code, with their own sums; others are combined.
const MOST_SUMS: usize = 2000;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    contended: u64,
    contended_ns: u64,
    longest_ns: u64,
    waits: u64,
    waits_ns: u64,
}

impl Sum {
    fn entered(&mut self, waited_ns: u64) {
        self.contended += 1;
        self.contended_ns = self.contended_ns.saturating_add(waited_ns);
        self.longest_ns = self.longest_ns.max(waited_ns);
    }

    fn waited(&mut self, waited_ns: u64) {
        self.waits += 1;
        self.waits_ns = self.waits_ns.saturating_add(waited_ns);
    }

    fn json(&self) -> Value {
        json!({
            "contended": self.contended, "contendedNs": self.contended_ns, "longestNs": self.longest_ns,
            "waits": self.waits, "waitsNs": self.waits_ns,
        })
    }
}

/// Waiting time at a line of code for monitors of a class. The owner is unknown if it released the monitor before it
/// could be determined.
#[derive(Clone, Debug, Default)]
struct AtPlace {
    sum: Sum,
    /// Owner and duration of the longest wait with a known owner.
    longest_for: Option<(String, u64)>,
}

/// State of contention.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    events: VecDeque<Value>,
    by_class: HashMap<String, Sum>,
    /// By class and place.
    by_place: HashMap<(String, String), AtPlace>,
    /// Number of events that the VM dropped.
    lost: u64,
}

impl Contention {
    /// Takes them in, and says them as the page takes them.
    pub fn add(&mut self, events: &Events, threads: &Threads) -> Value {
        self.lost += u64::from(events.lost);
        let told: Vec<Value> = events.events.iter().map(|event| self.one(event, threads)).collect();
        self.events.extend(told.iter().cloned());
        self.events.drain(..self.events.len().saturating_sub(MOST_EVENTS));
        json!({ "lost": self.lost, "events": told })
    }

    fn one(&mut self, event: &Event, threads: &Threads) -> Value {
        let mut told = self.happened(event, threads);
        if !event.place.is_empty() {
            told["place"] = shortened(event.place.clone()).into();
        }
        told
    }

    fn happened(&mut self, Event { time_ns, what, place }: &Event, threads: &Threads) -> Value {
        let time_ms = *time_ns as f64 / 1e6;
        let who = |id: &u32| json!({ "id": id, "name": threads.name(*id) });
        match what {
            Happened::ContendedEnter { monitor, class, thread, owner } => json!({
                "timeMs": time_ms, "what": "contended-enter", "monitor": monitor.to_string(), "class": shortened(class.clone()),
                "thread": who(thread), "owner": who(owner),
            }),
            Happened::ContendedEntered { monitor, class, thread, owner, waited_ns } => {
                sum(&mut self.by_class, shortened(class.clone()), OTHERS.to_owned()).entered(*waited_ns);
                let at_place = self.at_place(class, place);
                let is_longest = at_place.longest_for.as_ref().is_none_or(|(_, longest)| longest <= waited_ns);
                if let (true, Some(owner)) = (is_longest, threads.name(*owner)) {
                    at_place.longest_for = Some((owner.to_owned(), *waited_ns));
                }
                at_place.sum.entered(*waited_ns);
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
                sum(&mut self.by_class, shortened(class.clone()), OTHERS.to_owned()).waited(*waited_ns);
                self.at_place(class, place).sum.waited(*waited_ns);
                json!({
                    "timeMs": time_ms, "what": "waited", "monitor": monitor.to_string(), "class": shortened(class.clone()),
                    "thread": who(thread), "waitedNs": waited_ns, "timedOut": timed_out,
                })
            }
            Happened::GcStart => json!({ "timeMs": time_ms, "what": "gc-start" }),
            Happened::GcFinish { pause_ns } => json!({ "timeMs": time_ms, "what": "gc-finish", "pauseNs": pause_ns }),
        }
    }

    fn at_place(&mut self, class: &str, place: &str) -> &mut AtPlace {
        let key = (shortened(class.to_owned()), shortened(place.to_owned()));
        sum(&mut self.by_place, key, (OTHERS.to_owned(), String::new()))
    }

    /// All of it; most waited for first.
    pub fn json(&self) -> Value {
        let order = |sum: &Sum| (Reverse(sum.contended_ns), Reverse(sum.waits_ns));
        let mut classes: Vec<(&String, &Sum)> = self.by_class.iter().collect();
        classes.sort_by_key(|(class, sum)| (order(sum), *class));
        let of_class = |(class, sum): (&String, &Sum)| {
            let mut row = sum.json();
            row["class"] = class.as_str().into();
            row
        };
        let classes: Vec<Value> = classes.into_iter().map(of_class).collect();
        let mut places: Vec<(&(String, String), &AtPlace)> = self.by_place.iter().collect();
        places.sort_by_key(|(key, at_place)| (order(&at_place.sum), *key));
        let of_place = |((class, place), at_place): (&(String, String), &AtPlace)| {
            let mut row = at_place.sum.json();
            row["class"] = class.as_str().into();
            row["place"] = place.as_str().into();
            row["longestForNs"] = at_place.longest_for.as_ref().map_or(0, |(_, longest)| *longest).into();
            row["longestOwner"] = at_place.longest_for.as_ref().map(|(owner, _)| owner.as_str()).into();
            row
        };
        let places: Vec<Value> = places.into_iter().map(of_place).collect();
        json!({ "lost": self.lost, "classes": classes, "places": places, "events": self.events })
    }
}

/// The sum of a key; of others, when there are too many.
fn sum<K: Eq + Hash, T: Default>(sums: &mut HashMap<K, T>, key: K, others: K) -> &mut T {
    let is_full = sums.len() >= MOST_SUMS && !sums.contains_key(&key);
    sums.entry(if is_full { others } else { key }).or_default()
}

const OTHERS: &str = "(other classes)";

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(thread: u32, owner: u32, waited_ns: u64, place: &str) -> Event {
        let what = Happened::ContendedEntered { monitor: 1, class: "A".into(), thread, owner, waited_ns };
        Event { time_ns: 5, what, place: place.into() }
    }

    #[test]
    fn sums_are_kept_by_class_and_by_place_with_the_owner_of_the_longest() {
        let (mut contention, mut threads) = (Contention::default(), Threads::default());
        threads.named(1, "clerk".into());
        threads.named(2, "boss".into());
        // It has ended since: its name is known all the same.
        threads.ended(2);
        let events =
            vec![entered(1, 2, 30, "T.a(T.java:3)"), entered(1, 9, 70, "T.a(T.java:3)"), entered(1, 1, 50, "")];
        let told = contention.add(&Events { lost: 0, events }, &threads);
        assert_eq!(told["events"][0]["owner"]["name"], "boss");
        assert_eq!(told["events"][0]["place"], "T.a(T.java:3)");
        assert!(told["events"][2]["place"].is_null());
        let all = contention.json();
        assert_eq!(
            (all["classes"][0]["contended"].clone(), all["classes"][0]["contendedNs"].clone()),
            (3.into(), 150.into())
        );
        let places = all["places"].as_array().unwrap();
        assert_eq!(places.len(), 2);
        assert_eq!(
            (places[0]["place"].clone(), places[0]["longestOwner"].clone()),
            ("T.a(T.java:3)".into(), "boss".into())
        );
        assert_eq!((places[0]["contended"].clone(), places[0]["longestNs"].clone()), (2.into(), 70.into()));
    }

    #[test]
    fn what_is_too_much_is_one_sum() {
        let mut sums: HashMap<usize, u64> = HashMap::new();
        for key in 0..2 * MOST_SUMS {
            *sum(&mut sums, key, usize::MAX) += 1;
        }
        assert_eq!((sums.len(), sums[&usize::MAX]), (MOST_SUMS + 1, MOST_SUMS as u64));
    }
}
