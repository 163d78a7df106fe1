//! Checks the structure of a class file (JVMS §4) with an independent reader.
//!
//! None of the rewriter's reader is used here: otherwise a misinterpretation of the format would confirm itself. If
//! these checks find nothing, third-party readers are consulted as well ([`opinion`]).
//!
//! Types of values are not checked: the JVM's verifier does that.

mod body;
mod bytes;
mod code;
mod depth;
mod descriptor;
mod frames;
mod instructions;
mod opcodes;
mod opinion;
mod pool;
mod tables;

use std::collections::HashSet;

use bytes::{Bytes, Cursor};
use pool::Pool;

pub use opinion::Opinion;

/// Findings of one class beyond this many are only counted: one wrong length spoils all that follows.
const MOST: usize = 20;
/// Attribute that the rewriter adds to each class. Deliberately repeated here.
const MARK: &[u8] = b"org.elephanttracks.Instrumented";
/// The class that hooks call, and its companions.
const HEAP_PROXY: &[u8] = b"java/lang/HeapProxy";

/// A problem in a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `name(descriptor)` of the method.
    pub method: Option<String>,
    /// Offset in the method's code.
    pub offset: Option<u32>,
    /// Description.
    pub what: String,
}

/// The content of the rewriter's attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Content hash of the artifact.
    pub artifact: u64,
    /// First id of its block.
    pub base: u32,
}

/// A method as the names table should have it, and the ids that its hooks pass as its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Method {
    pub name: Vec<u8>,
    pub descriptor: Vec<u8>,
    /// Method ids passed by its hooks, without repetition.
    pub method_ids: Vec<u32>,
    /// Lowest and highest id of any kind passed by its hooks.
    pub ids: Option<(u32, u32)>,
}

/// The result of checking a class.
#[derive(Debug, Default)]
pub struct Checked {
    /// Internal form, in modified UTF-8; empty if it could not be read.
    pub name: Vec<u8>,
    /// The rewriter's attribute, if the class has it.
    pub mark: Option<Mark>,
    /// Methods in class file order.
    pub methods: Vec<Method>,
    /// Problems.
    pub faults: Vec<Fault>,
    /// Result of the third-party readers.
    pub opinion: Opinion,
}

/// Whether the bytes look as if the rewriter had made them, however damaged they are.
pub fn is_marked(bytes: &[u8]) -> bool {
    // The attribute's name is in the constant pool after its tag and length; added constants come last, so search from
    // the end.
    memchr::memmem::rfind(bytes, MARK).is_some()
}

/// Collects problems.
#[derive(Debug, Default)]
struct Sink {
    faults: Vec<Fault>,
    dropped: usize,
    method: Option<String>,
}

impl Sink {
    /// Number of problems so far, including those that are not kept.
    fn count(&self) -> usize {
        self.faults.len() + self.dropped
    }

    fn add(&mut self, what: impl Into<String>) {
        self.push(None, what.into());
    }

    fn at(&mut self, offset: usize, what: impl Into<String>) {
        self.push(Some(offset as u32), what.into());
    }

    fn push(&mut self, offset: Option<u32>, what: String) {
        if self.faults.len() >= MOST {
            self.dropped += 1;
            return;
        }
        self.faults.push(Fault { method: self.method.clone(), offset, what });
    }

    fn finish(mut self) -> Vec<Fault> {
        if self.dropped > 0 {
            let what = format!("and {} more", self.dropped);
            self.faults.push(Fault { method: None, offset: None, what });
        }
        self.faults
    }
}

/// Checks a class file.
pub fn check(bytes: &[u8]) -> Checked {
    let mut checked = Checked::default();
    let mut sink = Sink::default();
    if let Err(what) = class(bytes, &mut checked, &mut sink) {
        sink.add(what);
    }
    checked.faults = sink.finish();
    if checked.faults.is_empty() {
        match opinion::ask(bytes) {
            Ok(opinion) => checked.opinion = opinion,
            Err(what) => checked.faults.push(Fault { method: None, offset: None, what }),
        }
    }
    checked
}

/// State for checking a class.
struct Context<'a> {
    pool: Pool<'a>,
    major: u16,
}

/// An attribute: name, and content.
#[derive(Clone, Copy, Debug)]
struct Attribute<'a> {
    name: &'a [u8],
    info: &'a [u8],
}

