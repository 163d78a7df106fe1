//! The reports of the collector in the trace.

use et_format::BlockKind;
use et_format::collector::{Collected, Fate};
use et_format::event::{ObjectHash, Ticket};
use rustc_hash::FxHashSet;

use et_reader::file::ReadError;
use et_reader::file::{Block, TraceFile};

/// The collector's side of a comparison. Freed objects are read on demand, since they may be all objects of a run.
#[derive(Debug)]
pub struct Said<'a> {
    file: &'a TraceFile,
    /// Of how many objects it was asked about one.
    pub share: u32,
    /// Blocks that name freed objects, in order of the collections.
    freed: Vec<(Ticket, Block)>,
    /// Start of the collection after which it was asked what it held.
    pub held_by: Option<Ticket>,
    /// What it held at the end; `None` if there was no report then.
    pub held: Option<FxHashSet<u32>>,
}

impl<'a> Said<'a> {
    /// `None` if there are no reports.
    pub fn read(file: &'a TraceFile) -> Result<Option<Self>, ReadError> {
        let mut said = Self { file, share: 1, freed: Vec::new(), held_by: None, held: None };
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
        Ok((said.held.is_some() || !said.freed.is_empty()).then_some(said))
    }

    /// Starts of the collections that freed something.
    pub fn collections(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.freed.iter().map(|&(by, _)| by)
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
