//! The size of a VM's heap over time.

use et_ddm::heap::HeapInfo;
use et_ddm::ours::MemoryInfo;
use serde_json::{Value, json};

/// When there are more points, every second one goes.
const MOST_POINTS: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    time_ms: u64,
    used: u64,
    size: u64,
}

/// What is known of the heap.
#[derive(Clone, Debug, Default)]
pub struct MemoryHistory {
    points: Vec<Point>,
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
            self.add(Point { time_ms: heap.time_ms, used: heap.used.into(), size: heap.size.into() });
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
            self.add(Point { time_ms: memory.time_ms, used: heap.used, size: heap.size });
        }
        self.latest = Some(memory);
    }

    fn add(&mut self, point: Point) {
        match self.points.last() {
            Some(last) if last.time_ms > point.time_ms => return,
            Some(last) if last.time_ms == point.time_ms => _ = self.points.pop(),
            _ => {}
        }
        if self.points.len() >= MOST_POINTS {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
        self.points.push(point);
    }

    /// The last point, for those who have the others.
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
            "most": self.most,
            "objects": self.objects,
            "collections": self.latest.as_ref().map(|it| it.collections),
            "pausesNs": self.latest.as_ref().map(|it| it.pauses_ns),
            "parts": parts,
            "clamped": self.latest.is_none() && self.is_clamped,
        })
    }

    /// All of it.
    pub fn json(&self) -> Value {
        let mut all = self.last();
        all["history"] = self.points.iter().map(|it| json!([it.time_ms, it.used, it.size])).collect();
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
            history.add(Point { time_ms, used: 1, size: 2 });
        }
        assert!((MOST_POINTS / 2..=MOST_POINTS).contains(&history.points.len()), "{}", history.points.len());
        assert!(history.points.is_sorted_by_key(|it| it.time_ms));
        assert_eq!(history.points.last().unwrap().time_ms, 10 * MOST_POINTS as u64 - 1);
        assert!(history.points[0].time_ms < 10_000, "the beginning is still there");
    }
}
