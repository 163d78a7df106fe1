//! The command: exit codes, errors in one line, a quiet end of a pipe.

#[path = "cli/sql.rs"]
mod sql;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use et_format::event::{Event, Ticket, encode};
use et_format::progress::RunId;
use et_format::{BLOCK_HEADER, BlockKind, Codec, End, Meta, encode_json, file_header, write_block};
use et_names::{Artifact, ArtifactKind, ClassNames, EventSet, MethodId, MethodNames, NamesTable};

fn names() -> Vec<u8> {
    names_of("app.jar", 1)
}

fn names_of(artifact: &str, hash: u64) -> Vec<u8> {
    let artifact =
        Artifact { hash, base: 1, name: artifact.into(), kind: ArtifactKind::Application, events: EventSet::ALL };
    let mut table = NamesTable::new(artifact);
    let main = MethodNames { name: "main".into(), descriptor: "()V".into(), access: 8, line: 1 };
    table.push(&ClassNames { name: "Main".into(), methods: vec![main], ..ClassNames::default() });
    table.encode()
}

/// A trace with this number of calls of a method.
fn trace(calls: u32) -> Vec<u8> {
    trace_with(calls, 0)
}

fn trace_with(calls: u32, lost_events: u64) -> Vec<u8> {
    trace_of(calls, lost_events, &[names()])
}

fn trace_of(calls: u32, lost_events: u64, names: &[Vec<u8>]) -> Vec<u8> {
    let mut events = Vec::new();
    encode(&Event::Ticket(Ticket(1)), &mut events);
    for _ in 0..calls {
        encode(&Event::Entry { method: MethodId(1) }, &mut events);
        encode(&Event::Exit { method: MethodId(1) }, &mut events);
    }
    let mut file = file_header(RunId::default()).to_vec();
    let mut blocks = vec![(BlockKind::Meta, 0, encode_json(&Meta::default()))];
    blocks.extend(names.iter().map(|names| (BlockKind::Names, 0, names.clone())));
    blocks.extend([
        (BlockKind::Events, 1, events),
        (BlockKind::End, 0, encode_json(&End { reason: "VMDeath".into(), lost_events, ..End::default() })),
    ]);
    for (sequence, (kind, thread, raw)) in blocks.into_iter().enumerate() {
        let ticket = Ticket(u64::from(thread));
        write_block(&mut file, kind, Codec::Zstd, thread, sequence as u64, ticket, &raw).unwrap();
    }
    file
}

fn tool(args: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_et-trace")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Without a terminal, lines in a log show progress.
#[test]
fn what_takes_long_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut tool = Command::new(env!("CARGO_BIN_EXE_et-trace"));
    let tool = tool.args(["summary", "-"]).current_dir(folder.path());
    let mut child = tool.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = Instant::now();
    // It waits for a trace.
    assert_eq!(said.next().unwrap().unwrap(), "et-trace: after 10 s: opening the trace");
    assert!(begun.elapsed() >= Duration::from_secs(9));
    child.stdin.take().unwrap().write_all(&trace(3)).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success() && said.next().is_none());
}

#[test]
fn a_good_trace_is_good_to_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ettrace"), trace(3)).unwrap();
    for args in [
        &["summary", "a.ettrace"][..],
        &["summary", "--json", "a.ettrace"],
        &["text", "a.ettrace", "--names", "a.names", "-o", "a.txt"],
        &["text", "a.ettrace"],
        &["validate", "a.ettrace"],
        &["validate", "a.txt"],
        &["validate", "--deaths", "none", "a.ettrace"],
        &["summary", "a.txt", "--with-names", "a.names"],
        &["text", "a.txt", "--dialect", "replayer", "--clock", "et1", "-o", "a.replayer"],
        &["summary", "a.replayer"],
        &["validate", "a.replayer"],
        &["text", "a.replayer", "--dialect", "oracle"],
        &["info", "a.ettrace"],
        &["info", "a.replayer"],
    ] {
        let output = tool(args, folder.path());
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{args:?}");
    }
    let records = fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert!(records.starts_with("# Elephant Tracks, dialect et\nM 1 0 1\nE 1 0 1\n"), "{records}");
    assert!(records.ends_with("# lost 0\n"), "{records}");
    let back = text(&tool(&["text", "a.replayer"], folder.path()).stdout);
    assert_eq!(back, records, "through the other dialect and back");
    let names = fs::read_to_string(folder.path().join("a.names")).unwrap();
    assert_eq!(names, "# Elephant Tracks, names\nC 1 Main 0 I:\nN 1 1 Main main ()V S\nE 1 Main\n");
}

