//! `et-monitor serve`: the page, until it is interrupted.

use std::future::IntoFuture;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::place::{self, Running};
use super::{CliError, PROGRAM, ScanArgs};
use crate::monitor::{DebuggerPorts, Monitor, SELECTED_PORT};
use crate::web::{self, App};
use et_cli::write_out;

/// Where the page is if nothing else is there.
const PAGE_PORT: u16 = 8790;

#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// Port of the page; 0: any that is free [default: 8790, or any that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Port where debuggers find the selected VM; each VM also has its own port above it
    #[arg(long, value_name = "PORT", default_value_t = SELECTED_PORT)]
    debugger_port: u16,
    /// Do not accept debuggers
    #[arg(long, conflicts_with = "debugger_port")]
    no_debugger: bool,
}

impl Default for ServeArgs {
    fn default() -> Self {
        Self { port: None, debugger_port: SELECTED_PORT, no_debugger: false }
    }
}

pub(super) async fn run(args: &ServeArgs, scan: &ScanArgs) -> Result<(), CliError> {
    if let Some(running) = place::find() {
        return Err(CliError::AlreadyRuns { pid: running.pid, url: running.url() });
    }
    let listener = et_web::listen(args.port, PAGE_PORT).await;
    let listener = listener.map_err(|et_web::PortError { port, source }| CliError::Port { port, source })?;
    let port = listener.local_addr().map_err(CliError::Start)?.port();
    let token = web::new_token().map_err(CliError::Start)?;
    let running = Running { pid: std::process::id(), port, token: token.as_str().to_owned() };
    let announced = place::announce(&running);
    if let Err(error) = &announced {
        PROGRAM.say(format_args!("warning: other et-monitor commands will not find this one: {error}"));
    }
    let ports = (!args.no_debugger).then_some(DebuggerPorts { selected: args.debugger_port });
    let monitor = Monitor::new(ports);
    let folder = std::env::current_dir().map_err(CliError::Start)?;
    let app = Arc::new(App { monitor: monitor.clone(), token, port: Some(port), folder });
    let mut terminated = signal(SignalKind::terminate()).map_err(CliError::Start)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(CliError::Start)?;
    write_out(&format!("{}\n", running.url()))?;
    let served = axum::serve(listener, web::router(app)).into_future();
    tokio::select! {
        served = served => served.map_err(CliError::Start)?,
        () = monitor.run(scan.discovery()) => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    drop(announced);
    Ok(())
}
