//! `et-monitor attach`: the agent, loaded into a VM that runs.

use std::path::PathBuf;

use serde_json::json;

use super::backend::Backend;
use super::{CliError, ScanArgs};
use crate::attach;
use et_cli::{print, print_json};

/// In the same folder as the programs, as they are installed.
const LIBRARY: &str = "lib/elephant-tracks/libet_monitor.so";

#[derive(Debug, clap::Args)]
pub(super) struct AttachArgs {
    /// The process
    pid: u32,
    /// The agent [default: libet_monitor.so of this installation]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Options for the agent, as after -agentpath:…=
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    options: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &AttachArgs, scan: &ScanArgs) -> Result<(), CliError> {
    let library = match &args.library {
        Some(library) => library.clone(),
        None => {
            let program = std::env::current_exe().map_err(CliError::Start)?;
            program.ancestors().nth(2).map(|root| root.join(LIBRARY)).unwrap_or_else(|| PathBuf::from(LIBRARY))
        }
    };
    let library = library.canonicalize().map_err(|_| CliError::NoLibrary { path: library })?;
    attach::load(args.pid, &library, &args.options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Start)?;
    let port = runtime.block_on(port_of(args.pid, scan));
    runtime.shutdown_background();
    Ok(match (args.json, port) {
        (true, port) => print_json(&json!({ "pid": args.pid, "port": port })),
        (false, Some(port)) => print(&format!("process {} listens on port {port}\n", args.pid)),
        (false, None) => print(&format!("the agent is in process {}, which has not answered yet\n", args.pid)),
    }?)
}

/// Where it listens, as soon as that is known.
async fn port_of(pid: u32, scan: &ScanArgs) -> Option<u64> {
    for _ in 0..20 {
        if let Ok(backend) = Backend::open(scan).await
            && let Ok((_, vm)) = backend.find(&pid.to_string()).await
        {
            return vm["port"].as_u64();
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    None
}
