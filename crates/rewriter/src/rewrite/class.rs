//! Writes a class.

use et_names::ClassNames;
use rustc_hash::FxHashMap;

use super::events::Wanted;
use super::{ATTRIBUTE, ClassError, FirstIds, HookCounts, Options, Plan, in_method};
use crate::classfile::{Attribute, PoolBuilder, PoolFull, write_attribute};
use crate::code::{CodeAttribute, EditError};
use crate::hooks::{self, Emitter};

const ATTRIBUTE_VERSION: u8 = 1;

pub(super) enum WriteError {
    Class(ClassError),
    /// The result would exceed a limit of the class file format.
    NoRoom {
        why: String,
    },
}

impl From<ClassError> for WriteError {
    fn from(error: ClassError) -> Self {
        Self::Class(error)
    }
}

impl From<PoolFull> for WriteError {
    fn from(error: PoolFull) -> Self {
        Self::NoRoom { why: error.to_string() }
    }
}

/// A class that is being written.
pub(super) struct Work<'p, 'a> {
    pub(super) plan: &'p Plan<'a>,
    pub(super) ids: FirstIds,
    pub(super) options: &'p Options,
    pub(super) names: ClassNames,
    pub(super) hooks: HookCounts,
    pub(super) next_site: u32,
    /// The class constants of the original class by name; computed on first use.
    pub(super) classes: Option<FxHashMap<&'a [u8], u16>>,
}

impl Work<'_, '_> {
    /// Writes the class file; with `adds_fields`, including the new fields of `java.lang.Thread`.
    pub(super) fn write(&mut self, adds_fields: bool) -> Result<Vec<u8>, WriteError> {
        let class = &self.plan.class;
        let mut pool = PoolBuilder::new(&class.pool);
        let mut emit = Emitter::new(&mut pool);
        let mut methods = Vec::with_capacity(self.plan.bytes.len() * 5 / 4);
        for (index, method) in class.methods.iter().enumerate() {
            let Some(attribute) = method.attribute("Code").filter(|_| self.plan.events != Wanted::NOTHING) else {
                methods.extend_from_slice(method.bytes);
                continue;
            };
            let code = CodeAttribute::read(attribute, &class.pool).map_err(|error| in_method(method, error))?;
            match self.method(index as u32, method, &code, &mut emit) {
                Ok(Some(info)) => {
                    // access_flags, name_index and descriptor_index unchanged, then the attributes.
                    methods.extend_from_slice(&method.bytes[..8]);
                    for other in &method.attributes {
                        if other.offset == attribute.offset {
                            write_attribute(&mut methods, other.name_index, &info);
                        } else {
                            other.write(&mut methods);
                        }
                    }
                }
                Ok(None) => methods.extend_from_slice(method.bytes),
                Err(EditError::Malformed(error)) => {
                    return Err(in_method(method, error.or_at(attribute.offset)).into());
                }
                Err(EditError::PoolFull(error)) => return Err(error.into()),
                Err(
                    EditError::TooLarge(_)
                    | EditError::TooManySlots
                    | EditError::TooManyRows(_)
                    | EditError::NoPlaceForJump,
                ) => {
                    methods.extend_from_slice(method.bytes);
                }
            }
        }
        emit.finish()?;

        let mut fields = (class.fields.len() as u16).to_be_bytes().to_vec();
        for field in &class.fields {
            fields.extend_from_slice(field.bytes);
        }
        if adds_fields {
            let added = hooks::write_thread_fields(&mut pool, self.options.events, &mut fields)?;
            let count = u16::try_from(class.fields.len() + added)
                .map_err(|_| WriteError::NoRoom { why: "the class would have more than 65535 fields".into() })?;
            fields[..2].copy_from_slice(&count.to_be_bytes());
        }

        // The JVM does not check the hashes in a JDK image but does on any other module path: `Hash of m differs`.
        let keeps = |attribute: &&Attribute<'_>| self.options.jdk || attribute.name != b"ModuleHashes";
        let kept: Vec<&Attribute<'_>> = class.attributes.iter().filter(keeps).collect();
        let count = u16::try_from(kept.len() + 1)
            .map_err(|_| WriteError::NoRoom { why: "the class would have more than 65535 attributes".into() })?;
        let mut attributes = count.to_be_bytes().to_vec();
        for attribute in kept {
            attribute.write(&mut attributes);
        }
        let mut mark = vec![ATTRIBUTE_VERSION];
        mark.extend_from_slice(&self.options.artifact_hash.to_be_bytes());
        mark.extend_from_slice(&self.options.base.to_be_bytes());
        // A class without hooks gets the attribute, too, so that it is not instrumented again.
        mark.push(if self.plan.events == Wanted::NOTHING { 0 } else { self.options.events.bits() });
        write_attribute(&mut attributes, pool.utf8(ATTRIBUTE.as_bytes())?, &mark);

        let mut out = Vec::with_capacity(self.plan.bytes.len() + methods.len() / 4 + 1024);
        // Magic number and version.
        out.extend_from_slice(&self.plan.bytes[..8]);
        pool.write(&class.pool, &mut out);
        out.extend_from_slice(class.header_bytes);
        out.extend_from_slice(&fields);
        out.extend_from_slice(&(class.methods.len() as u16).to_be_bytes());
        out.extend_from_slice(&methods);
        out.extend_from_slice(&attributes);
        Ok(out)
    }
}
