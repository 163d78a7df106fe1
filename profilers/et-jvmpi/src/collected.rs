//! Replay with a simulated collector, which processes the operations of the trace: the agent gets its actions and the
//! records, in step.
//!
//! Operations contain the clock wherever it has advanced. Records at a tick are reported before any action of the
//! collector at that tick; births synchronize both.

use std::sync::Arc;

use et_reader::record::Record;
use et_reader::source::{Ending, Source};
use et_simulate::collectors::{Config, HeapSize, Observer, SimulateError, simulate, smallest_heap};
use et_simulate::events::Event;
use et_simulate::ops::{Amount, OpsReader, Tables};
use et_simulate::prepare::{Prepared, Wanted, prepare};
use jni_sys::jint;

use crate::cursor::{Cursor, Step};
use crate::error::ReplayError;
use crate::host::Host;
use crate::teller::Teller;

/// What to simulate: the collector and its heap size.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub collector: et_simulate::collectors::Collector,
    pub heap: HeapSize,
    pub nursery: Option<HeapSize>,
    pub backup_trace: bool,
}

/// All that a replay needs, before the agent is loaded: what is wrong with the trace or the heap is known by then.
#[derive(Debug)]
pub struct Ready {
    ops: OpsReader,
    config: Config,
    tables: Tables,
    /// Results of reading the trace.
    pub ending: Ending,
}

/// Prepares the operations, and simulates them once without an agent.
pub fn ready(source: &Source, wish: &Wish) -> Result<Ready, ReplayError> {
    let file = tempfile::tempfile().map_err(ReplayError::Temporary)?;
    let Prepared { file, tables, ending } = prepare(source, Wanted { touches: false, every_tick: true }, file)?;
    let mut ops = OpsReader::of_file(source.path(), file)?;
    let peak = &tables.totals.peak;
    let config = Config {
        collector: wish.collector,
        heap: wish.heap.bytes(peak),
        nursery: wish.nursery.map(|size| size.bytes(peak)),
        backup_trace: wish.backup_trace,
    };
    match simulate(&mut ops, &config, &mut ()) {
        Ok(_) => Ok(Ready { ops, config, tables, ending }),
        Err(error @ SimulateError::TooSmall { .. }) => {
            let smallest = HeapSize::Bytes(smallest_heap(&mut ops, &config)?).typed();
            Err(ReplayError::TooSmall { error, smallest })
        }
        Err(error) => Err(error.into()),
    }
}

impl Ready {
    /// Warnings about the trace.
    pub fn notes(&self) -> &[String] {
        &self.tables.notes
    }

    /// Plays the trace to the agent.
    pub fn replay(mut self, host: &'static Host, source: &Arc<Source>) -> Result<Ending, ReplayError> {
        let mut teller = Teller::new(host, Arc::clone(source));
        teller.begin();
        let (cursor, heap) = (Cursor::new(source)?, self.config.heap);
        let mut beside = Beside { teller, cursor, source, tables: &self.tables, heap, failed: None };
        let done = simulate(&mut self.ops, &self.config, &mut beside);
        if let Some(error) = beside.failed.take() {
            return Err(error);
        }
        done?;
        beside.all()?;
        let Beside { mut teller, cursor, .. } = beside;
        teller.finish();
        cursor.finish()?;
        Ok(self.ending)
    }
}

/// Observes the collector.
struct Beside<'a> {
    teller: Teller,
    cursor: Cursor,
    source: &'a Source,
    tables: &'a Tables,
    heap: u64,
    failed: Option<ReplayError>,
}

fn arena(arena: et_simulate::events::ArenaId) -> jint {
    jint::try_from(arena.0).unwrap_or(jint::MAX)
}

impl Beside<'_> {
    fn changed(&self) -> ReplayError {
        ReplayError::Changed { path: self.source.path().to_owned() }
    }

    /// Reports the steps before the next birth as long as `is_wanted` accepts them.
    fn tell_while(&mut self, is_wanted: impl Fn(&Step) -> bool) -> Result<(), ReplayError> {
        let is_wanted = |step: &Step| !matches!(step.record, Record::Alloc(_)) && is_wanted(step);
        while let Some(step) = self.cursor.next_if(is_wanted)? {
            self.teller.record(&step.record, step.ticket);
        }
        Ok(())
    }

    /// Reports all remaining steps, which contain no birth.
    fn all(&mut self) -> Result<(), ReplayError> {
        self.tell_while(|_| true)?;
        if self.cursor.peek().is_some() { Err(self.changed()) } else { Ok(()) }
    }

    /// Reports a birth and the address of the object.
    fn born(&mut self, in_arena: jint, address: u64, class: u32) -> Result<(), ReplayError> {
        self.tell_while(|_| true)?;
        let descriptor = self.tables.classes.get(class as usize).map(|class| class.descriptor.as_str());
        let types = self.source.types();
        let step = self.cursor.next_if(|step| match step.record {
            Record::Alloc(alloc) => Some(types.descriptor(alloc.ty)) == descriptor,
            _ => false,
        })?;
        match step {
            Some(Step { record: Record::Alloc(alloc), ticket, .. }) => {
                self.teller.born(&alloc, address as usize, in_arena, ticket);
                Ok(())
            }
            _ => Err(self.changed()),
        }
    }

    /// Nothing is reported after a failure.
    fn unless_failed(&mut self, tell: impl FnOnce(&mut Self) -> Result<(), ReplayError>) {
        if self.failed.is_none() {
            self.failed = tell(self).err();
        }
    }
}

impl Observer for Beside<'_> {
    fn tick(&mut self, tick: u64) {
        self.unless_failed(|all| all.tell_while(|step| step.tick < tick));
    }

    fn collection_begins(&mut self) {
        self.unless_failed(|all| {
            all.tell_while(|_| true)?;
            let thread = all.cursor.birth().map(|alloc| alloc.thread);
            all.teller.collection_begins(thread);
            Ok(())
        });
    }

    fn collection_ends(&mut self, used: Amount) {
        self.unless_failed(|all| {
            all.teller.collection_ends(used.objects, used.bytes, all.heap);
            Ok(())
        });
    }

    fn event(&mut self, _operation: u64, event: &Event) {
        self.unless_failed(|all| {
            match *event {
                Event::NewArena { arena: id, name } => all.teller.arena(arena(id), name),
                Event::DeleteArena { arena: id } => all.teller.arena_deleted(arena(id)),
                Event::NewObject { arena: id, object, class, .. } => all.born(arena(id), object, class)?,
                Event::DeleteObject { object, .. } => all.teller.freed(object as usize),
                Event::MoveObject { arena: from, object, new_arena, new_object } => {
                    all.teller.moved(object as usize, arena(from), new_object as usize, arena(new_arena));
                }
            }
            Ok(())
        });
    }

    fn goes_on(&self) -> bool {
        self.failed.is_none()
    }
}
