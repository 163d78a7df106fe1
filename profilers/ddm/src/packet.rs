//! Packets of JDWP, and the handshake that precedes them.
//!
//! | bytes | command | reply |
//! |---|---|---|
//! | 4 | total length, including these bytes | the same |
//! | 4 | id, which the reply repeats | id of the command |
//! | 1 | flags: 0 | flags: 0x80 |
//! | 2 | command set, command | error code, 0: none |
//! | rest | data | data |

use thiserror::Error;

/// Sent by both sides at first.
pub const HANDSHAKE: &[u8; 14] = b"JDWP-Handshake";
/// The command set of DDM, in the range that JDWP leaves to vendors.
pub const DDM_SET: u8 = 0xc7;
/// The only command in the command set of DDM.
pub const DDM_COMMAND: u8 = 1;
/// Length of the header of a packet in bytes.
pub const HEADER: usize = 11;
/// The error code of commands that a VM does not know: what one that does not speak DDM answers to HELO.
pub const NOT_IMPLEMENTED: u16 = 99;

const REPLY: u8 = 0x80;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A command; in DDM, also what a VM says unasked.
    Command {
        /// Command set.
        set: u8,
        /// Number of the command in its set.
        command: u8,
    },
    /// A reply to the command with the same id.
    Reply {
        /// Error code, 0 for success; always 0 in DDM, which reports failures as chunks.
        error: u16,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// By which a reply finds its command; each side counts its own.
    pub id: u32,
    pub kind: Kind,
    /// The bytes after the header.
    pub data: Vec<u8>,
}

impl Packet {
    /// A command of DDM, or what a VM says unasked.
    pub fn ddm(id: u32, data: Vec<u8>) -> Self {
        Self { id, kind: Kind::Command { set: DDM_SET, command: DDM_COMMAND }, data }
    }

    pub fn reply(id: u32, error: u16, data: Vec<u8>) -> Self {
        Self { id, kind: Kind::Reply { error }, data }
    }

    /// Whether this is a DDM command. A reply can only be recognized by its id.
    pub fn is_ddm(&self) -> bool {
        self.kind == Kind::Command { set: DDM_SET, command: DDM_COMMAND }
    }

    pub fn is_reply(&self) -> bool {
        matches!(self.kind, Kind::Reply { .. })
    }

    /// As it goes over the connection. Data of 4 GiB and more cannot be sent.
    pub fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(HEADER + self.data.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + self.data.len());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&self.id.to_be_bytes());
        match self.kind {
            Kind::Command { set, command } => bytes.extend_from_slice(&[0, set, command]),
            Kind::Reply { error } => {
                bytes.push(REPLY);
                bytes.extend_from_slice(&error.to_be_bytes());
            }
        }
        bytes.extend_from_slice(&self.data);
        bytes
    }
}

/// Why a connection cannot be followed any further: where the next packet begins is not known.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PacketError {
    #[error("the other side does not speak JDWP: it does not begin with JDWP-Handshake")]
    Handshake,
    #[error("a packet claims a length of {length} bytes, less than its header")]
    Short { length: u32 },
    #[error("a packet claims a length of {length} bytes; at most {limit} are accepted")]
    Long { length: u32, limit: usize },
}

/// Splits what arrives into packets. It holds no more than what has arrived and not been taken.
#[derive(Clone, Debug)]
pub struct PacketDecoder {
    bytes: Vec<u8>,
    /// Where the next packet begins.
    start: usize,
    awaits_handshake: bool,
    limit: usize,
}

