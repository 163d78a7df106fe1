//! The example answers what it is asked.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn young(path: &str, text: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_young"));
    let mut program =
        program.arg(path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    program.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    program.wait_with_output().unwrap()
}

#[test]
fn it_says_whose_objects_die_young() {
    let text = "N 1 400 LCache; 0 0 1\n\
                N 2 40 LWord; 0 0 1\n\
                D 2 1\n\
                N 3 40 LWord; 0 0 1\n\
                A 4 100000 [B 0 100000 1\n\
                D 1 1\n\
                D 3 1\n\
                D 4 1\n\
                # lost 0\n";
    let output = young("-", text);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "       bytes   young  class\n     1048576  100.0%  [B\n        1024    0.0%  LCache;\n         128   50.0%  LWord;\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_trace_that_cannot_be_read_is_an_error() {
    let output = young("/nonexistent.ettrace", "");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent.ettrace"));
}
