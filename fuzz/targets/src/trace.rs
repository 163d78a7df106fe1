//! Traces: a trace file and perhaps the buffer file that lay beside it.

use std::io;

use et_trace::file::format::{BLOCK_HEADER, BLOCK_MAGIC, BlockKind, buffers, write_block};
use et_trace::file::{ReadError, TraceFile};
use et_trace::source::{Reading, Source};
use et_trace::text::Dialect;
use et_trace::{Trace, summary, text, validate};

use crate::{Plain, Random, Target};

/// Trace files, a buffer file behind them.
pub const TARGET: Target = Target { name: "trace", memory_ratio: 1 << 17, run, mutate: Some(mutate) };

/// The trace and the buffer file behind it.
fn split(data: &[u8]) -> (&[u8], Option<&[u8]>) {
    let magic = buffers::MAGIC;
    match data.windows(magic.len()).position(|window| window == magic) {
        Some(at) => (&data[..at], Some(&data[at..])),
        None => (data, None),
    }
}

fn run(data: &[u8]) {
    let _ = read(data);
}

fn read(data: &[u8]) -> Result<(), ReadError> {
    let (trace, buffers) = split(data);
    let trace = Trace::from_file(TraceFile::from_bytes(trace.to_vec(), buffers.map(<[u8]>::to_vec))?)?;
    let _ = summary::info(&trace);
    let _ = validate::trace(&trace, 3);
    let source = Source::Trace(Box::new(trace));
    if let Ok(summary) = summary::summarize(&source, Reading::default(), 5) {
        let _ = summary::render(&summary);
    }
    let _ = text::write(&source, Dialect::Et, Reading::default(), io::sink());
    Ok(())
}

/// Changes the content of one block and packs it again.
fn mutate(data: &[u8], random: &mut Random, plain: Plain<'_>) -> Option<Vec<u8>> {
    let (trace, buffers) = split(data);
    let file = TraceFile::from_bytes(trace.to_vec(), None).ok()?;
    let chosen = random.below(file.blocks().len());
    let mut out = trace.get(..file.blocks().first()?.at - BLOCK_HEADER)?.to_vec();
    for (index, block) in file.blocks().iter().enumerate() {
        let header = block.header;
        let end = block.at + header.stored_len as usize;
        if index != chosen {
            out.extend_from_slice(&trace[block.at - BLOCK_HEADER..end]);
            continue;
        }
        let mut raw = file.unpack(block).ok()?.into_owned();
        if header.kind == BlockKind::Names {
            raw = crate::names::mutate(&raw, random, plain)?;
        } else if header.kind == BlockKind::Events && random.one_in(2) && raw.len() >= 4 {
            // Another value in a word: few of them make sense.
            let at = 4 * random.below(raw.len() / 4);
            let value = if random.one_in(2) { random.below(16) } else { random.number() as usize };
            raw[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        } else {
            plain(&mut raw);
        }
        for _ in 0..=usize::from(random.one_in(8)) {
            let (kind, codec) = (header.kind, header.codec);
            write_block(&mut out, kind, codec, header.thread, header.sequence, header.first_ticket, &raw);
        }
    }
    debug_assert!(out.windows(4).any(|window| window == BLOCK_MAGIC));
    out.extend_from_slice(buffers.unwrap_or_default());
    Some(out)
}
