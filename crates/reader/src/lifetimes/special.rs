//! Types and fields with a special meaning for deaths.

use et_names::FieldId;
use rustc_hash::FxHashSet;

use crate::types::TypeId;

/// Handles of these types and fields.
#[derive(Clone, Debug, Default)]
pub struct Special {
    /// `java.lang.Class`: mirrors live as long as their classes.
    pub class: Option<TypeId>,
    /// `java.lang.String`, if constants cannot be distinguished from other strings: then all strings created by the VM
    /// are taken for constants.
    pub string: Option<TypeId>,
    /// `java.lang.ref.Reference.referent`, which does not keep its target alive.
    pub referent: Option<FieldId>,
    /// `java.lang.ref.FinalReference` and its subclasses, whose referent is kept alive.
    pub final_references: FxHashSet<TypeId>,
}

/// The same by name, for use before there are handles: those of a text are created as it is read.
#[derive(Clone, Debug, Default)]
pub struct WeakFields {
    /// `java.lang.ref.Reference.referent`, which does not keep its target alive.
    pub referent: Option<FieldId>,
    /// Descriptors of `java.lang.ref.FinalReference` and its subclasses, whose referent is kept alive.
    pub final_references: FxHashSet<String>,
}
