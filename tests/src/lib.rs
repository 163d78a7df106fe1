//! End-to-end tests: a Java program is compiled, instrumented, and run on an instrumented JDK, and its trace is
//! compared with facts that are known by construction.
//!
//! * [`example`] builds a project in `examples/` with its build tool.
//! * [`lab`] finds the tools and the JDKs and creates the test cases, one for each JDK.
//! * [`jvmpi`] runs JVMPI agents.
//! * [`mockito`] finds the mock library, where it is installed.
//! * [`compiled`] compiles each program once.
//! * [`program`] runs a program of `tests/java` through all steps.
//! * [`plain_and_traced`] runs a program with many options and compares its behaviour.
//! * [`pattern`] matches lines with wildcards.
//! * [`record`] and [`names`] parse the output of `et-trace text`.
//! * [`fate`] compares deaths with what programs state.
//! * [`hprof`] counts the contents of a heap dump.
//! * [`flight`] reads recordings of the JDK's Flight Recorder.
//! * [`handovers`] checks the order in which threads hand objects to each other.
//! * [`old_replayers`] replays texts like their original readers.
//! * [`trcxml`] reads logs in TPTP's format.
//! * [`window`] extracts the records of one call of a method, and displays them with short names.
//! * [`expect`] reads the records that a program states.
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