#[test]
fn artifacts_with_the_same_ids_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let names = [names(), names_of("other.jar", 2)];
    fs::write(folder.path().join("a.ettrace"), trace_of(3, 0, &names)).unwrap();
    for command in [&["text"][..], &["summary"], &["report", "-o", "a.html"]] {
        let output = tool(&[command, &["a.ettrace"]].concat(), folder.path());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}");
        assert!(
            said.contains("a.ettrace: warning: artifacts app.jar and other.jar use the same ids: instrument one"),
            "{command:?}: {said}"
        );
    }
}

#[test]
fn a_trace_from_a_pipe_is_read() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_et-trace"))
        .args(["validate", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&trace(2)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && text(&output.stdout).contains("4 records"), "{output:?}");
}

#[test]
fn a_text_from_a_pipe_is_read_and_its_quirks_are_reported() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_et-trace"))
        .args(["text", "-", "--dialect", "replayer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Five fields, and an id that comes again.
    let input = "N a 10 LA; 0 1\nC what\nN a 10 LA; 0 1\nM 7 a 1\nE 7 a 1\n";
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (records, said) = (text(&output.stdout), text(&output.stderr));
    let other = (1u64 << 63) + 1;
    assert!(records.contains(&format!("D 10 1 0\nN {other} ")), "{records}");
    assert!(records.contains(&format!("E 7 1\nD {other} 1 2\n")), "{records}");
    assert_eq!(said.lines().filter(|line| line.contains("standard input: warning: ")).count(), 4, "{said}");
}

#[test]
fn deaths_that_come_too_early_are_reported_with_their_history() {
    let folder = tempfile::tempdir().unwrap();
    let input = "N a 10 LA; 0 0 1\nN b 10 LA; 0 0 1\nU 0 a b 1 1\nD b 1\nM 7 a 1\nE 7 b 1\n# lost 0\n";
    fs::write(folder.path().join("a.txt"), input).unwrap();
    let output = tool(&["validate", "a.txt"], folder.path());
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<_> = found.lines().collect();
    assert!(lines[0].starts_with("4: object b died while a held it [object b: N at 2, U at 3"), "{found}");
    assert!(lines[1].starts_with("6: E 7 b 1: object b is dead [object b: N at 2"), "{found}");
}

#[test]
fn bad_input_is_one_line_and_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("empty", b"");
    write("zip", b"PK\x03\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00");
    write("letter", "Sehr geehrte Damen und Herren, liebe Elefantinnen und Elefanten, größte Grüße".as_bytes());
    let mut newer = trace(1);
    newer[8] = 9;
    write("newer", &newer);
    let mut damaged = trace(1);
    damaged[60] ^= 1;
    write("damaged", &damaged);
    for name in ["missing", "empty", "zip", "letter", "newer", "damaged", "."] {
        for command in ["summary", "text", "validate", "info"] {
            let output = tool(&[command, name], folder.path());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command} {name}: {said}");
            assert_eq!(said.lines().count(), 1, "{command} {name}: {said}");
            assert!(said.starts_with("et-trace: ") && said.contains(name), "{command} {name}: {said}");
        }
    }
}

