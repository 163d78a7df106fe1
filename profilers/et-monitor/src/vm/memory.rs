//! The size of a VM's heap over time.

use et_ddm::heap::{HeapInfo, When};
use et_ddm::ours::MemoryInfo;
use serde_json::{Value, json};

/// While the VM is watched, sizes arrive every second: after a longer gap, it was not watched.
const LOOKED_MS: u64 = 3000;
/// When there are more points, every second one goes.
const MOST_POINTS: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    time_ms: u64,
    used: u64,
    size: u64,
    /// Whether the VM was watched all the time since the previous point, so that a line between them is accurate.
    is_joined: bool,
}

/// History of the heap's size.
#[derive(Clone, Debug, Default)]
pub struct MemoryHistory {
    points: Vec<Point>,
    /// When the VM was last watched; sizes at collections also arrive at other times.
    looked_ms: Option<u64>,
    most: u64,
    objects: Option<u64>,
    latest: Option<MemoryInfo>,
    /// The VM says sizes with 32 bits only, and this one is at their end.
    is_clamped: bool,
}

impl MemoryHistory {
    /// As any VM says it; the first heap is the one of objects.
    pub fn add_info(&mut self, heaps: &[HeapInfo]) {
        let Some(heap) = heaps.first() else { return };
        self.is_clamped = heap.size == u32::MAX || heap.used == u32::MAX;
        if self.latest.is_none() {
            self.most = heap.most.into();
        }
        if self.latest.is_none() || !self.is_clamped {
            self.add(heap.time_ms, heap.used.into(), heap.size.into(), heap.reason == When::Now);
        }
        self.objects = (heap.objects > 0).then_some(heap.objects.into());
    }

    /// As our agent says it: what is exact takes the place of what may be cut.
    pub fn add_memory(&mut self, memory: MemoryInfo) {
        if let Some(heap) = memory.parts.first() {
            if self.latest.is_none() && self.is_clamped {
                self.points.clear();
            }
            self.most = heap.most;
            self.add(memory.time_ms, heap.used, heap.size, true);
        }
        self.latest = Some(memory);
    }

    fn add(&mut self, time_ms: u64, used: u64, size: u64, looks: bool) {
        let mut is_joined = self.looked_ms.is_some_and(|looked| time_ms.saturating_sub(looked) <= LOOKED_MS);
        match self.points.last() {
            Some(last) if last.time_ms > time_ms => return,
            Some(last) if last.time_ms == time_ms => {
                is_joined = last.is_joined;
                self.points.pop();
            }
            _ => {}
        }
        if looks {
            self.looked_ms = Some(time_ms);
        }
        if self.points.len() >= MOST_POINTS {
            self.thin();
        }
        self.points.push(Point { time_ms, used, size, is_joined });
    }

    /// Every second point goes. A gap that was before it is before the next then.
    fn thin(&mut self) {
        let (mut at, mut gone_is_joined) = (0, true);
        self.points.retain_mut(|point| {
            at += 1;
            let stays = at % 2 == 0;
            if stays {
                point.is_joined &= gone_is_joined;
            } else {
                gone_is_joined = point.is_joined;
            }
            stays
        });
    }

    /// The last point, for clients that have the others.
    pub fn last(&self) -> Value {
        let point = self.points.last();
        let parts: Vec<Value> = self
            .latest
            .iter()
            .flat_map(|it| &it.parts)
            .skip(1)
            .map(|part| json!({ "name": part.name, "used": part.used, "size": part.size, "most": part.most }))
            .collect();
        json!({
            "timeMs": point.map(|it| it.time_ms),
            "used": point.map(|it| it.used),
            "size": point.map(|it| it.size),
            "joined": point.map(|it| it.is_joined),
            "most": self.most,
            "objects": self.objects,
            "collections": self.latest.as_ref().map(|it| it.collections),
            "pausesNs": self.latest.as_ref().map(|it| it.pauses_ns),
            "parts": parts,
            "clamped": self.latest.is_none() && self.is_clamped,
        })
    }

    /// The complete history.
    pub fn json(&self) -> Value {
        let mut all = self.last();
        all["history"] = self.points.iter().map(|it| json!([it.time_ms, it.used, it.size, it.is_joined])).collect();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_gets_thinner() {
        let mut history = MemoryHistory::default();
        for time_ms in 0..10 * MOST_POINTS as u64 {
            history.add(time_ms, 1, 2, true);
        }
        assert!((MOST_POINTS / 2..=MOST_POINTS).contains(&history.points.len()), "{}", history.points.len());
        assert!(history.points.is_sorted_by_key(|it| it.time_ms));
        assert_eq!(history.points.last().unwrap().time_ms, 10 * MOST_POINTS as u64 - 1);
        assert!(history.points[0].time_ms < 10_000, "the beginning is still there");
        assert!(history.points[1..].iter().all(|it| it.is_joined), "somebody has looked all the time");
    }

    #[test]
    fn there_is_no_line_through_unwatched_times() {
        let mut history = MemoryHistory::default();
        for second in (0..10).chain(60..70) {
            history.add(second * 1000, 1, 2, true);
        }
        let gaps = |history: &MemoryHistory| {
            history.points.iter().filter(|it| !it.is_joined).map(|it| it.time_ms).collect::<Vec<_>>()
        };
        assert_eq!(gaps(&history), [0, 60_000]);
        assert_eq!(history.json()["history"][10], json!([60_000, 1, 2, false]));
        // The gap stays when points go, though they are further from each other then.
        history.thin();
        assert_eq!(gaps(&history), [1000, 61_000]);
        history.thin();
        assert_eq!(gaps(&history), [3000, 61_000]);
        // Frequent collections while the VM is not watched: sizes in between are unknown.
        for time_ms in [80_000, 80_500, 81_000] {
            history.add(time_ms, 1, 2, false);
        }
        history.add(81_500, 1, 2, true);
        history.add(82_000, 1, 2, false);
        assert_eq!(gaps(&history)[2..], [80_000, 80_500, 81_000, 81_500]);
    }
}
