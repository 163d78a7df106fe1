//! Definitions, each before its first use.

use std::time::Duration;

use crate::{Element, TRACE_ID};

/// Data about a class. Unknown values are omitted.
#[derive(Clone, Debug, Default)]
pub struct ClassDef {
    /// Name with dots.
    pub name: String,
    /// Name of the source file.
    pub source: Option<String>,
    /// Number and names.
    pub interfaces: Option<Vec<String>>,
    /// Number of methods.
    pub methods: Option<usize>,
    /// Number of static fields.
    pub static_fields: Option<usize>,
    /// How many, without inherited ones.
    pub instance_fields: Option<usize>,
    /// `access_flags` (JVMS §4.1).
    pub access: Option<i32>,
}

impl ClassDef {
    pub fn element(&self, id: u64, at: Duration) -> String {
        let mut element = Element::new("classDef").text("name", &self.name);
        if let Some(source) = &self.source {
            element = element.text("sourceName", source);
        }
        element = element.number("classId", id);
        if let Some(interfaces) = &self.interfaces {
            element = element.number("numInterfaces", interfaces.len()).text("interfaceNames", &interfaces.join(" "));
        }
        element
            .maybe("numMethods", self.methods)
            .maybe("numStaticFields", self.static_fields)
            .maybe("numInstanceFields", self.instance_fields)
            .maybe("access", self.access)
            .time(at)
            .end()
    }
}

/// A method of a class that is defined.
#[derive(Clone, Copy, Debug)]
pub struct MethodDef<'a> {
    /// Method id.
    pub id: u64,
    /// Name; `<init>` for a constructor.
    pub name: &'a str,
    /// Method descriptor.
    pub signature: &'a str,
    /// First line of its code.
    pub start_line: Option<u32>,
    /// Last line of its code.
    pub end_line: Option<u32>,
    /// Id of its class.
    pub class: u64,
}

impl MethodDef<'_> {
    pub fn element(&self) -> String {
        Element::new("methodDef")
            .text("name", self.name)
            .text("signature", self.signature)
            .maybe("startLineNumber", self.start_line)
            .maybe("endLineNumber", self.end_line)
            .number("methodId", self.id)
            .number("classIdRef", self.class)
            .end()
    }
}

/// A thread that has started, or is spoken of for the first time.
#[derive(Clone, Copy, Debug)]
pub struct ThreadStart<'a> {
    /// Thread id.
    pub id: u32,
    /// Time of its start.
    pub at: Duration,
    /// Name; empty if it has none.
    pub name: &'a str,
    /// Its group, and the group's parent, if they are known.
    pub groups: Option<(&'a str, &'a str)>,
    /// Id of its `Thread` object.
    pub object: Option<u64>,
}

impl ThreadStart<'_> {
    pub fn element(&self) -> String {
        let mut element =
            Element::new("threadStart").number("threadId", self.id).time(self.at).text("threadName", self.name);
        if let Some((group, parent)) = self.groups {
            element = element.text("groupName", group).text("parentName", parent);
        }
        element.maybe("objIdRef", self.object).text("traceIdRef", TRACE_ID).end()
    }
}

/// An object that was there before it was first spoken of.
pub fn object_def(id: u64, class: u64, size: Option<u64>, is_array: bool) -> String {
    Element::new("objDef")
        .number("objId", id)
        .maybe("size", size)
        .number("isArray", is_array)
        .number("classIdRef", class)
        .end()
}
