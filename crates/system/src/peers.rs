//! Determines the user at the other end of a local connection: every user of the machine can connect to a port on the
//! loopback interface, and only the system knows which one did.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::geteuid;

/// Connection states by their numbers in the system's tables.
const ESTABLISHED: u8 = 0x01;
const LISTENS: u8 = 0x0A;

/// Number of attempts: a table that changes while it is read may lack a row.
const TRIES: usize = 3;

/// A row of the system's tables of TCP sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Local address.
    pub local: SocketAddr,
    /// Remote address; port 0 if there is none.
    pub remote: SocketAddr,
    state: u8,
    /// User id of the owner in the user namespace of this process.
    pub user: u32,
    /// Inode, which distinguishes it from other sockets with the same port.
    pub inode: u64,
}

impl Socket {
    /// All IPv4 and IPv6 sockets; a protocol that the machine does not support has none.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (table, is_v6) in [("/proc/net/tcp", false), ("/proc/net/tcp6", true)] {
            let text = fs::read_to_string(table).unwrap_or_default();
            all.extend(text.lines().skip(1).filter_map(|line| Self::read(line, is_v6)));
        }
        all
    }

    fn read(line: &str, is_v6: bool) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(Self {
            local: address(words.get(1)?, is_v6)?,
            remote: address(words.get(2)?, is_v6)?,
            state: u8::from_str_radix(words.get(3)?, 16).ok()?,
            user: words.get(7)?.parse().ok()?,
            inode: words.get(9)?.parse().ok()?,
        })
    }

    /// Whether it listens for connections.
    pub fn listens(&self) -> bool {
        self.state == LISTENS
    }

    /// The address at which a listening socket can be reached on the loopback interface.
    pub fn loopback(&self) -> Option<SocketAddr> {
        match self.local.ip() {
            it if it.is_loopback() => Some(self.local),
            it if it.is_unspecified() => Some((Ipv4Addr::LOCALHOST, self.local.port()).into()),
            _ => None,
        }
    }
}

/// Parses an address: 32-bit words in the byte order of the processor, then the port.
fn address(text: &str, is_v6: bool) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = if is_v6 {
        let mut bytes = [0; 16];
        for at in 0..4 {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at)?);
        }
        let v6 = Ipv6Addr::from(bytes);
        v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
    } else {
        IpAddr::V4(Ipv4Addr::from(word(0)?))
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// The user at the other end of a connection from `peer` to `here`.
///
/// `None` if the other end has been closed, even partially: the system reports a socket that no process has open as
/// owned by root. Compares both addresses, since two connections to different ports may have the same source.
fn user_of(sockets: &[Socket], peer: SocketAddr, here: SocketAddr) -> Option<u32> {
    let is_its = |it: &&Socket| it.local == peer && it.remote == here && it.state == ESTABLISHED;
    sockets.iter().find(is_its).map(|it| it.user)
}

/// Whether the other end of a connection from `peer` to `here` belongs to this user or to root.
pub fn is_trusted(peer: SocketAddr, here: SocketAddr) -> bool {
    let mine = geteuid().as_raw();
    let user = (0..TRIES).find_map(|_| user_of(&Socket::all(), peer, here));
    user.is_some_and(|user| user == mine || user == 0)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_peer_is_known_by_its_user() {
        let there = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = there.local_addr().unwrap();
        let client = TcpStream::connect(here).unwrap();
        let (_accepted, peer) = there.accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(is_trusted(peer, here));
        // There is no such connection.
        assert!(!is_trusted("127.0.0.1:1".parse().unwrap(), here));
        assert!(!is_trusted(peer, "127.0.0.1:1".parse().unwrap()), "a connection to somebody else");
    }

    #[test]
    fn a_closed_connection_belongs_to_no_user() {
        let there = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = there.local_addr().unwrap();
        let client = TcpStream::connect(here).unwrap();
        let (_accepted, peer) = there.accept().unwrap();
        // Its data has not been read yet; the system reports the socket as owned by root.
        drop(client);
        assert!(!is_trusted(peer, here));
    }

    #[test]
    fn rows_of_both_tables() {
        let v4 = "   0: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0";
        let row = Socket::read(v4, false).unwrap();
        assert_eq!((row.loopback().unwrap().to_string(), row.user, row.inode), ("127.0.0.1:8000".into(), 1000, 4242));
        assert!(!row.listens());
        assert_eq!(user_of(&[row], row.local, row.remote), Some(1000));
        assert_eq!(user_of(&[Socket { state: 0x04, user: 0, ..row }], row.local, row.remote), None, "half closed");
        let v6 =
            "   0: 0000000000000000FFFF00000100007F:2198 00000000000000000000000000000000:0000 0A 0:0 00:0 0  0  0 7 1";
        let row = Socket::read(v6, true).unwrap();
        assert_eq!((row.loopback().unwrap().to_string(), row.listens()), ("127.0.0.1:8600".into(), true));
        let far = v4.replacen("0100007F", "0101A8C0", 1);
        assert_eq!(Socket::read(&far, false).unwrap().loopback(), None);
    }
}
