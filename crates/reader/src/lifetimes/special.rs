//! Types and fields that deaths must know.

use et_names::FieldId;
use rustc_hash::FxHashSet;

use crate::types::TypeId;

/// Types and fields that are not like others.
#[derive(Clone, Debug, Default)]
pub struct Special {
    /// `java.lang.Class`: mirrors live as long as their classes.
    pub class: Option<TypeId>,
    /// `java.lang.String`, where constants are not told from other strings: all that the VM made are taken for some.
    pub string: Option<TypeId>,
    /// `java.lang.ref.Reference.referent`: does not keep its target.
    pub referent: Option<FieldId>,
    /// `java.lang.ref.FinalReference` and its subclasses: theirs does.
    pub final_references: FxHashSet<TypeId>,
}

/// The same by name, for whoever has no handles of types yet: a text's come as it is read.
#[derive(Clone, Debug, Default)]
pub struct WeakFields {
    /// `java.lang.ref.Reference.referent`: does not keep its target.
    pub referent: Option<FieldId>,
    /// Descriptors of `java.lang.ref.FinalReference` and its subclasses: theirs does.
    pub final_references: FxHashSet<String>,
}
