//! The Firefox Profiler's processed profile format, written with the library of samply's author. A stack is one sample
//! with its weight.

use std::io::{self, BufWriter, Write};
use std::time::{Duration, UNIX_EPOCH};

use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame as Shown, FrameFlags, FrameInfo, Profile, SamplingInterval, StackHandle, Timestamp,
    WeightType,
};

use super::About;
use super::tree::{Frame, Tree};
use super::weight::{Unit, Weight};

/// The library's weights have 32 bits: heavier stacks become several samples. If that would make too many, all weights
/// are expressed in thousands, or in a larger unit.
const PIECES: u64 = 10_000;
const MOST: u64 = i32::MAX as u64;

fn label(frame: &Frame) -> String {
    match (frame.file.rsplit('/').next(), frame.line) {
        (Some(file), line) if !file.is_empty() && line > 0 => format!("{} ({file}:{line})", frame.name),
        _ => frame.name.clone(),
    }
}

fn scale(total: u64) -> u64 {
    let mut scale = 1;
    while total / scale / MOST > PIECES {
        scale *= 1000;
    }
    scale
}

pub fn write(tree: &Tree, weight: Weight, about: &About, out: impl Write) -> io::Result<()> {
    let total = tree.leaves.iter().fold(0u64, |sum, (_, cell)| sum.saturating_add(weight.of(cell)));
    let scale = scale(total);
    let begin = Timestamp::from_millis_since_reference(0.0);
    // Not the time of the run, so that exporting a trace twice gives the same file.
    let start = UNIX_EPOCH + Duration::ZERO;
    let mut profile = Profile::new("Elephant Tracks", start.into(), SamplingInterval::from_millis(1));
    let unit = if scale == 1 { String::new() } else { format!(" / {scale}") };
    // A main thread is displayed under the name of its process.
    let name = format!("{}: {}{unit}", about.program, weight.name());
    let process = profile.add_process(&name, 1, begin);
    let thread = profile.add_thread(process, 1, begin, true);
    profile.set_symbolicated(true);
    profile.set_thread_samples_weight_type(
        thread,
        if weight.unit() == Unit::Bytes { WeightType::Bytes } else { WeightType::Samples },
    );
    let java = profile.add_category("Java", CategoryColor::Green);
    let classes = profile.add_category("Class", CategoryColor::Blue);
    let mut frames = Vec::with_capacity(tree.frames.len());
    for frame in &tree.frames {
        let text = profile.intern_string(&label(frame));
        let category = if frame.is_class { classes } else { java };
        let info = FrameInfo { frame: Shown::Label(text), category_pair: category.into(), flags: FrameFlags::empty() };
        frames.push(profile.intern_frame(thread, info));
    }
    let mut stacks: Vec<StackHandle> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let parent = node.parent.map(|parent| stacks[parent as usize]);
        stacks.push(profile.intern_stack(thread, parent, frames[node.frame as usize]));
    }
    // Samples need timestamps.
    let mut at = 0u64;
    for (node, cell) in &tree.leaves {
        let mut left = weight.of(cell) / scale;
        while left > 0 {
            let piece = left.min(MOST);
            let time = Timestamp::from_millis_since_reference(at as f64);
            let piece_weight = i32::try_from(piece).unwrap_or(i32::MAX);
            profile.add_sample(thread, time, Some(stacks[*node as usize]), CpuDelta::ZERO, piece_weight);
            left -= piece;
            at += 1;
        }
    }
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &profile)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_scaled_only_if_they_must_be() {
        assert_eq!(scale(0), 1);
        assert_eq!(scale(20_000_000_000_000), 1);
        assert_eq!(scale(30_000_000_000_000), 1000);
        assert!(u64::MAX / scale(u64::MAX) / MOST <= PIECES);
    }
}
