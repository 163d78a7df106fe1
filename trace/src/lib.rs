//! Traces of Elephant Tracks: the event encoding, the trace file, and everything that reads them.
//!
//! The runtime uses [`event`] and [`file::format`] only, without the feature `read`; both are free of I/O.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let trace = et_trace::Trace::open("app.ettrace".as_ref())?;
//! let mut updates = 0;
//! let outcome = trace.for_each(|record, _context| {
//!     updates += u64::from(record.letter() == 'U');
//!     ControlFlow::Continue(())
//! })?;
//! println!("{updates} updates, {} lost", outcome.lost.total());
//! # Ok(())
//! # }
//! ```

pub mod event;
pub mod file;

#[cfg(feature = "read")]
mod by_thread;
#[cfg(feature = "read")]
pub mod classes;
#[cfg(feature = "read")]
pub mod compare;
#[cfg(feature = "read")]
mod dynamic;
#[cfg(feature = "read")]
pub mod lifetimes;
#[cfg(feature = "read")]
pub mod merge;
#[cfg(feature = "read")]
pub mod names;
#[cfg(feature = "read")]
mod object_set;
#[cfg(feature = "read")]
pub mod record;
#[cfg(feature = "read")]
pub mod recover;
#[cfg(feature = "read")]
pub mod resolve;
#[cfg(feature = "read")]
pub mod source;
#[cfg(feature = "read")]
mod store;
#[cfg(feature = "read")]
pub mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "read")]
pub mod text;
#[cfg(feature = "read")]
mod trace;
#[cfg(feature = "read")]
pub mod types;
#[cfg(feature = "read")]
pub mod validate;
#[cfg(feature = "read")]
pub mod watch;

#[cfg(feature = "cli")]
mod bar;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
mod output;

#[cfg(feature = "read")]
pub use file::{ReadError, TraceFile};
#[cfg(feature = "read")]
pub use resolve::{Anomalies, Context, Outcome};
#[cfg(feature = "read")]
pub use trace::{Thread, Trace};
