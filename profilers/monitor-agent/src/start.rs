//! The VM is up, and the VM goes down.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use et_jvm::env::Env;
use et_jvm::hotspot::HotSpot;
use et_jvm::jvmti::EventKind;
use et_jvm::sync::lock;

use crate::discovery::{self, Entry, Published};
use crate::options::Debugging;
use crate::state::{Monitor, say};
use crate::{monitors, profile, programs, serve, threads, work};

static PUBLISHED: Mutex<Option<Published>> = Mutex::new(None);

/// Android's `waitForDebugger` continues when the debugger has been silent for about this long, since it has then set
/// its breakpoints.
const SETTLED: Duration = Duration::from_millis(1300);

/// Called when the VM is live. Returns false if the port could not be opened.
pub fn begin(monitor: &'static Monitor, env: Env) -> bool {
    match try_begin(monitor, env) {
        Ok(()) => true,
        Err(why) => {
            monitor.set_live(false);
            monitor.end_tasks();
            say(&why);
            false
        }
    }
}

fn try_begin(monitor: &'static Monitor, env: Env) -> Result<(), String> {
    let jvmti = monitor.jvmti;
    let release = jvmti.system_property(c"java.specification.version").unwrap_or_default();
    if let Some(hotspot) = HotSpot::find(env, &release) {
        let _ = monitor.hotspot.set(hotspot);
        monitor.look_at_collector(env);
    }
    let [name, version] =
        [c"java.vm.name", c"java.vm.version"].map(|name| jvmti.system_property(name).unwrap_or_default());
    let _ = monitor.vm_name.set(format!("{name} v{version}"));
    let command = jvmti.system_property(c"sun.java.command").unwrap_or_default();
    monitor.set_name(monitor.options.name.clone().unwrap_or_else(|| program_name(&command)));
    let listener = if monitor.options.is_deaf { None } else { Some(listen(monitor.options.port)?) };
    let token = discovery::new_token().map_err(|error| format!("cannot read /dev/urandom: {error}"))?;
    if let Some(xml) = &monitor.xml {
        let options = std::env::var("JAVA_TOOL_OPTIONS").unwrap_or_default();
        xml.begin(&command, &options);
    }
    work::start(monitor, env).map_err(|error| format!("cannot start its thread: {error}"))?;
    monitor.set_live(true);
    programs::find(monitor, env);
    events(monitor, env)?;
    let Some((listener, port)) = listener else {
        return serve::start(monitor, None, token, false).map_err(|error| format!("cannot start a thread: {error}"));
    };
    let waits = monitor.options.debugging == Debugging::Wait;
    let entry = Entry {
        port,
        token: token.clone(),
        name: monitor.name(),
        java: jvmti.system_property(c"java.version").unwrap_or_default(),
        is_debuggable: monitor.jdwp.is_some(),
    };
    serve::start(monitor, Some(listener), token, waits).map_err(|error| format!("cannot start a thread: {error}"))?;
    let folder = discovery::folder();
    match Published::new(&folder, &entry) {
        Ok(published) => *lock(&PUBLISHED) = Some(published),
        Err(error) => say(&format!("cannot use {}: {error}; monitors need the port", folder.display())),
    }
    if !monitor.options.is_quiet {
        let waits = if waits { ", waiting for a debugger" } else { "" };
        say(&format!("listening on 127.0.0.1:{port}{waits}"));
    }
    if waits {
        wait(monitor);
    }
    Ok(())
}

/// Opens the port for monitors.
fn listen(port: Option<u16>) -> Result<(TcpListener, u16), String> {
    let listener = serve::listen(port).map_err(|error| match port {
        Some(port) => format!("cannot listen on 127.0.0.1:{port}: {error}"),
        None => format!("cannot listen on 127.0.0.1: {error}"),
    })?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    Ok((listener, port))
}

/// The program's main class, or its jar.
fn program_name(command: &str) -> String {
    let first = command.split_whitespace().next().unwrap_or("?");
    // A module is followed by a slash and its main class.
    Path::new(first).file_name().map_or_else(|| first.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn events(monitor: &'static Monitor, env: Env) -> Result<(), String> {
    for kind in [
        EventKind::ThreadStart,
        EventKind::ThreadEnd,
        EventKind::GarbageCollectionStart,
        EventKind::GarbageCollectionFinish,
    ] {
        monitor.jvmti.set_event(kind, true).map_err(|error| error.to_string())?;
    }
    if monitor.xml.is_some() {
        env.frame(64, |env| {
            for (number, thread) in threads::all(monitor, env) {
                threads::define(monitor, env, thread, number);
            }
        });
        monitors::switch(monitor, true).map_err(|error| error.to_string())?;
    }
    if monitor.options.heap {
        profile::start(monitor, env).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn wait(monitor: &Monitor) {
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let last = monitor.hub.last_debugger_packet_ms.load(Ordering::Relaxed);
        if last > 0 && crate::time::millis().saturating_sub(last) > SETTLED.as_millis() as u64 {
            return;
        }
    }
}

/// Called at VM shutdown.
pub fn end(monitor: &'static Monitor, env: Env) {
    if !monitor.is_live() {
        return;
    }
    if let Some(xml) = &monitor.xml {
        if monitor.options.dumps_at_end
            && let Err(error) = work::log_heap(monitor, env, xml, "end")
        {
            say(&format!("the heap cannot be dumped: {error}"));
        }
        monitor.set_live(false);
        xml.end();
        if let Some(why) = xml.flush() {
            say(&why);
        }
    }
    monitor.set_live(false);
    monitor.end_tasks();
    drop(lock(&PUBLISHED).take());
    monitor.hub.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_by_class_or_jar() {
        for (command, name) in [
            ("com.acme.Main a b", "com.acme.Main"),
            ("/opt/shop/shop.jar --x", "shop.jar"),
            ("m/a.B", "a.B"),
            ("", "?"),
        ] {
            assert_eq!(program_name(command), name);
        }
    }
}
