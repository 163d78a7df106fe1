//! A `Code` attribute (JVMS §4.7.3, §4.9.1): instructions, and what points at them.

use super::bytes::{Bytes, Cursor};
use super::opcodes::*;
use super::pool::{
    CLASS, DOUBLE, DYNAMIC, FIELD, FLOAT, INTEGER, INTERFACE_METHOD, INVOKE_DYNAMIC, LONG, METHOD, METHOD_HANDLE,
    METHOD_TYPE, Pool, STRING, set,
};
use super::{Attribute, Context, HEAP_PROXY, Method, Sink, attributes, depth, descriptor, frames, tables};

/// What `ldc` may load, or a bootstrap method take (§5.1).
pub(super) const LOADABLE: u32 =
    set(&[INTEGER, FLOAT, LONG, DOUBLE, CLASS, STRING, METHOD_HANDLE, METHOD_TYPE, DYNAMIC]);

/// An instruction starts here.
pub(super) const START: u8 = 1;
/// Control comes here other than from the instruction before.
pub(super) const NEEDS_FRAME: u8 = 2;
/// There is a frame.
pub(super) const HAS_FRAME: u8 = 4;
/// A `new`.
pub(super) const IS_NEW: u8 = 8;

/// The method that the code is of.
pub(super) struct Signature<'a> {
    pub name: &'a [u8],
    pub descriptor: &'a [u8],
    /// In slots, without the receiver.
    pub parameters: u32,
    /// Whether the receiver is uninitialised at entry; `None` if there is no receiver.
    pub receiver: Option<bool>,
}

/// An instruction, as far as the depth of the stack is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub at: u32,
    pub pops: u32,
    pub pushes: u32,
    /// Where its targets start in [`Code::targets`]; they end where the next instruction's start.
    pub targets: u32,
    pub ends_block: bool,
    /// `jsr`: the instruction behind it is reached by its `ret`.
    pub calls_subroutine: bool,
}

/// A row of the exception table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handler {
    pub start: u16,
    pub end: u16,
    pub handler: u16,
}

/// Code being checked.
pub(super) struct Code<'a> {
    pub max_stack: u16,
    pub max_locals: u16,
    pub bytes: Bytes<'a>,
    /// By offset.
    pub marks: Vec<u8>,
    pub steps: Vec<Step>,
    pub targets: Vec<u32>,
    pub handlers: Vec<Handler>,
}

impl Code<'_> {
    pub(super) fn length(&self) -> usize {
        self.marks.len()
    }

    pub(super) fn has(&self, offset: usize, mark: u8) -> bool {
        self.marks.get(offset).is_some_and(|marks| marks & mark != 0)
    }

    /// Whether it is an instruction's offset, or the end.
    pub(super) fn is_bound(&self, offset: usize) -> bool {
        offset == self.length() || self.has(offset, START)
    }
}

pub(super) fn check<'a>(
    context: &Context<'a>,
    signature: &Signature<'_>,
    info: &'a [u8],
    method: &mut Method,
    sink: &mut Sink,
) -> Result<(), String> {
    let cut = || "its Code attribute is cut off".to_owned();
    let mut cursor = Cursor::new(info);
    let max_stack = cursor.u16().ok_or_else(cut)?;
    let max_locals = cursor.u16().ok_or_else(cut)?;
    let length = cursor.u32().ok_or_else(cut)? as usize;
    if !(1..=65535).contains(&length) {
        return Err(format!("its code is {length} bytes long"));
    }
    let bytes = cursor.take(length).ok_or_else(cut)?;
    let mut code = Code {
        max_stack,
        max_locals,
        bytes: Bytes(bytes),
        marks: vec![0; length],
        steps: Vec::new(),
        targets: Vec::new(),
        handlers: Vec::new(),
    };
    if signature.parameters + u32::from(signature.receiver.is_some()) > u32::from(max_locals) {
        sink.add(format!("its parameters do not fit max_locals {max_locals}"));
    }
    let faults = sink.count();
    Walk { context, code: &mut code, sink, last_constant: None, method }.instructions()?;
    exception_table(&context.pool, &mut code, &mut cursor, sink)?;
    jumps(&mut code, sink);
    let attributes = attributes(&context.pool, &mut cursor)?;
    if !cursor.is_at_end() {
        return Err("its Code attribute is longer than its content".into());
    }
    let depths = frames::check(context, signature, &mut code, &attributes, sink)?;
    for Attribute { name, info } in attributes {
        tables::check(context, &code, name, info, sink);
    }
    // Depths of code that does not hold together say nothing.
    if sink.count() == faults {
        depth::check(&code, &depths, sink);
    }
    Ok(())
}

