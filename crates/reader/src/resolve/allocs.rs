//! What the events that show an object say of it: its type, size and site.

use et_format::event::{ObjectHash, Ticket};
use et_format::{InitialObject, class_flags};
use et_names::{FieldRefId, MethodId, SiteId};

use super::anomalies::Anomalies;
use super::recent::Recent;
use super::sizes::{ArraySizes, Layout};
use crate::classes::ClassIndex;
use crate::record::{Alloc, AllocKind, ObjectId, StackId, ThreadId};
use crate::trace::Trace;
use crate::types::TypeId;

/// What the use of an object of unknown origin implies about its type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Receiver(MethodId),
    Exception,
    Array,
    /// Nothing.
    Any,
    FieldOrigin(FieldRefId),
    FieldTarget(FieldRefId),
}

/// Makes the allocation records of a trace, except for the ids of objects and threads.
#[derive(Debug)]
pub(crate) struct Allocs<'a> {
    trace: &'a Trace,
    array_sizes: ArraySizes,
    site_types: Recent<TypeId>,
    class_type: TypeId,
}

fn alloc(kind: AllocKind, size: u64, ty: TypeId, site: SiteId, length: u32) -> Alloc {
    Alloc { kind, object: ObjectId::NULL, size, ty, site, length, thread: ThreadId(0), stack: StackId::NONE }
}

