//! The instructions of a method (JVMS §4.9.1, §6.5), and what points at them.

use super::bytes::Cursor;
use super::code::{Code, Handler, IS_NEW, NEEDS_FRAME, START, Step};
use super::opcodes::*;
use super::pool::{
    CLASS, DOUBLE, DYNAMIC, FIELD, FLOAT, INTEGER, INTERFACE_METHOD, INVOKE_DYNAMIC, LONG, METHOD, METHOD_HANDLE,
    METHOD_TYPE, Pool, STRING, set,
};
use super::{Context, HEAP_PROXY, Method, Sink, descriptor};

/// Constants that are loadable by `ldc`, or as bootstrap arguments (§5.1).
pub(super) const LOADABLE: u32 =
    set(&[INTEGER, FLOAT, LONG, DOUBLE, CLASS, STRING, METHOD_HANDLE, METHOD_TYPE, DYNAMIC]);

/// Checks all instructions and notes them in `code`.
pub(super) fn check<'a>(
    context: &Context<'a>,
    code: &mut Code<'a>,
    method: &mut Method,
    sink: &mut Sink,
) -> Result<(), String> {
    Walk { context, code, sink, last_constant: None, method }.instructions()
}

/// Checks the exception table, whose ranges must cover instructions.
pub(super) fn exception_table(
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
            sink.at(
                start.into(),
                format!("row {row} of the exception table covers {start} to {end}, which are not instructions"),
            );
        }
        if code.has(handler.into(), START) {
            code.marks[usize::from(handler)] |= NEEDS_FRAME;
        } else {
            sink.at(handler.into(), format!("row {row} of the exception table: its handler is not an instruction"));
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
pub(super) fn jumps(code: &mut Code<'_>, sink: &mut Sink) {
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

/// How long an instruction is, and what it does to the stack.
struct Shape {
    length: usize,
    pops: u32,
    pushes: u32,
    ends_block: bool,
}

impl Shape {
    /// The effect that depends only on the opcode.
    fn of(opcode: u8, length: usize) -> Self {
        let (pops, pushes) = effect(opcode);
        Self { length, pops: pops.into(), pushes: pushes.into(), ends_block: ends_block(opcode) }
    }
}

fn cut() -> String {
    "the instruction is cut off".to_owned()
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
        let opcode = self.code.bytes.u8(at).ok_or_else(cut)?;
        let targets = self.code.targets.len() as u32;
        let constant = self.last_constant.take();
        let operands = operands(opcode);
        let shape = match operands {
            Operands::Plain(count) => {
                self.plain(at, opcode);
                Shape::of(opcode, 1 + usize::from(count))
            }
            Operands::Local(_) | Operands::Increment | Operands::Wide => self.of_local(at, opcode, operands)?,
            Operands::ArrayKind => {
                if !matches!(self.code.bytes.u8(at + 1), Some(4..=11)) {
                    self.sink.at(at, "newarray of a type that is not primitive");
                }
                Shape::of(opcode, 2)
            }
            Operands::Branch2 | Operands::Branch4 | Operands::Table | Operands::Lookup => {
                Shape::of(opcode, self.jump(at, operands).ok_or_else(cut)?)
            }
            Operands::Constant1
            | Operands::Constant2
            | Operands::Interface
            | Operands::Dynamic
            | Operands::Dimensions => self.of_constant(at, opcode, operands, constant).ok_or_else(cut)?,
            Operands::None => return Err(format!("opcode {opcode} is not an instruction")),
        };
        if opcode == NEW {
            self.code.marks[at] |= IS_NEW;
        }
        let Shape { length, pops, pushes, ends_block } = shape;
        let calls_subroutine = matches!(opcode, JSR | JSR_W);
        self.code.steps.push(Step { at: at as u32, pops, pushes, targets, ends_block, calls_subroutine });
        Ok(length)
    }

    /// Handles an instruction without operands, or with numbers as operands.
    fn plain(&mut self, at: usize, opcode: u8) {
        if let Some((local, slots)) = short_local(opcode) {
            self.local(at, local, slots);
        }
        let bytes = self.code.bytes;
        self.last_constant = match opcode {
            2..=8 => Some(i32::from(opcode) - 3),
            BIPUSH => bytes.u8(at + 1).map(|value| i32::from(value.cast_signed())),
            SIPUSH => bytes.i16(at + 1).map(i32::from),
            _ => None,
        };
    }

    /// An instruction with the index of a local variable.
    fn of_local(&mut self, at: usize, opcode: u8, kind: Operands) -> Result<Shape, String> {
        let bytes = self.code.bytes;
        let (opcode, kind, index, length) = match kind {
            Operands::Wide => {
                let modified = bytes.u8(at + 1).ok_or_else(cut)?;
                (modified, operands(modified), bytes.u16(at + 2).ok_or_else(cut)?, 4)
            }
            kind => (opcode, kind, bytes.u8(at + 1).ok_or_else(cut)?.into(), 2),
        };
        // The increment is as wide as the index.
        let (slots, length) = match kind {
            Operands::Local(slots) => (slots.into(), length),
            Operands::Increment => (1, length + length / 2),
            _ => return Err(format!("wide before opcode {opcode}")),
        };
        self.local(at, index, slots);
        Ok(Shape::of(opcode, length))
    }

    /// An instruction with the index of a constant; `None` if it is cut off.
    fn of_constant(&mut self, at: usize, opcode: u8, kind: Operands, pushed: Option<i32>) -> Option<Shape> {
        let bytes = self.code.bytes;
        if let Operands::Constant1 = kind {
            let (_, pushes) = self.constant(at, opcode, bytes.u8(at + 1)?.into(), pushed);
            return Some(Shape { pushes, ..Shape::of(opcode, 2) });
        }
        let index = bytes.u16(at + 1)?;
        Some(match kind {
            Operands::Constant2 if matches!(opcode, NEW | 189 | 192 | 193) => {
                self.class(at, opcode, index);
                Shape::of(opcode, 3)
            }
            Operands::Interface => {
                let (pops, pushes) = self.constant(at, opcode, index, pushed);
                if bytes.u8(at + 3).map(u32::from) != Some(pops) || bytes.u8(at + 4) != Some(0) {
                    self.sink.at(at, "the count of invokeinterface is wrong");
                }
                Shape { pops, pushes, ..Shape::of(opcode, 5) }
            }
            Operands::Dynamic => {
                let shape = self.context.pool.dynamic(index, INVOKE_DYNAMIC).and_then(descriptor::method);
                if shape.is_none() {
                    self.sink.at(at, "invokedynamic of the wrong kind of constant");
                }
                if bytes.u16(at + 3) != Some(0) {
                    self.sink.at(at, "invokedynamic with nonzero reserved bytes");
                }
                let (pops, pushes) = shape.map_or((0, 0), |shape| (shape.parameters, shape.returns));
                Shape { pops, pushes, ..Shape::of(opcode, 5) }
            }
            Operands::Dimensions => {
                let dimensions = bytes.u8(at + 3)?;
                let class = self.context.pool.class(index).unwrap_or_default();
                let possible = class.iter().take_while(|byte| **byte == b'[').count();
                if dimensions == 0 || usize::from(dimensions) > possible {
                    self.sink.at(at, "multianewarray with more dimensions than its type has");
                }
                Shape { pops: dimensions.into(), pushes: 1, ..Shape::of(opcode, 4) }
            }
            _ => {
                let (pops, pushes) = self.constant(at, opcode, index, pushed);
                Shape { pops, pushes, ..Shape::of(opcode, 3) }
            }
        })
    }

    /// Notes where a jump leads. Its length; `None` if it is cut off.
    fn jump(&mut self, at: usize, kind: Operands) -> Option<usize> {
        match kind {
            Operands::Table => self.table(at),
            Operands::Lookup => self.lookup(at),
            Operands::Branch4 => {
                let by = self.code.bytes.i32(at + 1)?;
                self.target(at, by);
                Some(5)
            }
            _ => {
                let by = self.code.bytes.i16(at + 1)?;
                self.target(at, by.into());
                Some(3)
            }
        }
    }

    fn local(&mut self, at: usize, local: u16, slots: u16) {
        if u32::from(local) + u32::from(slots) > u32::from(self.code.max_locals) {
            self.sink.at(at, format!("local variable {local} is beyond max_locals {}", self.code.max_locals));
        }
    }

    fn target(&mut self, at: usize, by: i32) {
        // A negative target becomes too large to be an offset.
        self.code.targets.push((at as i64 + i64::from(by)) as u32);
    }

    fn table(&mut self, at: usize) -> Option<usize> {
        let bytes = self.code.bytes;
        let start = self.padding(at)?;
        let (low, high) = (bytes.i32(start + 4)?, bytes.i32(start + 8)?);
        let count = i64::from(high) - i64::from(low) + 1;
        if count < 1 {
            self.sink.at(at, "tableswitch with low above high");
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
                self.sink.at(at, "lookupswitch with keys out of order");
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
            self.sink.at(at, "a switch has nonzero padding");
        }
        Some(start)
    }

    fn class(&mut self, at: usize, opcode: u8, index: u16) {
        match self.context.pool.class(index) {
            None => self.sink.at(at, "the instruction refers to a constant that is not a class"),
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
                self.sink.at(at, "a dynamic constant of the wrong size is loaded");
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
            self.sink.at(at, "an initializer is called by an instruction other than invokespecial");
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
            b"entry" | b"entryInit" | b"leaf" | b"exit" | b"exitThrow" | b"thrown" | b"handled" | b"superCall" => true,
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
