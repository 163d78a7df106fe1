//! End-to-end tests: a Java program is compiled, rewritten, run on a rewritten JDK, and its trace compared with
//! facts that are known by construction.
//!
//! * [`example`] has a project of `examples/` built by its build tool.
//! * [`lab`] finds the tools and the JDKs and makes the test cases, one for each JDK.
//! * [`jvmpi`] runs agents of JVMPI.
//! * [`mockito`] is the library of mocks, where it is installed.
//! * [`compiled`] compiles each program once.
//! * [`program`] takes a program of `tests/java` through all steps.
//! * [`plain_and_traced`] runs a program under many options and compares what is seen.
//! * [`pattern`] has lines with gaps.
//! * [`record`] and [`names`] read what `et-trace text` prints.
//! * [`fate`] reads where a program says its objects die, and compares.
//! * [`hprof`] counts what is in a heap dump.
//! * [`flight`] asks the JDK's Flight Recorder.
//! * [`handovers`] checks the order in which threads hand objects to each other.
//! * [`old_replayers`] replays texts as their readers of old did.
//! * [`trcxml`] reads logs of TPTP's format.
//! * [`window`] cuts out what one call of a method did, and shows it with short names.
//! * [`expect`] reads the records that a program says it leaves.
#![allow(clippy::print_stderr, reason = "tests tell what they do")]

pub mod compiled;
pub mod example;
pub mod expect;
pub mod fate;
pub mod flight;
pub mod handovers;
pub mod hprof;
pub mod jvmpi;
pub mod lab;
pub mod mockito;
pub mod names;
pub mod old_replayers;
pub mod pattern;
pub mod plain_and_traced;
pub mod program;
pub mod record;
pub mod trcxml;
pub mod window;
