//! Classes: their names, and whether the filter includes them, which is decided once for each.

use std::fmt;

use et_jvm::env::{Env, MethodId, Object};
use et_trcxml::ClassDef;

use crate::filter;
use crate::state::Monitor;
use crate::tags::{self, ClassTag};

const STATIC: i32 = et_jvm::jvmti::STATIC;

/// The name of a class as people write it.
pub fn name(monitor: &Monitor, class: Object) -> String {
    monitor.jvmti.class_signature(class).map_or_else(|_| "?".to_owned(), |signature| filter::readable(&signature))
}

/// The name of an object's class.
pub fn name_of_object(monitor: &Monitor, env: Env, object: Object) -> String {
    env.frame(2, |env| env.class_of(object).map_or_else(String::new, |class| name(monitor, class)))
}

/// Whether an object is a class mirror.
pub fn is_class(monitor: &Monitor, env: Env, object: Object) -> bool {
    monitor.class_of_classes(env).is_some_and(|class| env.is_instance(object, class))
}

/// The tag of a class, which gets one if it has none, and is defined in the log then.
pub fn tag_of(monitor: &Monitor, env: Env, class: Object) -> ClassTag {
    let there = || monitor.jvmti.tag(class).ok().and_then(ClassTag::read);
    if let Some(tag) = there() {
        return tag;
    }
    let name = name(monitor, class);
    let is_included = monitor.filter.includes(&name);
    env.frame(16, |env| {
        let class_of_classes = monitor.class_of_classes(env).filter(|known| !env.is_same(*known, class));
        let class_of_classes = class_of_classes.map(|class| tag_of(monitor, env, class).id);
        let definition = monitor.xml.as_ref().map(|_| describe(monitor, env, class, name));
        let size = monitor.jvmti.object_size(class).ok();
        let _one = tags::tagging_in_callback();
        if let Some(tag) = there() {
            return tag;
        }
        let tag = ClassTag { id: tags::fresh(), is_included };
        if let (Some(xml), Some(definition)) = (&monitor.xml, definition) {
            xml.define_class(tag.id, &definition, class_of_classes.unwrap_or(tag.id), size);
        }
        let _ = monitor.jvmti.set_tag(class, tag.tag());
        tag
    })
}

fn describe(monitor: &Monitor, env: Env, class: Object, name: String) -> ClassDef {
    let jvmti = monitor.jvmti;
    let source = jvmti.source_file_c(class).ok().map(|file| et_jvm::from_modified_utf8(&file));
    let fields = jvmti.class_fields(class).ok();
    let statics = fields.as_ref().map(|fields| {
        let is_static = |field: &&_| jvmti.field_modifiers(class, **field).is_ok_and(|flags| flags & STATIC != 0);
        fields.iter().filter(is_static).count()
    });
    let interfaces = jvmti.interfaces(env, class).ok();
    ClassDef {
        source,
        interfaces: interfaces
            .map(|interfaces| interfaces.into_iter().map(|class| self::name(monitor, class)).collect()),
        methods: jvmti.methods(class).ok().map(|methods| methods.len()),
        static_fields: statics,
        instance_fields: fields.map(|fields| fields.len() - statics.unwrap_or(0)),
        access: jvmti.class_modifiers(class).ok(),
        name,
    }
}

/// Location of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Class name with dots.
    pub class: String,
    pub method: String,
    pub file: Option<String>,
    /// Source line; -1 if unknown, -2 in native code.
    pub line: i32,
}

impl fmt::Display for Place {
    /// As in the stacks that Java prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.class, self.method)?;
        match &self.file {
            Some(file) if self.line > 0 => write!(f, "({file}:{})", self.line),
            Some(file) => write!(f, "({file})"),
            None => Ok(()),
        }
    }
}

/// Where an instruction of a method is.
pub fn place(monitor: &Monitor, env: Env, method: MethodId, location: i64) -> Place {
    let jvmti = monitor.jvmti;
    env.frame(2, |env| {
        let class = jvmti.declaring_class(env, method).ok().flatten();
        let file = class.and_then(|class| jvmti.source_file_c(class).ok());
        Place {
            class: class.map_or_else(String::new, |class| name(monitor, class)),
            method: jvmti.method_name(method).map_or_else(|_| "?".to_owned(), |member| member.name),
            file: file.map(|file| et_jvm::from_modified_utf8(&file)),
            line: if location < 0 { -2 } else { jvmti.line_at(method, location).map_or(-1, |line| line as i32) },
        }
    })
}
