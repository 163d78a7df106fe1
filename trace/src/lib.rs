//! Reads traces of Elephant Tracks.
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

pub mod file;

pub mod classes;
mod dynamic;
pub mod lifetimes;
pub mod merge;
pub mod model;
pub mod names;
pub mod record;
pub mod recover;
pub mod resolve;
pub mod source;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
mod trace;
pub mod types;
pub mod watch;

pub use file::{ReadError, TraceFile};
pub use resolve::{Anomalies, Context, Outcome};
pub use trace::{Thread, Trace};
