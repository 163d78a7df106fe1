//! Measures how well the events of a trace are packed, and how long it takes.
//!
//! ```text
//! cargo run --release -p et-reader --example packing -- app.ettrace
//! ```

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use et_format::event;
use et_format::packing::{Packer, Unpacker};
use et_reader::TraceFile;
use zstd::bulk::Compressor;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        println!("{path}: {}", measure(Path::new(&path))?);
    }
    Ok(())
}

/// Runs a function several times and adds the time of the fastest run in seconds: other processes share the caches and
/// cores.
fn timed<T>(seconds: &mut f64, mut run: impl FnMut() -> T) -> T {
    let mut once = || {
        let start = Instant::now();
        let result = run();
        (start.elapsed().as_secs_f64(), result)
    };
    let (mut least, mut result) = once();
    for _ in 1..RUNS {
        let (took, again) = once();
        (least, result) = (least.min(took), again);
    }
    *seconds += least;
    result
}

const RUNS: usize = 5;
/// Levels of zstd: the writer's default, and the one that it uses in a hurry.
const LEVELS: [i32; 2] = [1, -3];
/// Maximum number of bytes of events to examine; the sample is spread over the trace.
const SAMPLE: u64 = 50 << 20;

fn measure(path: &Path) -> Result<String, Box<dyn Error>> {
    let file = TraceFile::open(path)?;
    let all: u64 = file
        .threads()
        .iter()
        .flat_map(|thread| (0..thread.len()).map(move |piece| (thread, piece)))
        .map(|(thread, piece)| file.event_bytes(thread, piece))
        .sum();
    let every = (all / SAMPLE).max(1) as usize;
    let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
    let (mut raw, mut packed, mut back) = (Vec::new(), Vec::new(), Vec::new());
    let [mut usual, mut hurried] = [Compressor::new(LEVELS[0])?, Compressor::new(LEVELS[1])?];
    let (mut events, mut bytes) = (0, [0; 5]);
    let mut seconds = [0.0; 5];
    for thread in file.threads() {
        for piece in (0..thread.len()).step_by(every) {
            file.load_events(thread, piece, &mut raw)?;
            events += event::count(&raw);
            let is_packed = timed(&mut seconds[0], || {
                packed.clear();
                packer.pack(&raw, &mut packed)
            });
            if !is_packed {
                return Err("these are no whole events".into());
            }
            back.resize(raw.len(), 0);
            timed(&mut seconds[1], || unpacker.unpack(&packed, &mut back))?;
            if raw != back {
                return Err(format!("piece {piece} of thread {} comes back otherwise", thread.thread).into());
            }
            let lengths = [
                raw.len(),
                packed.len(),
                timed(&mut seconds[2], || usual.compress(&raw))?.len(),
                timed(&mut seconds[3], || usual.compress(&packed))?.len(),
                timed(&mut seconds[4], || hurried.compress(&packed))?.len(),
            ];
            bytes.iter_mut().zip(lengths).for_each(|(sum, len)| *sum += len);
        }
    }
    let [raw, packed, zstd, packed_zstd, packed_hurried] = bytes.map(|bytes| bytes as f64 / events as f64);
    let [pack, unpack, to_zstd, packed_to_zstd, packed_to_hurried] = seconds.map(|it| it * 1e9 / events as f64);
    Ok(format!(
        "{:.1} M events; bytes an event: {raw:.2} as they are, {zstd:.2} with zstd, {packed:.2} packed, {packed_zstd:.2} packed \
         with zstd, {packed_hurried:.2} in a hurry; ns an event: pack {pack:.1}, unpack {unpack:.1}, zstd {to_zstd:.1}, zstd of \
         packed {packed_to_zstd:.1}, in a hurry {packed_to_hurried:.1}",
        events as f64 / 1e6
    ))
}
