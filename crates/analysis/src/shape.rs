//! The shape of the heap over time: the depth of objects, the number of references to each, and how many are referenced
//! once (Raman, Hendren, 2009; Potanin, Noble, Biddle, 2004: "Checking ownership and confinement").
//!
//! Depth counts references from a root: a static field, or an object that nothing in the heap refers to, which is held
//! by a stack or the VM. A weak reference counts as a reference.

use std::fmt::Write;
use std::ops::ControlFlow;

use et_names::units::{bytes, number, percent};
use et_reader::model::{Heap, Node};
use et_reader::record::{AllocKind, Record};
use et_reader::source::{Deaths, Reading, Source, SourceError};
use et_reader::told::{Hold, Told};
use serde::Serialize;

use crate::table::table;
use et_reader::amount::Amount;

/// The shape at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shape {
    /// Bytes allocated so far.
    pub allocated_bytes: u64,
    /// Value of the clock.
    pub tick: u64,
    /// Live objects.
    pub alive: Amount,
    /// References between objects.
    pub references: u64,
    /// Objects that no object and no static field refers to: stacks or the VM hold them.
    pub unreferenced: u64,
    /// Objects that one reference leads to.
    pub referenced_once: u64,
    /// The most references that lead to one object.
    pub most_fan_in: u64,
    /// References from a root to an object at least, on average over the objects.
    pub mean_depth: f64,
    /// The maximum depth.
    pub depth: u64,
    /// Objects in cycles that are not reachable from a root, held by something that is not in the trace.
    pub unrooted: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Data {
    size: u64,
}

/// Computes the shape of the current heap.
fn look(heap: &Heap<Data>, allocated_bytes: u64, tick: u64) -> Shape {
    let mut shape = Shape { allocated_bytes, tick, ..Shape::default() };
    let places = heap.iter().map(|(node, _)| node.0 as usize + 1).max().unwrap_or(0);
    let mut fan_in = vec![0u32; places];
    let mut depths = vec![u32::MAX; places];
    let mut level: Vec<Node> = Vec::new();
    for (_, node) in heap.statics() {
        fan_in[node.0 as usize] = fan_in[node.0 as usize].saturating_add(1);
        if depths[node.0 as usize] != 0 {
            depths[node.0 as usize] = 0;
            level.push(node);
        }
    }
    for (_, object) in heap.iter() {
        shape.alive.add(object.data.size);
        object.refs().for_each(|target| {
            shape.references += 1;
            fan_in[target.0 as usize] = fan_in[target.0 as usize].saturating_add(1);
        });
    }
    for (node, _) in heap.iter() {
        let count = fan_in[node.0 as usize];
        shape.most_fan_in = shape.most_fan_in.max(count.into());
        shape.referenced_once += u64::from(count == 1);
        if count == 0 {
            shape.unreferenced += 1;
            depths[node.0 as usize] = 0;
            level.push(node);
        }
    }
    let (mut depth, mut reached, mut sum) = (0u64, 0u64, 0u128);
    while !level.is_empty() {
        reached += level.len() as u64;
        sum += u128::from(depth) * level.len() as u128;
        shape.depth = depth;
        let mut next = Vec::new();
        for node in level {
            heap.get(node).refs().for_each(|target| {
                if depths[target.0 as usize] == u32::MAX {
                    depths[target.0 as usize] = 1;
                    next.push(target);
                }
            });
        }
        level = next;
        depth += 1;
    }
    shape.unrooted = shape.alive.objects - reached;
    shape.mean_depth = sum as f64 / reached.max(1) as f64;
    shape
}

