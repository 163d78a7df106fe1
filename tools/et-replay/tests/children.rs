//! If a replay is killed, its child processes end too.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Polls until `look` returns a value, for at most two minutes.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing happened");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn children_end_with_a_replay_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::copy(env!("CARGO_BIN_EXE_et-replay"), place("et-replay")).unwrap();
    // A stand-in for `et-collect`: it writes its process id and sleeps for longer than the test waits.
    fs::write(place("et-collect"), "#!/bin/sh\necho $$ > pid.new && mv pid.new pid && exec sleep 150\n").unwrap();
    fs::set_permissions(place("et-collect"), PermissionsExt::from_mode(0o755)).unwrap();
    let text = "timestamp,event_type,object_id,size,site_id,thread_id,type_id\n0,alloc,1,16,1,1,1\n";
    fs::write(place("t.csv"), text).unwrap();
    let mut replay = Command::new(place("et-replay"));
    let mut replay = replay.args(["collect", "t.csv", "--plan", "Immix"]).current_dir(folder.path()).spawn().unwrap();
    let child: u32 = until(|| fs::read_to_string(place("pid")).ok()?.trim().parse().ok());
    let is_there = || Path::new(&format!("/proc/{child}/exe")).read_link().is_ok();
    assert!(is_there());
    replay.kill().unwrap();
    replay.wait().unwrap();
    until(|| (!is_there()).then_some(()));
}
