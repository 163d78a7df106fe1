//! Definitions, each before its first use.

use std::time::Duration;

use et_jvm::profiling::ThreadNames;
use et_trcxml::{ClassDef, Head, MethodDef, ThreadStart, object_def, thread_end, trace_end};

use super::{XmlLog, lock};
use crate::time;

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
        let ids = [uuid(), uuid(), uuid()];
        let head = Head {
            ids: ids.each_ref().map(String::as_str),
            host: Some((&host_name(), "127.0.0.1")),
            program,
            pid: std::process::id(),
            profiler: "Elephant Tracks Monitor",
            version: env!("CARGO_PKG_VERSION"),
            parameters: options,
            at: time::now(),
        };
        self.put(&head.elements());
    }

    /// Writes the end of the program.
    pub fn end(&self) {
        self.put(&trace_end(time::now()));
    }

    /// Whether a thread is defined.
    pub fn has_thread(&self, id: u32) -> bool {
        lock(&self.waiting).threads.contains(&id)
    }

    /// Defines a thread, unless another was faster.
    pub fn define_thread(&self, id: u32, names: &ThreadNames, object: Option<u64>, at: Duration) {
        let [name, group, parent] =
            [&names.thread, &names.group, &names.parent].map(|name| et_jvm::from_modified_utf8(name));
        let start = ThreadStart { id, at, name: &name, groups: Some((&group, &parent)), object };
        let mut waiting = lock(&self.waiting);
        if waiting.threads.insert(id) {
            self.put_into(&mut waiting, &start.element());
        }
    }

    /// A thread has ended, if it was defined.
    pub fn end_thread(&self, id: u32) {
        let mut waiting = lock(&self.waiting);
        if waiting.threads.contains(&id) {
            self.put_into(&mut waiting, &thread_end(id, time::now()));
        }
    }

    /// Defines a class and its mirror, the latter unless it is that of `java.lang.Class` before the class is known.
    pub fn define_class(&self, id: u64, class: &ClassDef, class_of_classes: u64, mirror_size: Option<u64>) {
        self.put(&(class.element(id, time::now()) + &object_def(id, class_of_classes, mirror_size, false)));
    }

    /// Defines an object that was there before it was first spoken of.
    pub fn define_object(&self, id: u64, class: u64, size: Option<u64>, is_array: bool) {
        self.put(&object_def(id, class, size, is_array));
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
        let line = |line: i32| u32::try_from(line).ok();
        let (start_line, end_line) = (lines.and_then(|lines| line(lines.0)), lines.and_then(|lines| line(lines.1)));
        self.put_into(&mut waiting, &MethodDef { id, name, signature, start_line, end_line, class }.element());
        id
    }
}