#[test]
fn no_output_overwrites_the_trace_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ettrace"), trace(3)).unwrap();
    std::os::unix::fs::symlink("a.ettrace", folder.path().join("link")).unwrap();
    for option in ["--names", "--output"] {
        for name in ["a.ettrace", "link"] {
            let output = tool(&["text", "a.ettrace", option, name], folder.path());
            assert_eq!(output.status.code(), Some(1), "{option} {name}");
            assert_eq!(text(&output.stderr).lines().count(), 1, "{option} {name}");
            assert_eq!(fs::read(folder.path().join("a.ettrace")).unwrap(), trace(3), "{option} {name}");
        }
    }
    let output = tool(&["text", "a.ettrace", "--names", "same", "--output", "same"], folder.path());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_cut_off_trace_is_read_and_code_3() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trace(1000);
    for cut in [bytes.len() - 1, bytes.len() - 60] {
        fs::write(folder.path().join("cut.ettrace"), &bytes[..cut]).unwrap();
        for command in ["summary", "text", "validate", "info"] {
            let output = tool(&[command, "cut.ettrace"], folder.path());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{command}: {said}");
            assert_eq!(said.lines().count(), 1, "{command}: {said}");
            assert!(said.contains("trace is cut off after"), "{command}: {said}");
            assert!(!output.stdout.is_empty(), "{command}");
        }
    }
}

#[test]
fn blocks_of_events_that_cannot_be_decoded_are_code_4() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = trace(1000);
    let header = bytes.windows(5).position(|bytes| bytes == b"ETBK\x03").unwrap();
    bytes[header + BLOCK_HEADER] ^= 1;
    fs::write(folder.path().join("damaged.ettrace"), &bytes).unwrap();
    fs::write(folder.path().join("both.ettrace"), &bytes[..bytes.len() - 1]).unwrap();
    for (name, is_cut) in [("damaged.ettrace", false), ("both.ettrace", true)] {
        for command in ["summary", "text"] {
            let output = tool(&[command, name], folder.path());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{command}: {said}");
            assert_eq!(said.lines().count(), 1, "{command}: {said}");
            assert!(said.contains("1 block of events that cannot be decoded"), "{command}: {said}");
            assert_eq!(said.contains("cut off"), is_cut, "{command}: {said}");
            assert!(!output.stdout.is_empty(), "{command}");
        }
        let output = tool(&["validate", name], folder.path());
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains("cannot be decoded"));
    }
}

#[test]
fn lost_events_are_code_4() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lost.ettrace"), trace_with(3, 17)).unwrap();
    for command in ["summary", "text", "info"] {
        let output = tool(&[command, "lost.ettrace"], folder.path());
        assert_eq!(output.status.code(), Some(4), "{command}");
        assert!(text(&output.stderr).contains("17 events that the runtime had no buffer for"), "{command}");
    }
    let sizes = tool(&["info", "--json", "lost.ettrace"], folder.path());
    let sizes: serde_json::Value = serde_json::from_slice(&sizes.stdout).unwrap();
    assert_eq!((sizes["lostEvents"].as_u64(), sizes["eventBytes"].as_u64()), (Some(17), Some(32)), "{sizes}");
    fs::write(folder.path().join("a.txt"), "# Elephant Tracks, dialect et\n").unwrap();
    let text_has_none = tool(&["info", "--json", "a.txt"], folder.path());
    assert!(text(&text_has_none.stderr).contains("a.txt is a text: --json is for traces"), "{text_has_none:?}");
}

#[test]
fn a_cut_off_trace_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trace(1000);
    fs::write(folder.path().join("cut.ettrace"), &bytes[..bytes.len() - 1]).unwrap();
    fs::write(folder.path().join("whole.ettrace"), &bytes).unwrap();
    let output = tool(&["recover", "cut.ettrace", "-o", "new.ettrace"], folder.path());
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert!(text(&output.stdout).contains("new.ettrace: 3 blocks and 0 chunks"), "{}", text(&output.stdout));
    let output = tool(&["validate", "new.ettrace"], folder.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("recovered: trace is cut off after 3 blocks"));
    assert!(text(&tool(&["summary", "new.ettrace"], folder.path()).stdout).contains(", recovered\n"));
    for args in [["whole.ettrace", "x"], ["cut.ettrace", "cut.ettrace"], ["missing", "x"]] {
        let output = tool(&["recover", args[0], "-o", args[1]], folder.path());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{args:?}");
    }
    assert_eq!(fs::read(folder.path().join("cut.ettrace")).unwrap(), bytes[..bytes.len() - 1]);
}