fn class(bytes: &[u8], checked: &mut Checked, sink: &mut Sink) -> Result<(), String> {
    let cut = || "the class is cut off".to_owned();
    let header = Bytes(bytes);
    if header.u32(0) != Some(0xcafe_babe) {
        return Err("it does not start with CAFEBABE".into());
    }
    let major = header.u16(6).ok_or_else(cut)?;
    let (pool, end) = Pool::read(bytes, 8)?;
    let context = Context { pool, major };
    let pool = &context.pool;
    let mut cursor = Cursor::new(bytes);
    cursor.take(end);
    let access = cursor.u16().ok_or_else(cut)?;
    match pool.class(cursor.u16().ok_or_else(cut)?) {
        Some(name) => checked.name = name.to_vec(),
        None => sink.add("this_class is not a class"),
    }
    let is_module = access & 0x8000 != 0;
    let superclass = cursor.u16().ok_or_else(cut)?;
    if superclass == 0 && !is_module && checked.name != b"java/lang/Object" {
        sink.add("it has no superclass");
    }
    if superclass != 0 && pool.class(superclass).is_none() {
        sink.add("super_class is not a class");
    }
    for _ in 0..cursor.u16().ok_or_else(cut)? {
        if pool.class(cursor.u16().ok_or_else(cut)?).is_none() {
            sink.add("an interface is not a class");
        }
    }
    fields(&context, &mut cursor, sink)?;
    let methods = methods(&context, &mut cursor, sink)?;
    let attributes = attributes(pool, &mut cursor)?;
    if !cursor.is_at_end() {
        return Err("bytes follow the end of the class".into());
    }
    checked.mark = class_attributes(pool, &attributes, sink);
    checked.methods = methods;
    Ok(())
}

fn attributes<'a>(pool: &Pool<'a>, cursor: &mut Cursor<'a>) -> Result<Vec<Attribute<'a>>, String> {
    let cut = || "an attribute is cut off, or longer than what holds it".to_owned();
    let count = cursor.u16().ok_or_else(cut)?;
    let mut list = Vec::new();
    for _ in 0..count {
        let name = pool.utf8(cursor.u16().ok_or_else(cut)?).ok_or("an attribute has no name")?;
        let length = cursor.u32().ok_or_else(cut)?;
        list.push(Attribute { name, info: cursor.take(length as usize).ok_or_else(cut)? });
    }
    Ok(list)
}

fn fields<'a>(context: &Context<'a>, cursor: &mut Cursor<'a>, sink: &mut Sink) -> Result<(), String> {
    let cut = || "the fields are cut off".to_owned();
    let pool = &context.pool;
    let mut seen = HashSet::new();
    for _ in 0..cursor.u16().ok_or_else(cut)? {
        cursor.u16().ok_or_else(cut)?;
        let name = pool.utf8(cursor.u16().ok_or_else(cut)?);
        let descriptor = pool.utf8(cursor.u16().ok_or_else(cut)?);
        let place = |what: &str| format!("field {}: {what}", text(name.unwrap_or(b"?")));
        match (name, descriptor) {
            (Some(name), Some(descriptor)) => {
                if descriptor::field(descriptor).is_none() {
                    sink.add(place("its descriptor is not a field descriptor"));
                }
                if !seen.insert((name, descriptor)) {
                    sink.add(place("it is there twice"));
                }
            }
            _ => sink.add(place("it has no name or descriptor")),
        }
        for attribute in attributes(pool, cursor).map_err(|what| place(&what))? {
            if let Err(what) = fixed(pool, &attribute) {
                sink.add(place(&what));
            }
        }
    }
    Ok(())
}

