//! With a simulated collector: it has the operations of the trace, the agent gets what it does, and the records besides, in step with it.
//!
//! Operations say where the clock stands wherever it has moved on. What happens at a tick is told before anything that a collector does
//! then, and births are births in both.

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

/// What is to be simulated: the collector and how large its heap is.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
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
    /// What became of reading the trace.
    pub ending: Ending,
}

/// Prepares operations, and plays them once to nobody.
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
    /// What is not as it should be in the trace.
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

/// Looks on at the collector.
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

    /// Tells what comes before the next birth, as long as it is wanted.
    fn tell_while(&mut self, is_wanted: impl Fn(&Step) -> bool) -> Result<(), ReplayError> {
        let is_wanted = |step: &Step| !matches!(step.record, Record::Alloc(_)) && is_wanted(step);
        while let Some(step) = self.cursor.next_if(is_wanted)? {
            self.teller.record(&step.record, step.ticket);
        }
        Ok(())
    }

    /// All that is left: no birth.
    fn all(&mut self) -> Result<(), ReplayError> {
        self.tell_while(|_| true)?;
        if self.cursor.peek().is_some() { Err(self.changed()) } else { Ok(()) }
    }

    /// An object gets its address.
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

    /// Once something has failed nothing is told any more.
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
