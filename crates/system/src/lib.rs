//! The operating system where the standard library is not enough: files that appear complete or not at all, threads that the system may
//! refuse, and the user at the other end of a local connection.

pub mod files;
pub mod peers;
pub mod threads;
