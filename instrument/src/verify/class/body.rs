//! Checks a `Code` attribute (JVMS §4.7.3, §4.9.1): all parts of a method's code, in the order of their dependencies.

use super::bytes::{Bytes, Cursor};
use super::code::{Code, Signature};
use super::{Attribute, Context, Method, Sink, attributes, depth, frames, instructions, tables};

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
    instructions::check(context, &mut code, method, sink)?;
    instructions::exception_table(&context.pool, &mut code, &mut cursor, sink)?;
    instructions::jumps(&mut code, sink);
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
