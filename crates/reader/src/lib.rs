//! Reads traces of Elephant Tracks.
//!
//! [`source::Source`] opens a trace in any form, [`source::Reading`] says what is needed of it, and
//! [`records::Records`] returns it in batches:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use et_reader::source::{Reading, Source};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source = Arc::new(Source::open("app.ettrace".as_ref(), None)?);
//! let mut updates = 0;
//! let mut records = source.records(Reading::default());
//! for batch in &mut records {
//!     updates += batch?.records().filter(|(record, _)| record.letter() == 'U').count();
//! }
//! println!("{updates} updates, {} events lost", records.into_ending()?.outcome.lost.total());
//! # Ok(())
//! # }
//! ```

pub mod file;

pub mod amount;
pub mod attribution;
pub mod axis;
pub mod batch;
pub mod births;
pub mod blocked;
pub mod blocks;
pub mod classes;
pub mod counted;
mod dynamic;
pub mod lifetimes;
pub mod made_in;
pub mod merge;
pub mod model;
mod moment;
pub mod names;
pub mod naming;
pub mod observed;
pub mod owners;
pub mod place;
pub mod population;
mod reading;
pub mod record;
pub mod records;
pub mod recover;
pub mod references;
pub mod resolve;
pub mod source;
pub mod stack_contexts;
pub mod stacks;
mod store;
pub mod survival;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod text_writer;
pub mod told;
mod trace;
pub mod types;
pub mod watch;

pub use file::{ReadError, TraceFile};
pub use reading::{deaths_of_heap, deaths_unknown};
pub use resolve::{Anomalies, Context, Outcome};
pub use trace::{Thread, Trace};
