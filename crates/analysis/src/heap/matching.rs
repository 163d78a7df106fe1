//! Which classes are wanted of a heap: those whose names fit a pattern.

use et_reader::model::Node;
use et_reader::types::for_people;

use super::snapshot::Snapshot;
use crate::pattern::fits;

/// The classes of a snapshot that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// By number; `None`: all are wanted.
    classes: Option<Vec<bool>>,
}

impl Matching {
    /// All classes.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those whose names fit, in which `*` is any text. `None`: all.
    pub fn new(snapshot: &Snapshot<'_>, pattern: Option<&str>) -> Self {
        let of = |pattern: &str| {
            snapshot.classes().map(|(_, class)| fits(pattern, &for_people(&class.descriptor))).collect()
        };
        Self { classes: pattern.map(of) }
    }

    /// Whether all classes are wanted.
    pub fn is_all(&self) -> bool {
        self.classes.is_none()
    }

    /// Whether no class of the snapshot is wanted.
    pub fn is_none(&self) -> bool {
        self.classes.as_ref().is_some_and(|classes| !classes.contains(&true))
    }

    /// Whether the class of an object is wanted.
    pub fn has(&self, snapshot: &Snapshot<'_>, node: Node) -> bool {
        self.classes.as_ref().is_none_or(|classes| classes[snapshot.object(node).class.0 as usize])
    }
}
