//! Extracts and displays the records of one call of a method.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use crate::expect::{Source, View};
use crate::names::Names;
use crate::record::{ObjectId, Record, Records, ThreadId, What};

/// The trace of a program with what is needed to read it.
#[derive(Debug)]
pub struct Trace {
    pub main_class: String,
    /// Statements in its source.
    pub source: Source,
    /// The names file.
    pub names: Names,
    /// The text output.
    pub records: Records,
}

/// The records of one thread between the entry of a method and its exit, both left out.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    /// The thread that made the call.
    pub thread: ThreadId,
    /// The records of the call.
    pub records: Vec<&'a Record>,
}

impl Trace {
    /// The calls of a method of the program, in order: `one` is that of the main class, `Leaf.one` of a nested one.
    pub fn calls(&self, method: &str) -> Vec<Window<'_>> {
        let (class, name) = match method.rsplit_once('.') {
            Some((nested, name)) => (format!("{}${nested}", self.main_class), name),
            None => (self.main_class.clone(), method),
        };
        let is_it = |id: u64| self.names.methods.get(&id).is_some_and(|m| *m.class == class && m.name == name);
        let all = &self.records.all;
        let starts = all
            .iter()
            .enumerate()
            .filter(|(_, record)| matches!(record.what, What::Entry { method, .. } if is_it(method)));
        starts.map(|(start, record)| window(&all[start + 1..], record.thread)).collect()
    }

    /// Whether a class is the program's own.
    pub fn is_own(&self, class: &str) -> bool {
        class.strip_prefix(&self.main_class).is_some_and(|rest| rest.is_empty() || rest.starts_with('$'))
    }

    /// A window's records, one a line, as expectations are written.
    pub fn show(&self, window: &Window<'_>, view: View) -> Vec<String> {
        let mut shown = Shown { trace: self, view, numbers: HashMap::new(), own_arrays: HashSet::new() };
        window.records.iter().filter_map(|record| shown.line(&record.what)).collect()
    }

    /// One record, its objects by their types alone: `U Holder.leaf Leaf -> null`.
    pub fn show_by_type(&self, record: &Record) -> String {
        let view = View { types: true, ..View::default() };
        let mut shown = Shown { trace: self, view, numbers: HashMap::new(), own_arrays: HashSet::new() };
        shown.line(&record.what).unwrap_or_default()
    }

    /// `com/x/Main$Leaf` as the program's reader knows it: `Leaf`. What the VM and the JDK number as they please is left
    /// out: `$Lambda` for `Main$$Lambda$14.0x00007f…`.
    pub fn short_class<'n>(&self, class: &'n str) -> &'n str {
        let short = class.strip_prefix(&self.main_class).and_then(|rest| rest.strip_prefix('$')).unwrap_or(class);
        let end = short.find(".0x").unwrap_or(short.len());
        if short.starts_with("$Lambda") { "$Lambda" } else { &short[..end] }
    }

    /// A type in Java's words; `length` goes between the first brackets.
    pub fn type_name(&self, descriptor: &str, length: Option<u64>) -> String {
        let element = descriptor.trim_start_matches('[');
        let dimensions = descriptor.len() - element.len();
        let class = element.strip_prefix('L').unwrap_or(element).trim_end_matches(';').replace('/', ".");
        let mut name = match element {
            "Z" => "boolean",
            "B" => "byte",
            "C" => "char",
            "S" => "short",
            "I" => "int",
            "J" => "long",
            "F" => "float",
            "D" => "double",
            _ => self.short_class(&class),
        }
        .to_owned();
        for dimension in 0..dimensions {
            match length {
                Some(length) if dimension == 0 => drop(write!(name, "[{length}]")),
                _ => name += "[]",
            }
        }
        name
    }

    /// Short name of a method: `Leaf.<init>`.
    pub fn method_name(&self, id: u64) -> String {
        match self.names.methods.get(&id) {
            Some(method) => format!("{}.{}", self.short_class(&method.class), method.name),
            None => format!("unknown method {id:#x}"),
        }
    }

    /// Whether that object is an array.
    pub fn is_array(&self, object: ObjectId) -> bool {
        self.records.descriptors.get(&object).is_some_and(|descriptor| descriptor.starts_with('['))
    }

    fn is_own_method(&self, id: u64) -> bool {
        self.names.methods.get(&id).is_none_or(|method| self.is_own(&method.class))
    }

    fn is_own_descriptor(&self, descriptor: &str) -> bool {
        let element = descriptor.trim_start_matches('[');
        let class = element.strip_prefix('L').unwrap_or(element).trim_end_matches(';');
        self.is_own(&class.replace('/', "."))
    }
}

