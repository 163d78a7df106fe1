//! The reports of the collector in the trace, or what walks through the heap found after collections.

use et_format::BlockKind;
use et_format::collector::{Collected, Fate};
use et_format::event::{ObjectHash, Ticket};
use rustc_hash::FxHashSet;

use et_reader::file::ReadError;
use et_reader::file::{Block, TraceFile};
use et_reader::survival;

/// The collector's side of a comparison. Freed objects are read on demand, since they may be all objects of a run.
#[derive(Debug)]
pub struct Said<'a> {
    file: &'a TraceFile,
    /// Of how many objects it was asked about one.
    pub share: u32,
    /// Blocks that name freed objects, in order of the collections.
    freed: Vec<(Ticket, Block)>,
    /// If there are no reports: blocks with what walks found, in their order.
    walks: Vec<(Ticket, Block)>,
    /// Start of the collection after which it was asked what it held.
    pub held_by: Option<Ticket>,
    /// What it held at the end; `None` if there was no report then.
    pub held: Option<FxHashSet<u32>>,
}

impl<'a> Said<'a> {
    /// `None` if there are neither reports nor walks.
    pub fn read(file: &'a TraceFile) -> Result<Option<Self>, ReadError> {
        let mut said = Self { file, share: 1, freed: Vec::new(), walks: Vec::new(), held_by: None, held: None };
        for block in file.of_kind(BlockKind::Collector) {
            for record in decode(file, block)? {
                said.share = record.share.max(1);
                match record.fate {
                    Fate::Freed => said.freed.push((record.by, *block)),
                    Fate::Held => {
                        said.held_by = Some(record.by);
                        said.held.get_or_insert_default().extend(record.objects.iter().map(|object| object.0));
                    }
                }
            }
        }
        said.freed.sort_by_key(|&(by, block)| (by, block.header.sequence));
        said.freed.dedup_by_key(|&mut (by, block)| (by, block.header.sequence));
        if said.held.is_none() && said.freed.is_empty() {
            said.read_walks()?;
        }
        Ok((said.held.is_some() || !said.freed.is_empty() || !said.walks.is_empty()).then_some(said))
    }

    fn read_walks(&mut self) -> Result<(), ReadError> {
        let (walks, mut last) = (&mut self.walks, None);
        survival::each_walk(self.file, |walk, blocks, _| {
            walks.extend(blocks.iter().map(|&&block| (walk.begin, block)));
            last = Some(walk);
        })?;
        // What else the last one finds is not held.
        if let Some(last) = last.filter(|last| last.at_the_end && last.is_exact) {
            self.held_by = Some(last.begin);
            self.held = self.found_at(last.begin)?;
        }
        Ok(())
    }

    /// Starts of the collections that freed something, or of walks.
    pub fn collections(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.freed.iter().chain(&self.walks).map(|&(by, _)| by)
    }

    /// Whether walks say what was freed.
    pub fn is_by_walks(&self) -> bool {
        !self.walks.is_empty()
    }

    /// What a walk found that began there; `None` if none did.
    pub fn found_at(&self, begin: Ticket) -> Result<Option<FxHashSet<u32>>, ReadError> {
        let first = self.walks.partition_point(|&(at, _)| at < begin);
        let parts = self.walks[first..].iter().take_while(|&&(at, _)| at == begin);
        let mut found = None;
        for (_, block) in parts {
            let part = survival::decode(self.file, block)?;
            found.get_or_insert_with(FxHashSet::default).extend(part.objects.iter().map(|object| object.0));
        }
        Ok(found)
    }

    /// Calls `visit` with each object that the collection which began there may have freed, and no earlier one has.
    pub fn freed_by(&self, by: Ticket, mut visit: impl FnMut(ObjectHash)) -> Result<(), ReadError> {
        let first = self.freed.partition_point(|&(at, _)| at < by);
        for (_, block) in self.freed[first..].iter().take_while(|&&(at, _)| at == by) {
            for record in decode(self.file, block)?.into_iter().filter(|said| (said.fate, said.by) == (Fate::Freed, by))
            {
                record.objects.into_iter().for_each(&mut visit);
            }
        }
        Ok(())
    }

    /// Whether it was asked about objects with that id.
    pub fn asked(&self, hash: u32) -> bool {
        hash.is_multiple_of(self.share)
    }
}

fn decode(file: &TraceFile, block: &Block) -> Result<Vec<Collected>, ReadError> {
    Collected::decode_block(&file.unpack(block)?).map_err(|source| file.block_error(block, source))
}