#[test]
fn wrong_usage_is_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&[][..], &["summary"], &["smell", "a"], &["text", "a", "--all-names"]] {
        assert_eq!(tool(args, folder.path()).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_us_quietly_as_other_tools() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ettrace"), trace(300_000)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_et-trace"))
        .args(["text", "a.ettrace"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(141), String::new()));
}

#[test]
fn endless_input_is_refused_at_its_first_bytes() {
    let endless = |bytes: &'static [u8], start: &[u8], expected: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_et-trace"))
            .args(["summary", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // Ends with a closed pipe, or never.
        let _ = input.write_all(start);
        while input.write_all(bytes).is_ok() {}
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{said}");
        output.status.code()
    };
    assert_eq!(endless(&[0; 4096], b"", "not a trace: it does not start with ETTRACE"), Some(1));
    assert_eq!(endless(b"y\n", b"", "line 1: not a record: \"y\""), Some(1));
    assert_eq!(endless(b"N 1 10 LA; 0 0 1 ", b"", "line 1: the line is too long: \"N 1 10"), Some(1));
    // A trace followed by more input is read up to its end.
    assert_eq!(endless(&[0; 4096], &trace(3), "no block starts here"), Some(3));
}

/// The output of a command on a terminal while its trace arrives slowly from a pipe.
fn on_a_terminal(args: &str, folder: &Path) -> (Option<i32>, String) {
    let tool = env!("CARGO_BIN_EXE_et-trace");
    let line = format!("(sleep 5; cat a.ettrace) | '{tool}' {args}");
    // Of util-linux: it gives the command a terminal.
    let mut script = Command::new("script");
    let output = script.args(["-qec", &line, "/dev/null"]).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("script, of util-linux (Debian: bsdutils): {error}"));
    (output.status.code(), text(&output.stdout))
}

#[test]
fn what_takes_long_says_how_far_it_is_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ettrace"), trace(3)).unwrap();
    let commands = [
        "summary -",
        "validate -",
        "text - -o a.txt",
        "report - -o a.html",
        "heap - --at end",
        "export - --to pprof -o a.pb.gz",
        "escape -",
        "diff - a.ettrace",
        "tables - -o a.tables",
    ];
    std::thread::scope(|scope| {
        for args in commands {
            let folder = folder.path();
            scope.spawn(move || {
                let (code, said) = on_a_terminal(args, folder);
                assert_eq!(code, Some(0), "{args}: {said:?}");
                let (_, behind) = said.rsplit_once("opening the trace").unwrap_or_else(|| panic!("{args}: {said:?}"));
                // The bar is taken away again.
                assert!(behind.contains("\x1b[2K"), "{args}: {said:?}");
            });
        }
    });
    // To anything else nothing but the result is written.
    let quiet = tool(&["summary", "a.ettrace"], folder.path());
    assert_eq!(text(&quiet.stderr), "");
}

#[test]
fn outputs_replace_only_their_like() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.ettrace"), trace(3)).unwrap();
    fs::write(at("cut.ettrace"), &trace(3)[..trace(3).len() - 1]).unwrap();
    let text_to = |out: &'static str| ["text", "a.ettrace", "-o", out];
    let names_to = |out: &'static str| ["text", "a.ettrace", "-o", "/dev/null", "--names", out];
    let whole_to = |out: &'static str| ["recover", "cut.ettrace", "-o", out];
    for (args, kind) in
        [(&text_to("x")[..], "text of a trace"), (&names_to("x"), "names file"), (&whole_to("x"), "recovered trace")]
    {
        fs::write(at("x"), "my letters").unwrap();
        let output = tool(args, folder.path());
        let expected =
            format!("et-trace: x exists and is not a {kind}: write to another file, or replace it with --force\n");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected));
        assert_eq!(fs::read_to_string(at("x")).unwrap(), "my letters");
        let forced = tool(&[args, &["--force"]].concat(), folder.path());
        assert_eq!(forced.status.code(), Some(0), "{}", text(&forced.stderr));
        assert_ne!(fs::read(at("x")).unwrap(), b"my letters");
        // An output can be made again.
        assert_eq!(tool(args, folder.path()).status.code(), Some(0));
    }
    fs::write(at("run.ettrace"), trace(9)).unwrap();
    assert_eq!(
        tool(&whole_to("run.ettrace"), folder.path()).status.code(),
        Some(1),
        "a trace of a run is not replaced"
    );
    assert_eq!(fs::read(at("run.ettrace")).unwrap(), trace(9));
}

