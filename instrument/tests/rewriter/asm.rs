//! A minimal class file assembler for shapes that no available compiler produces.

use std::collections::HashMap;

use et_rewriter::code::opcode::*;
use et_rewriter::code::{Frame, StackMap, VerificationType};

pub const STATIC: u16 = 0x0008;
pub const PUBLIC: u16 = 0x0001;

/// A class under construction.
pub struct Class {
    major: u16,
    name: String,
    pool: Vec<u8>,
    count: u16,
    known: HashMap<Vec<u8>, u16>,
    this: u16,
    parent: u16,
    fields: Vec<u8>,
    field_count: u16,
    methods: Vec<u8>,
    method_count: u16,
    /// Attributes of the class, name and content.
    pub attributes: Vec<(String, Vec<u8>)>,
}

impl Class {
    /// Creates a public class with superclass `Object`.
    pub fn new(major: u16, name: &str) -> Self {
        Self::extending(major, name, "java/lang/Object")
    }

    pub fn extending(major: u16, name: &str, parent: &str) -> Self {
        let mut class = Self {
            major,
            name: name.into(),
            pool: Vec::new(),
            count: 1,
            known: HashMap::new(),
            this: 0,
            parent: 0,
            fields: Vec::new(),
            field_count: 0,
            methods: Vec::new(),
            method_count: 0,
            attributes: Vec::new(),
        };
        class.this = class.class(name);
        class.parent = class.class(parent);
        class
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Pool entries there are, the unused first one included.
    pub fn pool_count(&self) -> u16 {
        self.count
    }

    fn constant(&mut self, entry: Vec<u8>) -> u16 {
        if let Some(&index) = self.known.get(&entry) {
            return index;
        }
        self.pool.extend_from_slice(&entry);
        self.known.insert(entry, self.count);
        self.count += 1;
        self.count - 1
    }

    pub fn utf8(&mut self, text: &str) -> u16 {
        self.constant([&[1], &(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat())
    }

    pub fn int(&mut self, value: i32) -> u16 {
        self.constant([&[3], &value.to_be_bytes()[..]].concat())
    }

    pub fn class(&mut self, name: &str) -> u16 {
        let name = self.utf8(name);
        self.constant([&[7], &name.to_be_bytes()[..]].concat())
    }

    pub fn string(&mut self, text: &str) -> u16 {
        let text = self.utf8(text);
        self.constant([&[8], &text.to_be_bytes()[..]].concat())
    }

    fn member(&mut self, tag: u8, class: &str, name: &str, descriptor: &str) -> u16 {
        let (name, descriptor) = (self.utf8(name), self.utf8(descriptor));
        let signature = self.constant([&[12], &name.to_be_bytes()[..], &descriptor.to_be_bytes()].concat());
        let class = self.class(class);
        self.constant([&[tag], &class.to_be_bytes()[..], &signature.to_be_bytes()].concat())
    }

    pub fn field_ref(&mut self, class: &str, name: &str, descriptor: &str) -> u16 {
        self.member(9, class, name, descriptor)
    }

    pub fn method_ref(&mut self, class: &str, name: &str, descriptor: &str) -> u16 {
        self.member(10, class, name, descriptor)
    }

    /// Declares a public field.
    pub fn field(&mut self, access: u16, name: &str, descriptor: &str) {
        let (name, descriptor) = (self.utf8(name), self.utf8(descriptor));
        for value in [access | PUBLIC, name, descriptor, 0] {
            self.fields.extend_from_slice(&value.to_be_bytes());
        }
        self.field_count += 1;
    }

    /// Adds a public method.
    pub fn method(&mut self, access: u16, name: &str, descriptor: &str, code: Code) {
        let code = code.attribute(self);
        let (name, descriptor, attribute) = (self.utf8(name), self.utf8(descriptor), self.utf8("Code"));
        for value in [access | PUBLIC, name, descriptor, 1, attribute] {
            self.methods.extend_from_slice(&value.to_be_bytes());
        }
        self.methods.extend_from_slice(&(code.len() as u32).to_be_bytes());
        self.methods.extend_from_slice(&code);
        self.method_count += 1;
    }

    /// Appends the code of a `System.out.println(int)` for the int on the stack.
    pub fn print_int(&mut self, code: &mut Code) {
        let value_of = self.method_ref("java/lang/String", "valueOf", "(I)Ljava/lang/String;");
        code.index(INVOKESTATIC, value_of);
        self.print(code);
    }

    /// Appends the code of a `System.out.println(Object)` for the reference on the stack.
    pub fn print(&mut self, code: &mut Code) {
        let out = self.field_ref("java/lang/System", "out", "Ljava/io/PrintStream;");
        let print = self.method_ref("java/io/PrintStream", "println", "(Ljava/lang/Object;)V");
        code.index(GETSTATIC, out).op(SWAP).index(INVOKEVIRTUAL, print);
    }

    pub fn bytes(mut self) -> Vec<u8> {
        let attributes: Vec<(u16, Vec<u8>)> =
            std::mem::take(&mut self.attributes).into_iter().map(|(name, info)| (self.utf8(&name), info)).collect();
        let mut out = 0xCAFE_BABEu32.to_be_bytes().to_vec();
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.major.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&self.pool);
        // public, super; no interfaces
        for value in [0x0021, self.this, self.parent, 0, self.field_count] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        out.extend_from_slice(&self.fields);
        out.extend_from_slice(&self.method_count.to_be_bytes());
        out.extend_from_slice(&self.methods);
        out.extend_from_slice(&(attributes.len() as u16).to_be_bytes());
        for (name, info) in attributes {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&(info.len() as u32).to_be_bytes());
            out.extend_from_slice(&info);
        }
        out
    }
}

/// A place in the code, bound once, used by branches, frames and tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// Code of a method under construction.
pub struct Code {
    max_stack: u16,
    max_locals: u16,
    bytes: Vec<u8>,
    labels: Vec<Option<u16>>,
    /// Offset of a 16-bit jump offset, pc of its instruction, label.
    branches: Vec<(usize, usize, Label)>,
    catches: Vec<(Label, Label, Label, u16)>,
    frames: Vec<(Label, Vec<VerificationType>, Vec<VerificationType>)>,
    /// The locals on entry, for frames in their shortest form; without them all frames are written in full.
    pub initial_locals: Option<Vec<VerificationType>>,
    /// Further attributes, name and content.
    pub attributes: Vec<(String, Vec<u8>)>,
}

impl Code {
    pub fn new(max_stack: u16, max_locals: u16) -> Self {
        Self {
            max_stack,
            max_locals,
            bytes: Vec::new(),
            labels: Vec::new(),
            branches: Vec::new(),
            catches: Vec::new(),
            frames: Vec::new(),
            initial_locals: None,
            attributes: Vec::new(),
        }
    }

