//! Random programs under every plan: no live object is lost, no dead one survives a full collection, and missing write
//! barriers are detected.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use et_simulate::mmtk::{CollectReport, Plan, TOO_SMALL};
use et_simulate::ops::Op;
use et_simulate::testing::{bytes_of, death, random_program};

/// Allocation between two collections, in bytes.
const BYTES: &str = "102400";

fn collect(ops: &Path, plan: Plan, more: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_et-collect"));
    child.args(["--plan", plan.name()]).args(more);
    child.stdin(File::open(ops).unwrap()).output().unwrap()
}

fn program(folder: &Path, seed: u64, births: usize) -> PathBuf {
    let path = folder.join(format!("{seed}.ops"));
    File::create(&path).unwrap().write_all(&random_program(seed, births)).unwrap();
    path
}

fn report(output: &Output) -> CollectReport {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Arguments that cause a collection after every [`BYTES`]. Collections by `--stress` are full; minor ones result from
/// a small nursery.
fn every(plan: Plan) -> [&'static str; 4] {
    let how = if plan.is_generational() { "--nursery" } else { "--stress" };
    ["--heap", "33554432", how, BYTES]
}

/// Calls `act` with each number up to `count`, on two threads.
fn each(count: u64, act: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::Relaxed)
                    && number < count
                {
                    act(number);
                }
            });
        }
    });
}

fn programs(plan: Plan, count: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (collections, rescued) = (AtomicU64::new(0), AtomicU64::new(0));
    each(count, |seed| {
        let ops = program(folder.path(), seed, 12_000);
        let threads = if seed % 4 == 0 { "2" } else { "1" };
        let args = [&every(plan)[..], &["--check", "--gc-threads", threads]].concat();
        let report = report(&collect(&ops, plan, &args));
        assert_eq!(report.grown.objects, 0);
        assert!(report.is_checked && report.scanned.objects > 0 || plan == Plan::NoGC);
        collections.fetch_add(report.collections, Ordering::Relaxed);
        rescued.fetch_add(report.rescued, Ordering::Relaxed);
        std::fs::remove_file(ops).unwrap();
    });
    let (collections, rescued) = (collections.into_inner(), rescued.into_inner());
    if plan != Plan::NoGC {
        assert!(collections >= 3 * count, "{collections} collections of {count} programs");
        // Cycles that only a local variable holds.
        assert!(rescued > 0);
    }
}

macro_rules! plans {
    ($($name:ident: $plan:ident,)*) => {
        $(
            #[test]
            fn $name() {
                programs(Plan::$plan, 100);
            }
        )*
    };
}

plans! {
    no_gc: NoGC,
    semi_space: SemiSpace,
    gen_copy: GenCopy,
    mark_sweep: MarkSweep,
    mark_compact: MarkCompact,
    compressor: Compressor,
    immix: Immix,
    sticky_immix: StickyImmix,
    gen_immix: GenImmix,
    concurrent_immix: ConcurrentImmix,
}

/// Collectors have size limits, near powers of two, from which they use another space.
#[test]
fn objects_of_any_size_have_a_place() {
    let sizes = (6..=20).flat_map(|power| (-3..=3).map(move |words| ((1i64 << power) + 8 * words) as u64));
    let births =
        (1..).zip(sizes).map(|(handle, size)| Op::Birth { handle, class: 2, size, slots: 0, site: 0, initial: false });
    let mut ops: Vec<Op> = births.collect();
    ops.extend((1..ops.len() as u32).step_by(2).map(death));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sizes.ops");
    File::create(&path).unwrap().write_all(&bytes_of(&ops)).unwrap();
    for plan in Plan::ALL {
        let report = report(&collect(&path, plan, &["--heap", "268435456", "--stress", "1048576", "--check"]));
        assert_eq!(report.grown.objects, 0, "{plan:?}");
    }
}

/// Without its remembered set, a generational collector leaves stale references to young objects in old ones.
#[cfg(feature = "faults")]
#[test]
fn stores_that_are_forgotten_are_found() {
    let folder = tempfile::tempdir().unwrap();
    for plan in [Plan::GenCopy, Plan::GenImmix] {
        let ops = program(folder.path(), 1, 30_000);
        let args = [&every(plan)[..], &["--check"]].concat();
        report(&collect(&ops, plan, &args));
        let output = collect(&ops, plan, &[&args[..], &["--forget-stores"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(et_simulate::mmtk::CHECK_FAILED.into()), "{plan:?}: {said}");
        assert!(said.contains("slot") && said.contains("leads to"), "{said}");
    }
}

#[test]
fn a_heap_that_is_too_small_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let ops = program(folder.path(), 3, 200_000);
    for plan in Plan::ALL {
        let output = collect(&ops, plan, &["--heap", "65536"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(TOO_SMALL.into()), "{plan:?}: {said}");
        assert!(
            said.starts_with(&format!("et-collect: a heap of 64.0 KiB is too small for {}", plan.name())),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// One live object per line of 256 bytes: no line and no block becomes free, and no block has holes, by which Immix
/// selects what to evacuate. The heap overflows unless options make it evacuate every block.
#[test]
fn options_reach_mmtk() {
    let birth = |handle| Op::Birth { handle, class: 2, size: 32, slots: 0, site: 0, initial: false };
    let mut ops: Vec<Op> = Vec::new();
    // Handles of dead objects are reused.
    for kept in 8..40_008 {
        ops.extend((1..8).map(birth));
        ops.push(birth(kept));
        ops.extend((1..8).map(death));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scattered.ops");
    File::create(&path).unwrap().write_all(&bytes_of(&ops)).unwrap();
    let heap = ["--heap", "6291456"];
    let output = collect(&path, Plan::Immix, &heap);
    assert_eq!(output.status.code(), Some(TOO_SMALL.into()), "{}", String::from_utf8_lossy(&output.stderr));
    let told = ["immix_defrag_every_block=true", "immix_defrag_headroom_percent=50"];
    let report = report(&collect(&path, Plan::Immix, &[&heap[..], &["--check"], &told.map(mmtk).concat()].concat()));
    assert_eq!(report.mmtk.iter().map(ToString::to_string).collect::<Vec<_>>(), told);
    assert!(report.copied.objects > 0 && report.is_checked);
}

fn mmtk(option: &str) -> [&str; 2] {
    ["--mmtk", option]
}

#[test]
fn what_is_no_operations_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ops = program(folder.path(), 1, 100);
    let bytes = std::fs::read(&ops).unwrap();
    std::fs::write(&ops, &bytes[..bytes.len() - 1]).unwrap();
    let output = collect(&ops, Plan::Immix, &["--heap", "33554432"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("the operations file is cut off") && said.lines().count() == 1, "{said}");
}