#[test]
fn an_output_that_fails_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut damaged = trace(3);
    damaged[60] ^= 1;
    fs::write(at("damaged.ettrace"), damaged).unwrap();
    let old = "# Elephant Tracks, dialect et\n# lost 0\n";
    fs::write(at("a.txt"), old).unwrap();
    let wrong = format!("{old}N 1 10 LA; 0 0 1\nN 2 10\n");
    fs::write(at("wrong.txt"), wrong).unwrap();
    for input in ["damaged.ettrace", "wrong.txt"] {
        assert_eq!(tool(&["text", input, "-o", "a.txt"], folder.path()).status.code(), Some(1));
        assert_eq!(fs::read_to_string(at("a.txt")).unwrap(), old);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "nothing is left beside it");
}

#[test]
fn messages_do_no_harm_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let odd = "a\u{1b}[2J\nforged\u{202e}b";
    let shown = "a\\u001b[2J\\u000aforged\\u202eb";
    for args in [&["summary", odd][..], &["summary", "x", odd], &["text", "x", "--dialect", odd]] {
        let output = tool(args, folder.path());
        let said = text(&output.stderr);
        assert!(said.contains(shown) && !said.contains(odd) && !said.contains('\u{1b}'), "{args:?}: {said}");
    }
    fs::write(folder.path().join("a.txt"), "N 1 10 La\\u001b[2J\\u202eb; 0 0 1\n# lost 0\n").unwrap();
    for args in [&["summary", "a.txt"][..], &["summary", "--json", "a.txt"], &["validate", "a.txt"]] {
        let said = text(&tool(args, folder.path()).stdout);
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{args:?}: {said}");
    }
}

#[test]
fn dialect_oracle_is_rejected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ettrace"), trace(3)).unwrap();
    assert_eq!(
        tool(&["text", "a.ettrace", "--dialect", "oracle", "-o", "a.csv"], folder.path()).status.code(),
        Some(0)
    );
    let output = tool(&["summary", "a.csv"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("this is dialect oracle"), "{}", text(&output.stderr));
    assert!(text(&tool(&["summary", "--help"], folder.path()).stdout).contains("a text of dialect et or replayer"));
}

#[test]
fn a_closed_standard_error_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lost.ettrace"), trace_with(3, 17)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_et-trace"))
        .args(["summary", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let trace = fs::read(folder.path().join("lost.ettrace")).unwrap();
    child.stdin.take().unwrap().write_all(&trace).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

/// The file that is kept with a life table under a name that has the form of what is in it in the middle.
fn kept(lives: &Path, start: &str, end: &str) -> PathBuf {
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    };
    let found: Vec<PathBuf> = fs::read_dir(lives).unwrap().map(|entry| entry.unwrap().path()).filter(is_it).collect();
    assert_eq!(found.len(), 1, "{start}…{end}: {found:?}");
    found[0].clone()
}

#[test]
fn a_summary_from_the_life_table_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/reader/tests/traces/version-1.trace"), &path).unwrap();
    let summary = |more: &[&str]| {
        let output = tool(&[&["summary", "a.ettrace"], more].concat(), folder.path());
        assert_eq!(text(&output.stderr), "", "{more:?}");
        text(&output.stdout)
    };
    let ways: [&[&str]; 7] = [
        &[],
        &["--json"],
        &["--long", "--top", "3"],
        &["--top", "1"],
        &["--top", "100000", "--json"],
        &["--clock", "et1", "--json"],
        &["--deaths", "none"],
    ];
    let plain = ways.map(|way| summary(&[way, &["--no-lives"]].concat()));
    assert!(!folder.path().join("a.ettrace.lives").exists());
    for round in ["made", "kept"] {
        for (way, plain) in ways.iter().zip(&plain) {
            assert!(summary(way) == *plain, "{round}: {way:?}");
        }
    }
    let lives = folder.path().join("a.ettrace.lives");
    kept(&lives, "summary-", "-et1.json");
    // A damaged summary is computed again.
    fs::write(kept(&lives, "summary-", "-et.json"), "0123456789abcdef\n{}").unwrap();
    assert!(summary(&[]) == plain[0]);
}

