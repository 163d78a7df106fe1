//! The protocol of the Dalvik Debug Monitor (DDM), both directions: what a monitor and a VM say to each other over a connection of
//! JDWP, the Java Debug Wire Protocol.
//!
//! From the outside in:
//!
//! * [`packet`]: the handshake and the packets of JDWP, decoded piece by piece as bytes arrive. Packets of debuggers look the same;
//!   what belongs to DDM has a command set of its own.
//! * [`chunk`]: what is in a packet of DDM: one or more chunks, each a type and bytes; some compressed ([`chunk::zlib`]).
//! * [`request`] and [`message`]: chunks as types, from the monitor to the VM and back. The same four letters mean different things
//!   in different directions.
//! * [`heap`], [`segment`], [`threads`], [`stack`], [`recent`]: what the larger chunks contain.
//! * [`ours`]: chunks that no other monitor knows: contention, objects by id, allocation rates. Their types begin with `ET`.
//!
//! Numbers are big-endian and unsigned, text is UTF-16 behind its length in units. Half a pair of surrogates, which Java allows in a
//! text, is read as U+FFFD.
//!
//! Nothing here does input or output. Bytes of others never cause a panic, and no more memory is taken than a small multiple of what
//! they are: counts are compared with the bytes that are left before anything is made of them, and lengths with a limit.

pub mod chunk;
pub mod heap;
pub mod message;
pub mod ours;
pub mod packet;
pub mod recent;
pub mod request;
pub mod segment;
pub mod stack;
pub mod threads;
pub mod wire;

pub use chunk::{Chunk, ChunkType};
pub use message::Message;
pub use packet::{Packet, PacketDecoder};
pub use request::Request;
pub use wire::Malformed;
