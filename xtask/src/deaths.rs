//! Compares deaths in a trace with those that the collector reported.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::layout::Tools;

/// The output of `et-trace compare-deaths --json`, even if the command fails because the collector freed objects that are alive in the trace.
pub fn compared(tools: &Tools, trace: &Path) -> Result<Value> {
    let output = Command::new(tools.et_trace())
        .args(["compare-deaths", "--json"])
        .arg(trace)
        .output()
        .context("cannot start et-trace")?;
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).with_context(|| format!("no comparison of {}: {said}", trace.display()))
}

/// Number of objects in all groups of a list.
pub fn objects(report: &Value, list: &str) -> u64 {
    report[list].as_array().into_iter().flatten().filter_map(|group| group["objects"].as_u64()).sum()
}
