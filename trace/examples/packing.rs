//! Measures how the events of a trace are packed, and what that takes.
//!
//! ```text
//! cargo run --release -p et-trace --example packing -- app.ettrace
//! ```

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use et_trace::TraceFile;
use et_trace::event;
use et_trace::file::packing::{Packer, Unpacker};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        println!("{path}: {}", measure(Path::new(&path))?);
    }
    Ok(())
}

/// Runs it, and adds the seconds that took.
fn timed<T>(seconds: &mut f64, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    *seconds += start.elapsed().as_secs_f64();
    result
}

/// Most bytes of events to look at: they are spread over the trace.
const SAMPLE: u64 = 500 << 20;

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
    let (mut events, mut bytes) = (0, [0; 4]);
    let mut seconds = [0.0; 4];
    for thread in file.threads() {
        for piece in (0..thread.len()).step_by(every) {
            file.load_events(thread, piece, &mut raw)?;
            events += event::count(&raw);
            packed.clear();
            if !timed(&mut seconds[0], || packer.pack(&raw, &mut packed)) {
                return Err("these are no whole events".into());
            }
            back.resize(raw.len(), 0);
            timed(&mut seconds[1], || unpacker.unpack(&packed, &mut back))?;
            if raw != back {
                return Err(format!("piece {piece} of thread {} comes back otherwise", thread.thread).into());
            }
            let raw_zstd = timed(&mut seconds[2], || zstd::bulk::compress(&raw, 1))?;
            let packed_zstd = timed(&mut seconds[3], || zstd::bulk::compress(&packed, 1))?;
            for (sum, len) in bytes.iter_mut().zip([raw.len(), packed.len(), raw_zstd.len(), packed_zstd.len()]) {
                *sum += len;
            }
        }
    }
    let [raw, packed, raw_zstd, packed_zstd] = bytes.map(|bytes| bytes as f64 / events as f64);
    let [pack, unpack, zstd, zstd_packed] = seconds.map(|seconds| seconds * 1e9 / events as f64);
    Ok(format!(
        "{:.1} M events; bytes an event: {raw:.2} as they are, {raw_zstd:.2} with zstd, {packed:.2} packed, {packed_zstd:.2} packed \
         with zstd; ns an event: pack {pack:.1}, unpack {unpack:.1}, zstd {zstd:.1}, zstd of packed {zstd_packed:.1}",
        events as f64 / 1e6
    ))
}
