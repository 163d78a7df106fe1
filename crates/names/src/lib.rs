//! Names tables: what the static ids in a trace (of classes, methods, fields, sites, field references) mean.
//!
//! The rewriter makes one [`NamesTable`] per artifact, the runtime copies it into the trace, and the reader decodes it.
//! `docs/inside/names.md` describes the format.

pub mod class_path;
mod codec;
pub mod escape;
mod events;
mod gaps;
pub mod hashes;
mod ids;
mod join;
pub mod mutf8;
pub mod releases;
pub mod shell;
pub mod size;
mod strings;
mod table;
pub mod units;
pub mod varint;

pub use codec::{ClassEntries, DecodeError, MAGIC, MOST_UNPACKED, Opened, Source};
pub use events::{EventSet, Witness};
pub use ids::{
    ClassId, DYNAMIC_BASE, DynamicIds, FieldId, FieldRefId, ID_LIMIT, JDK_BASE, JDK_LIMIT, MethodId, SiteId, StaticId,
    block_base,
};
pub use strings::{Str, StringTable};
pub use table::{
    Artifact, ArtifactKind, Class, ClassFlags, ClassNames, Field, FieldNames, FieldRef, FieldRefNames, IdBlock, Method,
    MethodNames, NamesTable, Shortfall, ShortfallNames, Site, SiteNames,
};

/// Magic number at the start of a trace. It is here so that `run` can recognize traces without depending on their
/// format.
pub const TRACE_MAGIC: [u8; 8] = *b"ETTRACE\0";
/// Path of the table in an instrumented jar or class folder.
pub const ENTRY_IN_JAR: &str = "META-INF/elephant-tracks/names.etn";
/// Path of the table in an instrumented copy of a JDK.
pub const PATH_IN_JDK: &str = "lib/elephant-tracks/names.etn";
