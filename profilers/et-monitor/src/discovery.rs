//! Finds VMs on this machine: listening loopback ports of DDM, and files written by agents.
//!
//! Avoids unnecessary connections: `/proc/net/tcp` lists listening sockets with their owners. A VM that was started
//! only for a debugger (`-agentlib:jdwp`) is skipped: it accepts a single connection and continues when that ends.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use et_system::peers::Socket;
use rustix::process::geteuid;

/// Where clients of DDM listen.
pub const PORTS: [RangeInclusive<u16>; 2] = [8000..=8040, 8600..=8699];

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listener {
    pub address: SocketAddr,
    /// The socket: another one has another number, though it has the same port.
    pub inode: u64,
    /// The agent trusts clients that have this token; the file that contains it is readable only by its user.
    pub token: Option<String>,
}

/// What to search for.
#[derive(Clone, Debug)]
pub struct Discovery {
    ports: Vec<RangeInclusive<u16>>,
    folder: PathBuf,
}

impl Discovery {
    /// The usual ports, or those given; and the files of agents.
    pub fn new(ports: &[RangeInclusive<u16>]) -> Self {
        Self::of(ports, folder())
    }

    /// The same with another folder.
    pub fn of(ports: &[RangeInclusive<u16>], folder: PathBuf) -> Self {
        let ports = if ports.is_empty() { PORTS.to_vec() } else { ports.to_vec() };
        Self { ports, folder }
    }

    /// All that listens on these ports, and belongs to this user or to root.
    pub fn listeners(&self) -> Vec<Listener> {
        let said = self.said();
        let is_wanted = |port: u16| self.ports.iter().any(|range| range.contains(&port)) || said.contains_key(&port);
        let mine = geteuid().as_raw();
        // One for each port: a socket that takes both kinds of addresses is in one table only.
        let mut found = BTreeMap::new();
        for row in Socket::all().into_iter().filter(|it| it.listens() && is_wanted(it.local.port())) {
            let is_trusted = row.user == mine || row.user == 0 || mine == 0;
            if let (true, Some(address)) = (is_trusted, row.loopback()) {
                let token = said.get(&address.port()).cloned().flatten();
                found.entry(address.port()).or_insert(Listener { address, inode: row.inode, token });
            }
        }
        found.into_values().collect()
    }

    /// Ports that agents have written down, and their tokens.
    fn said(&self) -> BTreeMap<u16, Option<String>> {
        let mut ports = BTreeMap::new();
        if !is_mine(&self.folder) {
            return ports;
        }
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten().take(MOST_FILES) {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            if !is_mine(&entry.path()) || entry.metadata().is_ok_and(|it| it.len() > 4096) {
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            // A killed process leaves its file, and its process id and port may have been reused.
            let is_its = value("start").is_none_or(|start| start.parse().ok() == start_of(pid));
            if let (Some(port), true) = (value("port").and_then(|port| port.parse().ok()), is_its) {
                ports.insert(port, value("token").map(str::to_owned));
            }
        }
        ports
    }
}

/// Files of agents that are read.
const MOST_FILES: usize = 10_000;

/// Whether the file belongs to this user and is not writable by others.
pub fn is_mine(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.uid() == geteuid().as_raw() && it.mode() & 0o022 == 0)
}

/// Start time of a process in ticks since the system was started: field 22 of `/proc/PID/stat`, after a name that may
/// contain anything.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Where agents, and a monitor with its page, say where they are: only this user can write there.
pub fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|it| it.is_absolute() && it.is_dir());
    match runtime {
        Some(runtime) => runtime.join("et-monitor"),
        None => PathBuf::from(format!("/tmp/et-monitor-{}", geteuid().as_raw())),
    }
}

/// Whether the listening process is a VM that only waits for a debugger.
pub fn is_plain_debuggee(listener: &Listener) -> bool {
    let link = format!("socket:[{}]", listener.inode);
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let numbered =
        processes.flatten().filter(|it| it.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    for process in numbered {
        let Ok(open) = fs::read_dir(process.path().join("fd")) else { continue };
        if open.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link.as_str())) {
            let maps = fs::read_to_string(process.path().join("maps")).unwrap_or_default();
            return maps.contains("libjdwp.so")
                && !maps.contains("libet_monitor.so")
                && !maps.contains("libet_runtime.so");
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_listens_on_the_loopback_is_found_and_nothing_else() {
        let there = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = there.local_addr().unwrap().port();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let discovery = Discovery::of(&[port..=port], "/no/such/folder".into());
        let found = discovery.listeners();
        assert_eq!(found.iter().map(|it| it.address).collect::<Vec<_>>(), [there.local_addr().unwrap()]);
        let old = found.first().unwrap().inode;
        drop((there, other));
        assert!(discovery.listeners().is_empty());
        let again = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert_ne!(discovery.listeners().first().unwrap().inode, old, "another socket at the same port");
        drop(again);
    }

    #[test]
    fn ports_are_read_from_files_of_this_user_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let me = std::process::id();
        let start = start_of(me).unwrap();
        fs::write(folder.path().join(me.to_string()), format!("pid={me}\nstart={start}\nport=12345\ntoken=abc\n"))
            .unwrap();
        fs::write(folder.path().join("1"), "pid=1\nstart=99999999999\nport=12346\ntoken=def\n").unwrap();
        fs::write(folder.path().join("monitor"), "port=9\n").unwrap();
        let discovery = Discovery::of(&[], folder.path().to_owned());
        let said = BTreeMap::from([(12345, Some("abc".to_owned()))]);
        assert_eq!(discovery.said(), said, "neither that of an earlier process 1, nor what is no process");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(discovery.said(), BTreeMap::new(), "anybody can write there");
    }
}
