//! What each thread of a reading by blocks has for itself.

use et_names::{FieldId, FieldRefId};
use rustc_hash::FxHashMap;

use super::scan::Scanner;
use super::usage;
use super::walk::Walker;
use crate::trace::Trace;

/// What a thread of the pool works with.
#[derive(Debug)]
pub struct Hands<'a> {
    pub scanner: Scanner<'a>,
    pub walker: Walker<'a>,
    pub fields: FxHashMap<FieldRefId, FieldId>,
    pub about_usage: usage::Known<'a>,
}

impl<'a> Hands<'a> {
    pub fn new(trace: &'a Trace, referent: Option<FieldId>) -> Self {
        Self {
            scanner: Scanner::new(&trace.names, &trace.classes),
            walker: Walker::new(trace, referent),
            fields: FxHashMap::default(),
            about_usage: usage::Known::of(trace),
        }
    }
}
