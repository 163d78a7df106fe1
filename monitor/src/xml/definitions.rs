//! Definitions, each before its first use.

use std::time::Duration;

use et_jvm::profiling::ThreadNames;

use super::{Element, TRACE_ID, XmlLog, lock};
use crate::time;

/// What is known of a class. What the VM does not say is left out.
#[derive(Clone, Debug, Default)]
pub struct ClassDef {
    /// With dots.
    pub name: String,
    /// The source file.
    pub source: Option<String>,
    /// Number and names, if the class is linked.
    pub interfaces: Option<Vec<String>>,
    pub methods: Option<usize>,
    pub static_fields: Option<usize>,
    pub instance_fields: Option<usize>,
    pub access: Option<i32>,
}

fn uuid() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/uuid")
        .map(|text| text.trim().to_owned())
        .unwrap_or_else(|_| format!("{:032x}", time::nanos()))
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|text| text.trim().to_owned()).unwrap_or_default()
}

impl XmlLog {
    /// Everything that comes before the first event.
    pub fn begin(&self, program: &str, options: &str) {
        let (now, pid) = (time::now(), std::process::id());
        let (node, process, agent) = (uuid(), uuid(), uuid());
        let host = host_name();
        let mut text = Element::new("node")
            .text("nodeId", &node)
            .text("hostname", &host)
            .text("ipaddress", "127.0.0.1")
            .number("timezone", 0)
            .time(now)
            .end();
        text += &Element::new("processCreate")
            .text("processId", &process)
            .text("name", program)
            .number("pid", pid)
            .text("nodeIdRef", &node)
            .time(now)
            .end();
        text += &Element::new("agentCreate")
            .text("agentId", &agent)
            .text("version", env!("CARGO_PKG_VERSION"))
            .text("processIdRef", &process)
            .text("agentName", "Elephant Tracks Monitor")
            .text("agentType", "Profiler")
            .time(now)
            .text("agentParameters", options)
            .end();
        text += &Element::new("traceStart").text("traceId", TRACE_ID).text("agentIdRef", &agent).time(now).end();
        self.put(&text);
    }

    /// The program ends.
    pub fn end(&self) {
        self.put(&Element::new("traceEnd").text("traceIdRef", TRACE_ID).time(time::now()).end());
    }

    /// Whether a thread is defined.
    pub fn has_thread(&self, id: u32) -> bool {
        lock(&self.waiting).threads.contains(&id)
    }

    /// Defines a thread, unless another was faster.
    pub fn define_thread(&self, id: u32, names: &ThreadNames, object: Option<u64>, at: Duration) {
        let text = |name: &std::ffi::CStr| et_jvm::from_modified_utf8(name);
        let element = Element::new("threadStart")
            .number("threadId", id)
            .time(at)
            .text("threadName", &text(&names.thread))
            .text("groupName", &text(&names.group))
            .text("parentName", &text(&names.parent))
            .maybe("objIdRef", object)
            .text("traceIdRef", TRACE_ID)
            .end();
        let mut waiting = lock(&self.waiting);
        if waiting.threads.insert(id) {
            self.put_into(&mut waiting, &element);
        }
    }

    /// A thread has ended, if it was defined.
    pub fn end_thread(&self, id: u32) {
        let element = Element::new("threadEnd").number("threadIdRef", id).time(time::now()).end();
        let mut waiting = lock(&self.waiting);
        if waiting.threads.contains(&id) {
            self.put_into(&mut waiting, &element);
        }
    }

    /// Defines a class and, unless that is `java.lang.Class` before it is known itself, the object that stands for it.
    pub fn define_class(&self, id: u64, class: &ClassDef, class_of_classes: u64, mirror_size: Option<u64>) {
        let mut element = Element::new("classDef").text("name", &class.name);
        if let Some(source) = &class.source {
            element = element.text("sourceName", source);
        }
        element = element.number("classId", id);
        if let Some(interfaces) = &class.interfaces {
            element = element.number("numInterfaces", interfaces.len()).text("interfaceNames", &interfaces.join(" "));
        }
        element = element
            .maybe("numMethods", class.methods)
            .maybe("numStaticFields", class.static_fields)
            .maybe("numInstanceFields", class.instance_fields)
            .maybe("access", class.access)
            .time(time::now());
        self.put(&(element.end() + &object(id, class_of_classes, mirror_size, false)));
    }

    /// Defines an object that was there before it was first spoken of.
    pub fn define_object(&self, id: u64, class: u64, size: Option<u64>, is_array: bool) {
        self.put(&object(id, class, size, is_array));
    }

    /// The number of a method, if it is defined.
    pub fn method(&self, method: usize) -> Option<u64> {
        lock(&self.waiting).methods.get(&method).copied()
    }

    /// Defines a method, unless another was faster.
    pub fn define_method(
        &self,
        method: usize,
        class: u64,
        name: &str,
        signature: &str,
        lines: Option<(i32, i32)>,
    ) -> u64 {
        let mut waiting = lock(&self.waiting);
        if let Some(id) = waiting.methods.get(&method) {
            return *id;
        }
        let id = waiting.methods.len() as u64 + 1;
        waiting.methods.insert(method, id);
        let element = Element::new("methodDef")
            .text("name", name)
            .text("signature", signature)
            .maybe("startLineNumber", lines.map(|lines| lines.0))
            .maybe("endLineNumber", lines.map(|lines| lines.1))
            .number("methodId", id)
            .number("classIdRef", class)
            .end();
        self.put_into(&mut waiting, &element);
        id
    }
}

fn object(id: u64, class: u64, size: Option<u64>, is_array: bool) -> String {
    Element::new("objDef")
        .number("objId", id)
        .maybe("size", size)
        .number("isArray", is_array)
        .number("classIdRef", class)
        .end()
}