fn window(records: &[Record], thread: ThreadId) -> Window<'_> {
    let mut depth = 0_i32;
    let mut inside = Vec::new();
    for record in records.iter().filter(|record| record.thread == thread) {
        match record.what {
            What::Entry { .. } => depth += 1,
            What::Exit { .. } | What::Exception { kind: 'X', .. } => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            break;
        }
        inside.push(record);
    }
    Window { thread, records: inside }
}

struct Shown<'a> {
    trace: &'a Trace,
    view: View,
    numbers: HashMap<ObjectId, usize>,
    own_arrays: HashSet<ObjectId>,
}

impl Shown<'_> {
    fn line(&mut self, what: &What) -> Option<String> {
        if self.view.own && !self.is_own(what) {
            return None;
        }
        let trace = self.trace;
        Some(match what {
            What::Born { kind, object, size, descriptor, site, length } => {
                let length = descriptor.starts_with('[').then_some(*length);
                if self.view.types {
                    return Some(format!("{kind} {}", trace.type_name(descriptor, length)));
                }
                let mut line = format!("{kind} {} {}", self.number(*object), trace.type_name(descriptor, length));
                line += &self.site(*site, descriptor);
                if self.view.size {
                    let _ = write!(line, " size={size}");
                }
                line
            }
            What::Update { old, origin, new, field } => {
                let place = self.place(*origin, *field);
                let old = self.object(*old);
                format!("U {place} {old} -> {}", self.object(*new))
            }
            What::Entry { method, receiver } => format!("M {}{}", trace.method_name(*method), self.receiver(*receiver)),
            What::Exit { method, receiver } => format!("E {}{}", trace.method_name(*method), self.receiver(*receiver)),
            What::Exception { kind, method, receiver, exception } => {
                let receiver = self.receiver(*receiver);
                format!("{kind} {}{receiver} !{}", trace.method_name(*method), self.object(*exception))
            }
            What::Death { object } => format!("D {}", self.object(*object)),
            What::Use { object } => format!("R {}", self.object(*object)),
        })
    }

    fn is_own(&mut self, what: &What) -> bool {
        match what {
            What::Born { object, descriptor, site, .. } => {
                let site = self.trace.names.sites.get(site);
                let own = self.trace.is_own_descriptor(descriptor)
                    || site.is_some_and(|site| self.trace.is_own_method(site.method));
                if own && descriptor.starts_with('[') {
                    self.own_arrays.insert(*object);
                }
                own
            }
            What::Update { origin, field, .. } if self.trace.is_array(*origin) => {
                let _ = field;
                let own_type =
                    self.trace.records.descriptors.get(origin).is_some_and(|d| self.trace.is_own_descriptor(d));
                own_type || self.own_arrays.contains(origin)
            }
            What::Update { field, .. } => {
                self.trace.names.fields.get(field).is_none_or(|field| self.trace.is_own(&field.class))
            }
            What::Entry { method, .. } | What::Exit { method, .. } | What::Exception { method, .. } => {
                self.trace.is_own_method(*method)
            }
            What::Death { .. } | What::Use { .. } => true,
        }
    }

    /// `#1.left`, `#1[2]`, `Updates.field`
    fn place(&mut self, origin: ObjectId, field: u64) -> String {
        if self.trace.is_array(origin) {
            return format!("{}[{field}]", self.object(origin));
        }
        let Some(named) = self.trace.names.fields.get(&field) else {
            return format!("{}.unknown field {field:#x}", self.object(origin));
        };
        if origin == ObjectId::NULL {
            let class = self.trace.short_class(&named.class);
            return format!("{class}.{}", named.name);
        }
        format!("{}.{}", self.object(origin), named.name)
    }

    fn site(&self, id: u64, descriptor: &str) -> String {
        if id == 0 {
            return String::new();
        }
        let Some(site) = self.trace.names.sites.get(&id) else { return format!(" @unknown site {id:#x}") };
        let mut shown = if !self.trace.is_own_method(site.method) {
            format!(" @{}", self.trace.method_name(site.method))
        } else if let Some(label) = self.trace.source.labels.get(&site.line) {
            format!(" @{label}")
        } else {
            format!(" @{}", site.line)
        };
        // Inner arrays of a multianewarray share the site of the outermost.
        if site.descriptor != descriptor && site.dimensions < 2 {
            let _ = write!(shown, " whose site is for {}", self.trace.type_name(&site.descriptor, None));
        }
        shown
    }

    fn receiver(&mut self, receiver: ObjectId) -> String {
        if receiver == ObjectId::NULL { String::new() } else { format!(" {}", self.object(receiver)) }
    }

    /// A number; with the type when the object came into the window from outside.
    fn object(&mut self, object: ObjectId) -> String {
        if object == ObjectId::NULL {
            return "null".to_owned();
        }
        let descriptor = self.trace.records.descriptors.get(&object);
        if let (Some(descriptor), true) = (descriptor, self.view.types) {
            return self.trace.type_name(descriptor, None);
        }
        let is_new = !self.numbers.contains_key(&object);
        let number = self.number(object);
        match descriptor {
            Some(descriptor) if is_new => format!("{number}({})", self.trace.type_name(descriptor, None)),
            _ => number,
        }
    }

    fn number(&mut self, object: ObjectId) -> String {
        let next = self.numbers.len() + 1;
        format!("#{}", self.numbers.entry(object).or_insert(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let names = "C 0x1 P 0x0\nC 0x2 P$Leaf 0x0\nC 0x3 java/util/X 0x0\n\
                     N 0x1 0x1 P one ()V S\nN 0x2 0x2 P$Leaf <init> ()V I\nN 0x3 0x3 java/util/X m ()V S\n\
                     F I 0x7 f 0x2 P$Leaf LP$Leaf;\nF S 0x8 s 0x1 P LP$Leaf;\n\
                     S 0x1 0x1 0x9 LP$Leaf; 0x0 3\nS 0x1 0x1 0xa [I 0x1 4\nE 0x1 P\n";
        let text = "M 1 0 1\nN a 10 LP$Leaf; 9 0 1\nM 3 0 2\nM 2 a 1\nE 2 a 1\nU 0 a a 7 1\nM 3 0 1\nE 3 0 1\n\
                    A b 18 [I a 2 1\nU 0 0 a 8 1\nE 1 0 1\nN c 10 LP$Leaf; 9 0 1\nM 1 0 1\nU 0 c c 7 1\nX 1 0 c 1\n";
        Trace {
            main_class: "P".into(),
            source: Source::parse("\n\nx // @leaf\n").unwrap(),
            names: Names::parse(names).unwrap(),
            records: Records::read(text.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn calls_are_cut_out_and_shown() {
        let trace = trace();
        let calls = trace.calls("one");
        assert_eq!(calls.len(), 2);
        let own = View { own: true, size: true, types: false };
        let shown = trace.show(&calls[0], own);
        assert_eq!(
            shown,
            [
                "N #1 Leaf @leaf size=16",
                "M Leaf.<init> #1",
                "E Leaf.<init> #1",
                "U #1.f null -> #1",
                "A #2 int[2] @4 size=24",
                "U P.s null -> #1",
            ]
        );
        assert_eq!(trace.show(&calls[0], View::default()).len(), 8);
        assert_eq!(trace.show(&calls[1], own), ["U #1(Leaf).f null -> #1"]);
        assert_eq!(trace.calls("Leaf.<init>").len(), 1);
    }
}