fn methods<'a>(context: &Context<'a>, cursor: &mut Cursor<'a>, sink: &mut Sink) -> Result<Vec<Method>, String> {
    let cut = || "the methods are cut off".to_owned();
    let pool = &context.pool;
    let mut seen = HashSet::new();
    let mut methods = Vec::new();
    for _ in 0..cursor.u16().ok_or_else(cut)? {
        let access = cursor.u16().ok_or_else(cut)?;
        let name = pool.utf8(cursor.u16().ok_or_else(cut)?).ok_or("a method has no name")?;
        let descriptor = pool.utf8(cursor.u16().ok_or_else(cut)?).ok_or("a method has no descriptor")?;
        sink.method = Some(text(name) + &text(descriptor));
        if !seen.insert((name, descriptor)) {
            sink.add("it is there twice");
        }
        let mut method = Method { name: name.to_vec(), descriptor: descriptor.to_vec(), ..Method::default() };
        let attributes = attributes(pool, cursor).map_err(|what| format!("method {}: {what}", text(name)))?;
        let codes: Vec<&Attribute<'_>> = attributes.iter().filter(|attribute| attribute.name == b"Code").collect();
        // ACC_NATIVE, ACC_ABSTRACT. Old initialisers carry odd flags (§4.6), so they are not judged.
        let wants_code = access & 0x0500 == 0;
        if name != b"<clinit>" && codes.len() != usize::from(wants_code) {
            sink.add(format!("it has {} Code attributes", codes.len()));
        }
        match descriptor::method(descriptor) {
            None => sink.add("its descriptor is not a method descriptor"),
            Some(shape) => {
                let receiver = (access & 0x0008 == 0).then_some(name == b"<init>");
                let signature = code::Signature { name, descriptor, parameters: shape.parameters, receiver };
                for code in codes {
                    if let Err(what) = body::check(context, &signature, code.info, &mut method, sink) {
                        sink.add(what);
                    }
                }
            }
        }
        for attribute in attributes {
            if let Err(what) = fixed(pool, &attribute) {
                sink.add(what);
            }
        }
        sink.method = None;
        methods.push(method);
    }
    Ok(methods)
}

/// Attributes of one length; what holds lists is left to the readers made by others.
fn fixed(pool: &Pool<'_>, attribute: &Attribute<'_>) -> Result<(), String> {
    use pool::{CLASS, DOUBLE, FLOAT, INTEGER, LONG, STRING, UTF8, set};
    let (length, tags) = match attribute.name {
        b"ConstantValue" => (2, set(&[INTEGER, FLOAT, LONG, DOUBLE, STRING])),
        b"Signature" | b"SourceFile" => (2, set(&[UTF8])),
        b"NestHost" => (2, set(&[CLASS])),
        b"EnclosingMethod" => (4, set(&[CLASS])),
        b"Synthetic" | b"Deprecated" => (0, 0),
        _ => return Ok(()),
    };
    let name = text(attribute.name);
    if attribute.info.len() != length {
        return Err(format!("its attribute {name} is {} bytes long instead of {length}", attribute.info.len()));
    }
    match Bytes(attribute.info).u16(0) {
        Some(index) if !pool.is(index, tags) => {
            Err(format!("its attribute {name} refers to the wrong kind of constant"))
        }
        _ => Ok(()),
    }
}

fn class_attributes(pool: &Pool<'_>, attributes: &[Attribute<'_>], sink: &mut Sink) -> Option<Mark> {
    let mut bootstraps = None;
    let mut mark = None;
    for attribute in attributes {
        if let Err(what) = fixed(pool, attribute) {
            sink.add(what);
        }
        if attribute.name == b"BootstrapMethods" {
            match bootstrap_methods(pool, attribute.info) {
                Ok(_) if bootstraps.is_some() => sink.add("it has two BootstrapMethods attributes"),
                Ok(count) => bootstraps = Some(count),
                Err(what) => sink.add(format!("BootstrapMethods: {what}")),
            }
        }
        if attribute.name == MARK {
            let info = Bytes(attribute.info);
            match (info.u8(0), info.u64(1), info.u32(9), attribute.info.len()) {
                _ if mark.is_some() => sink.add("it is marked as instrumented twice"),
                (Some(1), Some(artifact), Some(base), 14) => mark = Some(Mark { artifact, base }),
                _ => sink.add("its mark of instrumentation is not of this version"),
            }
        }
    }
    pool.check(bootstraps.unwrap_or(0), sink);
    mark
}

/// Number of bootstrap methods.
fn bootstrap_methods(pool: &Pool<'_>, info: &[u8]) -> Result<usize, String> {
    let cut = || "it is cut off".to_owned();
    let mut cursor = Cursor::new(info);
    let count = cursor.u16().ok_or_else(cut)?;
    for index in 0..count {
        if pool.tag(cursor.u16().ok_or_else(cut)?) != pool::METHOD_HANDLE {
            return Err(format!("method {index} is not a method handle"));
        }
        for _ in 0..cursor.u16().ok_or_else(cut)? {
            if !pool.is(cursor.u16().ok_or_else(cut)?, instructions::LOADABLE) {
                return Err(format!("an argument of method {index} cannot be loaded"));
            }
        }
    }
    if cursor.is_at_end() { Ok(count.into()) } else { Err("it is longer than its content".into()) }
}

/// Converts modified UTF-8 for display.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
