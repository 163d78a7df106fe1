//! The class rewriter, seen from outside: snapshots of rewritten fixtures, classes assembled for the awkward
//! cases, properties, and a JVM that loads and verifies everything.

mod asm;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod edges;
mod fixtures;
mod generated;
mod jvm;
mod properties;
mod refused;
mod snapshots;
mod stacks;