/// Computes the shape at this number of moments, evenly spread over the `bytes` that the trace allocates; the last is
/// its end.
pub fn shapes(source: &Source, bytes: u64, moments: u64) -> Result<Vec<Shape>, SourceError> {
    let mut heap: Heap<Data> = Heap::default();
    let mut shapes = Vec::new();
    let (mut allocated, mut tick, mut taken) = (0u64, 0u64, 0u64);
    let moments = moments.max(1);
    let reading = Reading { deaths: Deaths::Trace, holders: source.tells_holders(), ..Reading::default() };
    source.for_each_told(reading, |told, at| {
        tick = at.tick.0;
        match *told {
            Told::Record(Record::Alloc(alloc)) => {
                // Before an allocation all that died before it is gone.
                while taken + 1 < moments
                    && u128::from(allocated) * u128::from(moments) >= u128::from(bytes) * u128::from(taken + 1)
                    && allocated > 0
                {
                    taken += 1;
                    shapes.push(look(&heap, allocated, tick));
                }
                heap.insert(alloc.object, Data { size: alloc.size });
                if alloc.kind != AllocKind::Initial {
                    allocated += alloc.size;
                }
            }
            Told::Record(Record::Update { origin, slot, target, .. })
            | Told::Hold(Hold::Initial { origin, slot, target }) => {
                heap.put(origin, slot, target);
            }
            Told::Record(Record::Death { object, .. }) => {
                if let Some(node) = heap.forget(object) {
                    heap.take_refs(node);
                    heap.free(node);
                }
            }
            Told::Record(_) | Told::Hold(_) => {}
        }
        ControlFlow::Continue(())
    })?;
    shapes.push(look(&heap, allocated, tick));
    Ok(shapes)
}

/// A table with a row for each moment.
pub fn render(shapes: &[Shape]) -> String {
    let mut out = String::new();
    if let Some(most) = shapes.iter().max_by_key(|shape| shape.depth) {
        let _ = writeln!(
            out,
            "The heap is {} deep at most, when {} are alive.\n",
            if most.depth == 1 { "1 reference".to_owned() } else { format!("{} references", number(most.depth)) },
            bytes(most.alive.bytes)
        );
    }
    let rows: Vec<Vec<String>> = shapes
        .iter()
        .map(|shape| {
            let objects = shape.alive.objects;
            vec![
                bytes(shape.allocated_bytes),
                bytes(shape.alive.bytes),
                number(objects),
                format!("{:.2}", shape.references as f64 / objects.max(1) as f64),
                percent(shape.unreferenced, objects),
                percent(shape.referenced_once, objects),
                number(shape.most_fan_in),
                format!("{:.1}", shape.mean_depth),
                number(shape.depth),
            ]
        })
        .collect();
    let head = [
        "allocated",
        "alive",
        "objects",
        "references each",
        "by stacks, VM",
        "referenced once",
        "most references to one",
        "mean depth",
        "depth",
    ];
    table(&mut out, 9, &head, &rows);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use et_names::FieldId;
    use et_reader::record::{ObjectId, Slot};

    #[test]
    fn depth_counts_from_roots() {
        let mut heap: Heap<Data> = Heap::default();
        (1..=7).for_each(|object| _ = heap.insert(ObjectId(object), Data { size: 10 }));
        let mut put = |origin, target| {
            let slot = Slot::Field(FieldId(target as u32));
            heap.put(ObjectId(origin), slot, ObjectId(target));
        };
        // A static field holds 1, which leads to 2 and 3; 3 to 4, 2 to 4. A stack holds 5, which leads to 1. 6 and 7 hold each other.
        for (origin, target) in [(0, 1), (1, 2), (1, 3), (3, 4), (2, 4), (5, 1), (6, 7), (7, 6)] {
            put(origin, target);
        }
        let shape = look(&heap, 70, 9);
        let expected = Shape {
            allocated_bytes: 70,
            tick: 9,
            alive: Amount { objects: 7, bytes: 70 },
            references: 7,
            unreferenced: 1,
            referenced_once: 4,
            most_fan_in: 2,
            mean_depth: (2 + 2) as f64 / 5.0,
            depth: 2,
            unrooted: 2,
        };
        assert_eq!(shape, expected);
    }
}