fn exception_table(
    pool: &Pool<'_>,
    code: &mut Code<'_>,
    cursor: &mut Cursor<'_>,
    sink: &mut Sink,
) -> Result<(), String> {
    let cut = || "its exception table is cut off".to_owned();
    for row in 0..cursor.u16().ok_or_else(cut)? {
        let mut next = || cursor.u16().ok_or_else(cut);
        let (start, end, handler, class) = (next()?, next()?, next()?, next()?);
        let bounds = start < end && code.has(start.into(), START) && code.is_bound(end.into());
        if !bounds {
            sink.at(start.into(), format!("row {row} of the exception table covers {start} to {end}: no instructions"));
        }
        if code.has(handler.into(), START) {
            code.marks[usize::from(handler)] |= NEEDS_FRAME;
        } else {
            sink.at(handler.into(), format!("row {row} of the exception table: its handler is no instruction"));
        }
        if class != 0 && pool.class(class).is_none() {
            sink.at(start.into(), format!("row {row} of the exception table catches no class"));
        }
        if bounds {
            code.handlers.push(Handler { start, end, handler });
        }
    }
    Ok(())
}

/// Marks the targets of jumps, now that the instructions are known.
fn jumps(code: &mut Code<'_>, sink: &mut Sink) {
    for index in 0..code.steps.len() {
        let step = code.steps[index];
        let end = code.steps.get(index + 1).map_or(code.targets.len(), |next| next.targets as usize);
        for target in step.targets as usize..end {
            let target = code.targets[target] as usize;
            if code.has(target, START) {
                code.marks[target] |= NEEDS_FRAME;
            } else {
                sink.at(step.at as usize, format!("it jumps to {}, where no instruction starts", target.cast_signed()));
            }
        }
        match code.steps.get(index + 1) {
            Some(next) if step.ends_block => code.marks[next.at as usize] |= NEEDS_FRAME,
            None if !step.ends_block => sink.at(step.at as usize, "execution runs off the end of the code"),
            _ => {}
        }
    }
}

/// A walk over the instructions.
struct Walk<'w, 'a> {
    context: &'w Context<'a>,
    code: &'w mut Code<'a>,
    sink: &'w mut Sink,
    method: &'w mut Method,
    /// The int that the last instruction pushed.
    last_constant: Option<i32>,
}

impl Walk<'_, '_> {
    fn instructions(&mut self) -> Result<(), String> {
        let mut at = 0;
        while at < self.code.length() {
            self.code.marks[at] |= START;
            let length = self.instruction(at).map_err(|what| format!("offset {at}: {what}"))?;
            at += length;
            if at > self.code.length() {
                return Err("its last instruction is cut off".into());
            }
        }
        Ok(())
    }

