//! Operating system services beyond the standard library: files that appear complete or not at all, threads that the
//! system may refuse to start, memory that is kept for the next allocation, and the user at the other end of a local connection.

pub mod files;
pub mod memory;
pub mod peers;
pub mod threads;