impl PacketDecoder {
    /// Expects the handshake, then packets of at most `limit` bytes, headers included.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, awaits_handshake: true, limit }
    }

    /// Expects packets from the start.
    pub fn after_handshake(limit: usize) -> Self {
        Self { awaits_handshake: false, ..Self::new(limit) }
    }

    /// Packets may be that long from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds received bytes, which may be any part of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the handshake is complete. Fails as soon as a byte differs; [`PacketDecoder::next_packet`] calls it.
    pub fn shake_hands(&mut self) -> Result<bool, PacketError> {
        if !self.awaits_handshake {
            return Ok(true);
        }
        let there = &self.bytes[self.start..];
        let seen = there.len().min(HANDSHAKE.len());
        if there[..seen] != HANDSHAKE[..seen] {
            return Err(PacketError::Handshake);
        }
        if seen == HANDSHAKE.len() {
            self.start += seen;
            self.awaits_handshake = false;
        }
        Ok(!self.awaits_handshake)
    }

    /// Returns the next packet if it is complete. After an error, nothing more can be decoded.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, PacketError> {
        if !self.shake_hands()? {
            return Ok(None);
        }
        let there = &self.bytes[self.start..];
        let Some(length) = there.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes)) else { return Ok(None) };
        let whole = length as usize;
        if whole < HEADER {
            return Err(PacketError::Short { length });
        }
        if whole > self.limit {
            return Err(PacketError::Long { length, limit: self.limit });
        }
        let Some(packet) = there.get(..whole) else { return Ok(None) };
        let id = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
        let kind = match packet[8] & REPLY {
            0 => Kind::Command { set: packet[9], command: packet[10] },
            _ => Kind::Reply { error: u16::from_be_bytes([packet[9], packet[10]]) },
        };
        let data = packet[HEADER..].to_vec();
        self.start += whole;
        if self.start == self.bytes.len() {
            // A large packet's room is given back.
            self.bytes = Vec::new();
            self.start = 0;
        }
        Ok(Some(Packet { id, kind, data }))
    }

    /// Whether the connection may end here: no packet has begun.
    pub fn is_between_packets(&self) -> bool {
        self.start == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            any::<(u8, u8)>().prop_map(|(set, command)| Kind::Command { set, command }),
            any::<u16>().prop_map(|error| Kind::Reply { error }),
        ]
    }

    proptest! {
        /// However the bytes are cut, the same packets come out.
        #[test]
        fn packets_survive_any_cut(
            packets in prop::collection::vec((any::<u32>(), kind(), prop::collection::vec(any::<u8>(), 0..40)), 0..8),
            cuts in prop::collection::vec(1..50_usize, 1..20),
        ) {
            let packets: Vec<Packet> = packets.into_iter().map(|(id, kind, data)| Packet { id, kind, data }).collect();
            let mut bytes = HANDSHAKE.to_vec();
            packets.iter().for_each(|packet| bytes.extend(packet.encode()));
            let mut decoder = PacketDecoder::new(100);
            let mut decoded = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                let (piece, behind) = rest.split_at((*cut).min(rest.len()));
                decoder.push(piece);
                while let Some(packet) = decoder.next_packet().unwrap() {
                    decoded.push(packet);
                }
                rest = behind;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert!(decoder.is_between_packets());
            prop_assert_eq!(decoded, packets);
        }
    }

    #[test]
    fn a_stranger_is_known_by_its_first_wrong_byte() {
        let mut decoder = PacketDecoder::new(100);
        decoder.push(b"JDWP");
        assert_eq!(decoder.next_packet(), Ok(None));
        decoder.push(b"/1.1");
        assert_eq!(decoder.next_packet(), Err(PacketError::Handshake));
    }

    #[test]
    fn lengths_have_bounds() {
        let of_length = |length: u32| {
            let mut decoder = PacketDecoder::after_handshake(1 << 20);
            decoder.push(&length.to_be_bytes());
            decoder.next_packet()
        };
        assert_eq!(of_length(10), Err(PacketError::Short { length: 10 }));
        assert_eq!(of_length(1 << 20), Ok(None));
        assert_eq!(of_length(0x7fff_ffff), Err(PacketError::Long { length: 0x7fff_ffff, limit: 1 << 20 }));
    }
}