    /// Checks one instruction and returns its length.
    fn instruction(&mut self, at: usize) -> Result<usize, String> {
        let bytes = self.code.bytes;
        let cut = || "the instruction is cut off".to_owned();
        let opcode = bytes.u8(at).ok_or_else(cut)?;
        let (mut pops, mut pushes) = effect(opcode);
        let (mut wide_pops, mut wide_pushes) = (0, 0);
        let mut ends_block = ends_block(opcode);
        let first_target = self.code.targets.len() as u32;
        let constant = self.last_constant.take();
        let length = match operands(opcode) {
            Operands::Plain(count) => {
                if let Some((local, slots)) = short_local(opcode) {
                    self.local(at, local, slots);
                }
                self.last_constant = match opcode {
                    2..=8 => Some(i32::from(opcode) - 3),
                    BIPUSH => bytes.u8(at + 1).map(|value| i32::from(value.cast_signed())),
                    SIPUSH => bytes.i16(at + 1).map(i32::from),
                    _ => None,
                };
                1 + usize::from(count)
            }
            Operands::Local(slots) => {
                self.local(at, bytes.u8(at + 1).ok_or_else(cut)?.into(), slots.into());
                2
            }
            Operands::Increment => {
                self.local(at, bytes.u8(at + 1).ok_or_else(cut)?.into(), 1);
                3
            }
            Operands::ArrayKind => {
                if !matches!(bytes.u8(at + 1), Some(4..=11)) {
                    self.sink.at(at, "newarray of no primitive type");
                }
                2
            }
            Operands::Constant1 => {
                let index = bytes.u8(at + 1).ok_or_else(cut)?.into();
                (_, wide_pushes) = self.constant(at, opcode, index, constant);
                pushes = 0;
                2
            }
            Operands::Constant2 => {
                let index = bytes.u16(at + 1).ok_or_else(cut)?;
                if !matches!(opcode, NEW | 189 | 192 | 193) {
                    (wide_pops, wide_pushes) = self.constant(at, opcode, index, constant);
                    (pops, pushes) = (0, 0);
                } else {
                    self.class(at, opcode, index);
                }
                3
            }
            Operands::Interface => {
                let index = bytes.u16(at + 1).ok_or_else(cut)?;
                (wide_pops, wide_pushes) = self.constant(at, opcode, index, constant);
                if bytes.u8(at + 3).map(u32::from) != Some(wide_pops) || bytes.u8(at + 4) != Some(0) {
                    self.sink.at(at, "the count of invokeinterface is wrong");
                }
                5
            }
            Operands::Dynamic => {
                let index = bytes.u16(at + 1).ok_or_else(cut)?;
                match self.context.pool.dynamic(index, INVOKE_DYNAMIC).and_then(descriptor::method) {
                    Some(shape) => (wide_pops, wide_pushes) = (shape.parameters, shape.returns),
                    None => self.sink.at(at, "invokedynamic of another kind of constant"),
                }
                if bytes.u16(at + 3) != Some(0) {
                    self.sink.at(at, "invokedynamic without its zeros");
                }
                5
            }
            Operands::Dimensions => {
                let index = bytes.u16(at + 1).ok_or_else(cut)?;
                let dimensions = bytes.u8(at + 3).ok_or_else(cut)?;
                let class = self.context.pool.class(index).unwrap_or_default();
                let possible = class.iter().take_while(|byte| **byte == b'[').count();
                if dimensions == 0 || usize::from(dimensions) > possible {
                    self.sink.at(at, "multianewarray of a type without so many dimensions");
                }
                (pops, pushes) = (dimensions, 1);
                4
            }
            Operands::Branch2 => {
                let by = bytes.i16(at + 1).ok_or_else(cut)?;
                self.target(at, by.into());
                3
            }
            Operands::Branch4 => {
                let by = bytes.i32(at + 1).ok_or_else(cut)?;
                self.target(at, by);
                5
            }
            Operands::Table => self.table(at).ok_or_else(cut)?,
            Operands::Lookup => self.lookup(at).ok_or_else(cut)?,
            Operands::Wide => {
                let modified = bytes.u8(at + 1).ok_or_else(cut)?;
                let local = bytes.u16(at + 2).ok_or_else(cut)?;
                (pops, pushes) = effect(modified);
                ends_block = modified == RET;
                match operands(modified) {
                    Operands::Local(slots) => {
                        self.local(at, local, slots.into());
                        4
                    }
                    Operands::Increment => {
                        self.local(at, local, 1);
                        6
                    }
                    _ => return Err(format!("wide before opcode {modified}")),
                }
            }
            Operands::None => return Err(format!("opcode {opcode} is no instruction")),
        };
        if opcode == NEW {
            self.code.marks[at] |= IS_NEW;
        }
        self.code.steps.push(Step {
            at: at as u32,
            pops: u32::from(pops) + wide_pops,
            pushes: u32::from(pushes) + wide_pushes,
            targets: first_target,
            ends_block,
            calls_subroutine: matches!(opcode, JSR | JSR_W),
        });
        Ok(length)
    }

    fn local(&mut self, at: usize, local: u16, slots: u16) {
        if u32::from(local) + u32::from(slots) > u32::from(self.code.max_locals) {
            self.sink.at(at, format!("local variable {local} is beyond max_locals {}", self.code.max_locals));
        }
    }

    fn target(&mut self, at: usize, by: i32) {
        // What is negative becomes too large to be an offset.
        self.code.targets.push((at as i64 + i64::from(by)) as u32);
    }

    fn table(&mut self, at: usize) -> Option<usize> {
        let bytes = self.code.bytes;
        let start = self.padding(at)?;
        let (low, high) = (bytes.i32(start + 4)?, bytes.i32(start + 8)?);
        let count = i64::from(high) - i64::from(low) + 1;
        if count < 1 {
            self.sink.at(at, "tableswitch whose low is above its high");
            return None;
        }
        let count = usize::try_from(count).ok().filter(|count| *count <= self.code.length() / 4)?;
        self.target(at, bytes.i32(start)?);
        for index in 0..count {
            self.target(at, bytes.i32(start + 12 + 4 * index)?);
        }
        Some(start + 12 + 4 * count - at)
    }

