//! Forwards between a debugger and `libjdwp`.
//!
//! A monitor's connection carries both: packets of DDM, which are handled here, and all others, which are forwarded to
//! a second connection, to the VM's own `libjdwp`. Its replies have the ids chosen by the debugger; its events have its
//! own ids, which are in another range than those of DDM.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use et_ddm::packet::{HANDSHAKE, PacketError};
use et_ddm::{Packet, PacketDecoder};

use super::connection::{ENOUGH, MOST_TRUSTED};
use super::exempt::Exempt;

/// State of the second connection.
#[derive(Debug)]
enum Way {
    /// `libjdwp` is being started; these packets wait.
    Opening,
    Open {
        stream: TcpStream,
        decoder: PacketDecoder,
    },
}

/// The forwarding for one debugger.
#[derive(Debug)]
pub struct Debugger {
    /// The connection that it came by.
    pub owner: u64,
    way: Way,
    out: VecDeque<u8>,
    /// Commands that have no reply yet.
    pub waiting: Vec<u32>,
    exempt: Exempt,
}

impl Debugger {
    /// Created for its first packet.
    pub fn new(owner: u64) -> Self {
        Self {
            owner,
            way: Way::Opening,
            out: HANDSHAKE.iter().copied().collect(),
            waiting: Vec::new(),
            exempt: Exempt::default(),
        }
    }

    /// Connects to `libjdwp` on this port.
    pub fn open(&mut self, port: u16) -> io::Result<()> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nonblocking(true)?;
        let _ = stream.set_nodelay(true);
        self.way = Way::Open { stream, decoder: PacketDecoder::new(MOST_TRUSTED) };
        self.waiting.clear();
        self.out.extend(self.exempt.begin());
        self.send()
    }

    /// Forwards a packet to `libjdwp`.
    pub fn forward(&mut self, packet: &Packet) {
        if matches!(self.way, Way::Opening) {
            self.waiting.push(packet.id);
        }
        self.exempt.asked(packet);
        self.out.extend(packet.encode());
    }

    /// Whether it takes no more for now.
    pub fn is_full(&self) -> bool {
        self.out.len() > ENOUGH
    }

    /// The connection to `libjdwp`.
    pub fn stream(&self) -> Option<&TcpStream> {
        match &self.way {
            Way::Open { stream, .. } => Some(stream),
            Way::Opening => None,
        }
    }

    /// Whether something waits to be sent.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Sends as much as possible without blocking.
    pub fn send(&mut self) -> io::Result<()> {
        let Way::Open { stream, .. } = &mut self.way else { return Ok(()) };
        while !self.out.is_empty() {
            let (front, _) = self.out.as_slices();
            match stream.write(front) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what is there. False if `libjdwp` has closed.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let Way::Open { stream, decoder } = &mut self.way else { return Ok(true) };
        match stream.read(buffer) {
            Ok(0) => Ok(false),
            Ok(count) => {
                decoder.push(&buffer[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The next packet for the debugger.
    pub fn packet(&mut self) -> Result<Option<Packet>, PacketError> {
        let Way::Open { decoder, .. } = &mut self.way else { return Ok(None) };
        while let Some(packet) = decoder.next_packet()? {
            let (is_ours, answer) = self.exempt.heard(&packet);
            self.out.extend(answer);
            if !is_ours {
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }
}
