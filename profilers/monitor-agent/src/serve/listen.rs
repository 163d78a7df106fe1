//! Opening the port.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;

/// Port ranges in which monitors search.
const RANGES: [RangeInclusive<u16>; 2] = [8000..=8040, 8600..=8699];

/// Listens on loopback: at that port, or at the first that is free of the ranges, or else at any.
pub fn listen(port: Option<u16>) -> io::Result<TcpListener> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = match port {
        Some(port) => bind(port)?,
        None => RANGES.into_iter().flatten().find_map(|port| bind(port).ok()).map_or_else(|| bind(0), Ok)?,
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_find_different_ports_and_one_that_is_taken_is_an_error() {
        let (one, other) = (listen(None).unwrap(), listen(None).unwrap());
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        assert_ne!(port(&one), port(&other));
        assert!(one.local_addr().unwrap().ip().is_loopback());
        assert!(listen(Some(port(&one))).is_err());
    }
}
