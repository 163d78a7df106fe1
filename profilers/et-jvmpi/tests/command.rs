//! The command as it is called: what it refuses, it refuses before an agent is loaded.

use std::fs;
use std::process::{Command, Output};

use et_reader::testing::TraceBuilder;

fn et_jvmpi(arguments: &[&str], folder: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_et-jvmpi")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty.ettrace"), TraceBuilder::new().finish()).unwrap();
    fs::write(folder.path().join("text"), "# Elephant Tracks, dialect et\n# lost 0\n").unwrap();
    fs::write(folder.path().join("no.so"), "no library").unwrap();
    for (arguments, code, said) in [
        (&["none", "--agent", "no.so"][..], 1, "et-jvmpi: cannot read none: "),
        (&["text", "--agent", "no.so"], 1, "et-jvmpi: text: a text lacks the fields "),
        (&["empty.ettrace", "--agent", "no.so:a:b"], 1, "et-jvmpi: cannot load ./no.so: ./no.so: "),
        (&["empty.ettrace", "--agent", "no.so", "--heap", "2x"], 2, "error: "),
        (&["empty.ettrace", "--agent", "no.so", "--collector", "best"], 2, "error: "),
        (&["empty.ettrace"], 2, "error: "),
    ] {
        let output = et_jvmpi(&[&["replay"], arguments].concat(), folder.path());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with(said) && output.stdout.is_empty(), "{arguments:?}: {stderr}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(code == 2 || stderr.lines().count() == 1, "{stderr}");
    }
}
