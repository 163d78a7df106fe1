//! Resolution of field references, once each; fields that are in no table get ids of their own.

use et_names::{FieldId, FieldRefId, ID_LIMIT};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Anomalies;
use super::recent::Recent;
use crate::names::Names;
use crate::types::Types;

/// A field of a class that is in no names table, or is described incompletely.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExtraField {
    /// Internal name of the class that the reference names.
    pub class: String,
    pub name: String,
    pub descriptor: String,
    pub is_static: bool,
}

/// Declared fields by field reference.
#[derive(Debug, Default)]
pub struct Fields {
    /// Cached dense indexes.
    recent: Recent<usize>,
    /// Field id by dense index of the reference; 0 if not resolved yet.
    resolved: Vec<u32>,
    extra: Vec<ExtraField>,
    extra_ids: FxHashMap<ExtraField, FieldId>,
    unknown_refs: FxHashMap<FieldRefId, FieldId>,
}

impl Fields {
    /// Creates an empty cache for the references in these names.
    pub fn new(names: &Names) -> Self {
        Self { resolved: vec![0; names.counts().3], ..Self::default() }
    }

    /// Fields that are in no table: the n-th has the id [`ID_LIMIT`]` + n`.
    pub fn into_extra(self) -> Vec<ExtraField> {
        self.extra
    }

    /// The declared field to which a reference resolves.
    #[inline]
    pub fn of_ref(&mut self, id: FieldRefId, names: &Names, types: &Types, anomalies: &mut Anomalies) -> FieldId {
        match self.recent.get(id.0, || names.field_ref_index(id)) {
            Some(index) if self.resolved[index] != 0 => FieldId(self.resolved[index]),
            Some(index) => {
                let field = self.resolve(id, names, types, anomalies);
                self.resolved[index] = field.0;
                field
            }
            None => {
                anomalies.unknown_field_refs += 1;
                if let Some(&known) = self.unknown_refs.get(&id) {
                    return known;
                }
                let field = self.make_up(ExtraField {
                    class: "?".into(),
                    name: format!("{:x}", id.0),
                    descriptor: "Ljava/lang/Object;".into(),
                    is_static: false,
                });
                self.unknown_refs.insert(id, field);
                field
            }
        }
    }

    /// As [`of_ref`](Self::of_ref), for that many stores at once.
    pub fn stored(&mut self, id: FieldRefId, stores: u64, names: &Names, types: &Types, anomalies: &mut Anomalies) {
        let before = anomalies.unknown_field_refs;
        self.of_ref(id, names, types, anomalies);
        if anomalies.unknown_field_refs > before {
            anomalies.unknown_field_refs = before + stores;
        }
    }

    fn resolve(&mut self, id: FieldRefId, names: &Names, types: &Types, anomalies: &mut Anomalies) -> FieldId {
        if let Some(field) = names.resolve_field_ref(id, types) {
            return field;
        }
        anomalies.unresolved_fields += 1;
        let text = names.field_ref(id).map(|(table, reference)| ExtraField {
            class: table.str(reference.class).to_owned(),
            name: table.str(reference.name).to_owned(),
            descriptor: table.str(reference.descriptor).to_owned(),
            is_static: reference.is_static,
        });
        match text {
            Some(field) => self.make_up(field),
            None => FieldId(ID_LIMIT),
        }
    }

    /// The field of that name declared by a class of the run, for initial references.
    pub fn declared(&mut self, field: ExtraField, names: &Names, types: &Types) -> FieldId {
        let known = names
            .class_near(&field.class, None, types)
            .and_then(|class| names.resolve_field(class, &field.name, &field.descriptor, types));
        known.unwrap_or_else(|| self.make_up(field))
    }

    fn make_up(&mut self, field: ExtraField) -> FieldId {
        if let Some(&known) = self.extra_ids.get(&field) {
            return known;
        }
        let id = FieldId(ID_LIMIT + self.extra.len() as u32);
        self.extra.push(field.clone());
        self.extra_ids.insert(field, id);
        id
    }
}