    fn lookup(&mut self, at: usize) -> Option<usize> {
        let bytes = self.code.bytes;
        let start = self.padding(at)?;
        let count = usize::try_from(bytes.i32(start + 4)?).ok().filter(|count| *count <= self.code.length() / 8)?;
        self.target(at, bytes.i32(start)?);
        let mut last = None;
        for index in 0..count {
            let key = bytes.i32(start + 8 + 8 * index)?;
            if last.is_some_and(|last| last >= key) {
                self.sink.at(at, "lookupswitch whose keys do not ascend");
            }
            last = Some(key);
            self.target(at, bytes.i32(start + 12 + 8 * index)?);
        }
        Some(start + 8 + 8 * count - at)
    }

    /// Where a switch's numbers start. The JVM does not insist on zeros in between from version 51 on (§4.9.1).
    fn padding(&mut self, at: usize) -> Option<usize> {
        let start = (at + 4) & !3;
        let padding = self.code.bytes.range(at + 1, start - at - 1)?;
        if self.context.major < 51 && padding.iter().any(|byte| *byte != 0) {
            self.sink.at(at, "a switch is padded with other than zeros");
        }
        Some(start)
    }

    fn class(&mut self, at: usize, opcode: u8, index: u16) {
        match self.context.pool.class(index) {
            None => self.sink.at(at, "the instruction refers to a constant that is no class"),
            Some(name) if opcode == NEW && name.starts_with(b"[") => self.sink.at(at, "new of an array"),
            Some(_) => {}
        }
    }

    /// Slots popped and pushed by what uses a constant.
    fn constant(&mut self, at: usize, opcode: u8, index: u16, pushed: Option<i32>) -> (u32, u32) {
        let pool = &self.context.pool;
        let wanted = match opcode {
            LDC | LDC_W => set(&[INTEGER, FLOAT, CLASS, STRING, METHOD_HANDLE, METHOD_TYPE, DYNAMIC]),
            20 => set(&[LONG, DOUBLE, DYNAMIC]),
            GETSTATIC..=PUTFIELD => set(&[FIELD]),
            INVOKEVIRTUAL => set(&[METHOD]),
            INVOKEINTERFACE => set(&[INTERFACE_METHOD]),
            // §4.9.1: interface methods from version 52 on.
            _ if self.context.major >= 52 => set(&[METHOD, INTERFACE_METHOD]),
            _ => set(&[METHOD]),
        };
        if !pool.is(index, wanted) {
            self.sink.at(at, format!("the instruction refers to constant {index}, which is of the wrong kind"));
            return (0, 0);
        }
        if matches!(opcode, LDC | LDC_W | 20) {
            self.last_constant = pool.integer(index);
            let slots = if opcode == 20 { 2 } else { 1 };
            let dynamic = pool.dynamic(index, DYNAMIC);
            if dynamic.is_some_and(|descriptor| descriptor::field(descriptor) != Some(slots)) {
                self.sink.at(at, "a dynamic constant of another size is loaded");
            }
            return (0, slots);
        }
        // Where the constant itself is wrong, the check of the pool says so.
        let Some(reference) = pool.reference(index) else { return (0, 0) };
        let receiver = u32::from(!matches!(opcode, GETSTATIC | PUTSTATIC | INVOKESTATIC));
        if opcode < INVOKEVIRTUAL {
            let Some(slots) = descriptor::field(reference.descriptor) else { return (0, 0) };
            return if matches!(opcode, GETSTATIC | GETFIELD) { (receiver, slots) } else { (receiver + slots, 0) };
        }
        if reference.name.starts_with(b"<") && (reference.name != b"<init>" || opcode != INVOKESPECIAL) {
            self.sink.at(at, "an initialiser is called by another instruction than invokespecial");
        }
        if opcode == INVOKESTATIC && reference.class.starts_with(HEAP_PROXY) {
            self.hook(reference.name, reference.descriptor, pushed);
        }
        let Some(shape) = descriptor::method(reference.descriptor) else { return (0, 0) };
        (receiver + shape.parameters, shape.returns)
    }

    /// Notes the ids that hooks pass.
    fn hook(&mut self, name: &[u8], descriptor: &[u8], pushed: Option<i32>) {
        let of_method = match name {
            b"entry" | b"entryInit" | b"exit" | b"exitThrow" | b"thrown" | b"handled" | b"superCall" => true,
            b"site" | b"allocatedArray" | b"allocatedMulti" | b"putField" | b"putStatic" => false,
            _ => return,
        };
        let last_is_id = [&b"I)V"[..], b"I)I"].iter().any(|end| descriptor.ends_with(end));
        let Some(id) = pushed.filter(|id| last_is_id && *id != 0).map(i32::cast_unsigned) else { return };
        let (low, high) = self.method.ids.unwrap_or((id, id));
        self.method.ids = Some((low.min(id), high.max(id)));
        if of_method && !self.method.method_ids.contains(&id) {
            self.method.method_ids.push(id);
        }
    }
}