impl<'a> Allocs<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            array_sizes: ArraySizes::new(&trace.file.meta().array_layout),
            site_types: Recent::default(),
            class_type: trace.types.get("Ljava/lang/Class;").unwrap_or(TypeId::UNKNOWN),
        }
    }

    /// Size of an instance of a class in bytes.
    fn instance_size(&self, class: Option<ClassIndex>, anomalies: &mut Anomalies) -> u64 {
        let size = class
            .map(|class| &self.trace.classes.get(class).record)
            .map_or(0, |record| if record.flags & class_flags::SIZE_UNKNOWN != 0 { 0 } else { record.instance_size });
        anomalies.unknown_sizes += u64::from(size == 0);
        size.into()
    }

    /// Size of an array in bytes.
    fn array_size(&self, ty: TypeId, length: u32, anomalies: &mut Anomalies) -> u64 {
        self.array_sizes.of(self.trace.types.descriptor(ty), length).unwrap_or_else(|| {
            anomalies.unknown_sizes += 1;
            0
        })
    }

    /// Where the elements of arrays of a type are; `None` if that is not in the trace.
    pub fn layout(&self, ty: TypeId) -> Option<Layout> {
        self.array_sizes.layout(self.trace.types.descriptor(ty))
    }

    /// An object that existed when tracing began.
    pub fn initial(&self, object: &InitialObject, anomalies: &mut Anomalies) -> Alloc {
        let ty = match self.trace.classes.at(object.class, Ticket(0)) {
            Some(class) => self.trace.classes.get(class).ty,
            None => {
                anomalies.unknown_classes += 1;
                TypeId::UNKNOWN
            }
        };
        let size = match u32::try_from(object.length) {
            Ok(length) if object.size == InitialObject::LARGEST => self.array_size(ty, length, anomalies),
            _ => object.size.into(),
        };
        alloc(AllocKind::Initial, size, ty, SiteId(0), object.length.max(0) as u32)
    }

    /// The mirror of a class.
    pub fn mirror(&self, class: ClassIndex) -> Alloc {
        let size = self.trace.classes.get(class).record.mirror_size;
        alloc(AllocKind::Vm, size.into(), self.class_type, SiteId(0), 0)
    }

    /// An object of unknown origin.
    pub fn unknown(&self, usage: Use, anomalies: &mut Anomalies) -> Alloc {
        anomalies.unknown_objects += 1;
        anomalies.unknown_sizes += 1;
        let (types, names) = (&self.trace.types, &self.trace.names);
        let ty = match usage {
            Use::Receiver(method) => names.method_info(method).map(|info| info.class),
            Use::Exception => types.get("Ljava/lang/Throwable;"),
            Use::Array => types.get("[Ljava/lang/Object;"),
            Use::Any => None,
            Use::FieldOrigin(field) => {
                names.field_ref(field).and_then(|(table, field)| types.get_class(table.str(field.class)))
            }
            Use::FieldTarget(field) => {
                names.field_ref(field).and_then(|(table, field)| types.get(table.str(field.descriptor)))
            }
        };
        let ty = ty.or_else(|| types.get("Ljava/lang/Object;")).unwrap_or(TypeId::UNKNOWN);
        alloc(AllocKind::Found, 0, ty, SiteId(0), 0)
    }

    /// An object whose constructors have run.
    pub fn new_object(&mut self, site: SiteId, mirror: ObjectHash, now: Ticket, anomalies: &mut Anomalies) -> Alloc {
        let (site, stack) = self.trace.stacks.split(site);
        let class = self.trace.classes.at(mirror, now);
        let names = &self.trace.names;
        let site_type = if site.0 == 0 { None } else { self.site_types.get(site.0, || names.site_type(site, 0)) };
        anomalies.unknown_sites += u64::from(site.0 != 0 && site_type.is_none());
        let (ty, site) = match (class, site_type) {
            (Some(class), _) => {
                let ty = self.trace.classes.get(class).ty;
                let agrees = site_type == Some(ty);
                // The constructor of an object, without hooks, makes others on the same stack.
                let may_differ = stack != StackId::NONE;
                anomalies.site_mismatches += u64::from(site_type.is_some() && !agrees && !may_differ);
                (ty, if agrees { site } else { SiteId(0) })
            }
            (None, site_type) => {
                anomalies.unknown_classes += 1;
                (site_type.unwrap_or(TypeId::UNKNOWN), if site_type.is_some() { site } else { SiteId(0) })
            }
        };
        let size = self.instance_size(class, anomalies);
        Alloc { stack, ..alloc(AllocKind::New, size, ty, site, 0) }
    }

    /// The object of a constructor that failed before its allocation was seen.
    pub fn made_up(&self, ty: TypeId, site: SiteId, anomalies: &mut Anomalies) -> Alloc {
        let (site, stack) = self.trace.stacks.split(site);
        let fits = site.0 != 0 && self.trace.names.site_type(site, 0) == Some(ty);
        let size = self.instance_size(self.trace.classes.of_type(ty), anomalies);
        Alloc { stack, ..alloc(AllocKind::New, size, ty, if fits { site } else { SiteId(0) }, 0) }
    }

    /// An array made by bytecode.
    pub fn new_array(&self, depth: u8, site: SiteId, length: u32, anomalies: &mut Anomalies) -> Alloc {
        let (site, stack) = self.trace.stacks.split(site);
        let ty = self.trace.names.site_type(site, depth);
        if ty.is_none() {
            anomalies.untyped_arrays += 1;
            anomalies.unknown_sites += u64::from(site.0 != 0);
        }
        let site = if ty.is_some() { site } else { SiteId(0) };
        let ty = ty.unwrap_or(TypeId::UNKNOWN);
        let size = self.array_size(ty, length, anomalies);
        Alloc { stack, ..alloc(AllocKind::Array, size, ty, site, length) }
    }

    /// An object created by the VM ([`AllocKind::Vm`]) or found, which may be the mirror of a class.
    pub fn sighted(
        &self,
        kind: AllocKind,
        hash: ObjectHash,
        mirror: ObjectHash,
        length: i32,
        now: Ticket,
        anomalies: &mut Anomalies,
    ) -> Alloc {
        if let Some(class) = self.trace.classes.at(hash, now) {
            return self.mirror(class);
        }
        let class = self.trace.classes.at(mirror, now);
        anomalies.unknown_classes += u64::from(class.is_none());
        let ty = class.map_or(TypeId::UNKNOWN, |class| self.trace.classes.get(class).ty);
        let (size, length) = match u32::try_from(length) {
            Ok(length) => (self.array_size(ty, length, anomalies), length),
            Err(_) => (self.instance_size(class, anomalies), 0),
        };
        alloc(kind, size, ty, SiteId(0), length)
    }
}
