//! The protocol of the Dalvik Debug Monitor (DDM), both directions: what a monitor and a VM exchange over a connection
//! of JDWP, the Java Debug Wire Protocol.
//!
//! From the outside in:
//!
//! * [`packet`]: the handshake and the packets of JDWP, decoded incrementally as bytes arrive. Packets of debuggers
//!   have the same format; DDM has its own command set.
//! * [`chunk`]: the content of a DDM packet: one or more chunks, each with a type and data; some are compressed
//!   ([`chunk::zlib`]).
//! * [`request`] and [`message`]: typed chunks, from the monitor to the VM and back. The same four letters have
//!   different meanings in the two directions.
//! * [`heap`], [`segment`], [`threads`], [`stack`], [`recent`]: the contents of larger chunks.
//! * [`ours`]: chunks that no other monitor knows: contention, objects by id, allocation rates. Their types begin with
//!   `ET`.
//!
//! Numbers are big-endian and unsigned, text is UTF-16 preceded by its length in units. An unpaired surrogate, which
//! Java allows in a text, is decoded as U+FFFD.
//!
//! Does no input or output. Untrusted bytes never cause a panic, and the memory used is at most a small multiple of
//! their length: counts are compared with the number of bytes left before anything is allocated, and lengths with a
//! limit.

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
