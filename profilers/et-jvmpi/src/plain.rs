//! Without a collector: objects stay where they are, and are freed when they die.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use et_reader::record::{ObjectId, Record};
use et_reader::source::{Deaths, Ending, Reading, Source};

use crate::error::ReplayError;
use crate::host::Host;
use crate::teller::Teller;

/// As every VM said that had the interface.
const ARENA: i32 = 1;

/// Plays the trace to the agent.
pub fn replay(host: &'static Host, source: &Arc<Source>) -> Result<Ending, ReplayError> {
    let mut teller = Teller::new(host, Arc::clone(source));
    let mut dead: Vec<ObjectId> = Vec::new();
    let reading = Reading { deaths: Deaths::Trace, places: true, ..Reading::default() };
    teller.begin();
    teller.arena(ARENA, "Java heap");
    let ending = source.for_each(reading, |record, at| {
        if let Record::Death { object, .. } = record {
            dead.push(*object);
            return ControlFlow::Continue(());
        }
        if !dead.is_empty() && host.gc_disabled.load(Ordering::Acquire) == 0 {
            bury(&mut teller, host, &mut dead);
        }
        match record {
            Record::Alloc(alloc) => teller.born(alloc, alloc.object.0 as usize, ARENA, at.place.ticket()),
            record => teller.record(record, at.place.ticket()),
        }
        ControlFlow::Continue(())
    })?;
    bury(&mut teller, host, &mut dead);
    teller.finish();
    Ok(ending)
}

/// Those that die together are a collection of their own.
fn bury(teller: &mut Teller, host: &Host, dead: &mut Vec<ObjectId>) {
    if dead.is_empty() {
        return;
    }
    teller.collection_begins(None);
    for object in dead.drain(..) {
        teller.freed(object.0 as usize);
    }
    let (objects, bytes, most) = {
        let heap = host.heap();
        (heap.objects(), heap.bytes(), heap.most())
    };
    teller.collection_ends(objects, bytes, most);
}