#[test]
fn nothing_is_answered_from_the_life_table_of_a_trace_that_was_damaged_since() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ettrace");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/reader/tests/traces/version-1.trace"), &path).unwrap();
    let ways: [&[&str]; 5] = [
        &["summary", "a.ettrace"],
        &["report", "a.ettrace", "--json"],
        &["validate", "a.ettrace"],
        &["escape", "a.ettrace"],
        &["heap", "a.ettrace", "--at", "50%"],
    ];
    let codes = || ways.map(|way| tool(way, folder.path()).status.code());
    // The trace lacks the names of the JDK, which is a violation.
    let of_whole = [0, 0, 1, 0, 0].map(Some);
    assert_eq!(codes(), of_whole);
    kept(&folder.path().join("a.ettrace.lives"), "report-", ".json");
    // In the middle of a block of events: length, headers and the last block are as they were.
    let whole = fs::read(&path).unwrap();
    let middle = whole.len() / 2;
    let mut bytes = whole.clone();
    bytes[middle..middle + 1000].fill(0x55);
    fs::write(&path, bytes).unwrap();
    for way in ways {
        let (plain, with_table) = (tool(&[way, &["--no-lives"]].concat(), folder.path()), tool(way, folder.path()));
        assert_ne!(with_table.status.code(), Some(0), "{way:?}");
        assert_eq!(with_table.status.code(), plain.status.code(), "{way:?}");
        assert_eq!(text(&with_table.stderr), text(&plain.stderr), "{way:?}");
    }
    fs::write(&path, whole).unwrap();
    assert_eq!(codes(), of_whole);
}

#[test]
fn a_life_table_that_cannot_be_kept_is_a_note() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ettrace"), trace(3)).unwrap();
    fs::write(folder.path().join("file"), "mine").unwrap();
    let output = tool(&["validate", "a.ettrace", "--lives", "file"], folder.path());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "et-trace: note: file exists and is not a life table: nothing is kept\n");
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"mine");
    let output = tool(&["validate", "a.ettrace", "--lives", "elsewhere"], folder.path());
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert!(folder.path().join("elsewhere/lives.json").is_file());
    assert!(!folder.path().join("a.ettrace.lives").exists());
}

/// As where `ulimit -u` or `pids.max` leave no room: stacks so large that no thread can be started.
const NO_THREADS: (&str, &str) = ("RUST_MIN_STACK", "140737488355328");

#[test]
fn without_threads_a_command_works_or_says_so_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.ettrace"), trace(100)).unwrap();
    for (command, can) in [
        (&["info", "t.ettrace"][..], true),
        (&["summary", "t.ettrace"], false),
        (&["validate", "t.ettrace", "--deaths", "none"], false),
        (&["text", "t.ettrace", "-o", "new"], false),
        (&["escape", "t.ettrace"], false),
        (&["report", "t.ettrace", "-o", "new"], false),
        (&["tables", "t.ettrace", "-o", "new"], false),
    ] {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_et-trace"));
        tool.args(command).current_dir(folder.path()).env(NO_THREADS.0, NO_THREADS.1);
        let output = tool.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(i32::from(!can)), "{command:?}: {said}");
        let line = "et-trace: cannot start a thread: ";
        assert_eq!((said.lines().count(), said.starts_with(line)), (usize::from(!can), !can), "{command:?}: {said}");
        assert!(!folder.path().join("new").exists(), "{command:?} leaves something");
    }
}