    pub fn pc(&self) -> usize {
        self.bytes.len()
    }

    pub fn op(&mut self, opcode: u8) -> &mut Self {
        self.bytes.push(opcode);
        self
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// An instruction with a constant pool index.
    pub fn index(&mut self, opcode: u8, index: u16) -> &mut Self {
        self.op(opcode).raw(&index.to_be_bytes())
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub fn bind(&mut self, label: Label) -> &mut Self {
        self.labels[label.0] = Some(self.bytes.len() as u16);
        self
    }

    /// Creates a label bound to this position.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// Adds a branch with a 16-bit offset.
    pub fn branch(&mut self, opcode: u8, to: Label) -> &mut Self {
        let pc = self.bytes.len();
        self.branches.push((pc + 1, pc, to));
        self.raw(&[opcode, 0, 0])
    }

    /// A row of the exception table.
    pub fn catch(&mut self, start: Label, end: Label, handler: Label, class: u16) -> &mut Self {
        self.catches.push((start, end, handler, class));
        self
    }

    /// Adds a frame at this position.
    pub fn frame(&mut self, locals: &[VerificationType], stack: &[VerificationType]) -> &mut Self {
        let at = self.here();
        self.frames.push((at, locals.to_vec(), stack.to_vec()));
        self
    }

    fn attribute(mut self, class: &mut Class) -> Vec<u8> {
        let place = |label: Label| self.labels[label.0].expect("the label is bound");
        for &(at, pc, to) in &self.branches {
            let offset = i32::from(place(to)) - pc as i32;
            let offset = i16::try_from(offset).expect("the branch reaches its target");
            self.bytes[at..at + 2].copy_from_slice(&offset.to_be_bytes());
        }
        let mut out = Vec::new();
        out.extend_from_slice(&self.max_stack.to_be_bytes());
        out.extend_from_slice(&self.max_locals.to_be_bytes());
        out.extend_from_slice(&(self.bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(&(self.catches.len() as u16).to_be_bytes());
        for &(start, end, handler, catch_type) in &self.catches {
            for value in [place(start), place(end), place(handler), catch_type] {
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
        // Frames came with version 50; before, the table would mean nothing.
        if !self.frames.is_empty() && class.major >= 50 {
            let table = match self.initial_locals.take() {
                Some(initial_locals) => {
                    let frames = self.frames.iter().map(|(at, locals, stack)| Frame {
                        pc: place(*at).into(),
                        locals: locals.clone(),
                        stack: stack.clone(),
                    });
                    StackMap { initial_locals, frames: frames.collect() }.write()
                }
                None => full_frames(self.frames.iter().map(|(at, locals, stack)| (place(*at), locals, stack))),
            };
            self.attributes.push(("StackMapTable".into(), table));
        }
        out.extend_from_slice(&(self.attributes.len() as u16).to_be_bytes());
        for (name, info) in &self.attributes {
            out.extend_from_slice(&class.utf8(name).to_be_bytes());
            out.extend_from_slice(&(info.len() as u32).to_be_bytes());
            out.extend_from_slice(info);
        }
        out
    }
}

fn full_frames<'f>(
    frames: impl ExactSizeIterator<Item = (u16, &'f Vec<VerificationType>, &'f Vec<VerificationType>)>,
) -> Vec<u8> {
    let mut table = (frames.len() as u16).to_be_bytes().to_vec();
    let mut next = 0;
    for (at, locals, stack) in frames {
        table.push(255);
        table.extend_from_slice(&(at - next).to_be_bytes());
        next = at + 1;
        for types in [locals, stack] {
            table.extend_from_slice(&(types.len() as u16).to_be_bytes());
            types.iter().for_each(|&kind| verification_type(kind, &mut table));
        }
    }
    table
}

fn verification_type(kind: VerificationType, out: &mut Vec<u8>) {
    use VerificationType::*;
    let (tag, operand) = match kind {
        Top => (0, None),
        Integer => (1, None),
        Float => (2, None),
        Double => (3, None),
        Long => (4, None),
        Null => (5, None),
        UninitializedThis => (6, None),
        Object(class) => (7, Some(class)),
        Uninitialized(pc) => (8, Some(pc)),
    };
    out.push(tag);
    out.extend(operand.into_iter().flat_map(u16::to_be_bytes));
}
