//! A compact disassembly for users and for snapshot tests, without constant pool indexes.

use std::fmt::Write;

use super::opcode::{self, *};
use super::{CodeAttribute, Instruction, LineTable, StackMap, VerificationType};
use crate::classfile::{ClassFile, Constant, ConstantPool, Malformed, Member, access, to_string};

/// Disassembles the methods of a class for which `wanted` returns true, given name and descriptor.
pub fn disassemble(class: &ClassFile<'_>, mut wanted: impl FnMut(&str, &str) -> bool) -> Result<String, Malformed> {
    let mut out = String::new();
    for method in &class.methods {
        let (name, descriptor) = (to_string(method.name), to_string(method.descriptor));
        if wanted(&name, &descriptor) {
            let is_static = if method.access & access::STATIC != 0 { "static " } else { "" };
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(out, "{is_static}{name}{descriptor}");
            if let Some(attribute) = method.attribute("Code") {
                code(class, method, &CodeAttribute::read(attribute, &class.pool)?, &mut out)?;
            }
        }
    }
    Ok(out)
}

fn code(
    class: &ClassFile<'_>,
    method: &Member<'_>,
    code: &CodeAttribute<'_>,
    out: &mut String,
) -> Result<(), Malformed> {
    let pool = &class.pool;
    let _ = writeln!(out, "  stack {} locals {}", code.max_stack, code.max_locals);
    let lines = LineTable::of(&code.attributes);
    let initial = StackMap::initial_locals(None, method.descriptor, |_| Ok::<_, Malformed>(0))?;
    let mut first = Vec::new();
    if !method.is_static() {
        let is_constructor = method.name == b"<init>";
        first.push(if is_constructor {
            VerificationType::UninitializedThis
        } else {
            VerificationType::Object(class.this_class)
        });
    }
    first.extend(initial);
    // Versions before 50 do not use the attribute, so it may be out of date.
    let frames = match code.attribute("StackMapTable").filter(|_| class.major >= 50) {
        Some(table) => Some(StackMap::read(table, first, code)?),
        None => None,
    };
    let mut line = 0;
    for instruction in &code.instructions {
        let now = lines.line(instruction.pc);
        if now != line {
            line = now;
            let _ = writeln!(out, "  line {line}");
        }
        if let Some(frame) = frames.as_ref().and_then(|map| map.at(instruction.pc)) {
            let _ = writeln!(
                out,
                "  frame locals [{}] stack [{}]",
                types(&frame.locals, pool)?,
                types(&frame.stack, pool)?
            );
        }
        let _ = writeln!(
            out,
            "  {:5}: {}{}",
            instruction.pc,
            opcode::name(instruction.opcode),
            operands(instruction, pool)?
        );
    }
    for entry in &code.exceptions {
        let what = if entry.catch_type == 0 { "any".to_owned() } else { to_string(pool.class_name(entry.catch_type)?) };
        let _ = writeln!(out, "  catch {what} in {}..{} at {}", entry.start, entry.end, entry.handler);
    }
    Ok(())
}

fn types(list: &[VerificationType], pool: &ConstantPool<'_>) -> Result<String, Malformed> {
    let mut names = Vec::new();
    for kind in list {
        names.push(match kind {
            VerificationType::Top => "top".to_owned(),
            VerificationType::Integer => "int".to_owned(),
            VerificationType::Float => "float".to_owned(),
            VerificationType::Long => "long".to_owned(),
            VerificationType::Double => "double".to_owned(),
            VerificationType::Null => "null".to_owned(),
            VerificationType::UninitializedThis => "uninitializedThis".to_owned(),
            VerificationType::Object(0) => "(argument)".to_owned(),
            VerificationType::Object(index) => to_string(pool.class_name(*index)?),
            VerificationType::Uninitialized(pc) => format!("uninitialized({pc})"),
        });
    }
    Ok(names.join(", "))
}

fn operands(instruction: &Instruction<'_>, pool: &ConstantPool<'_>) -> Result<String, Malformed> {
    let bytes = instruction.bytes;
    Ok(match instruction.opcode {
        BIPUSH => format!(" {}", bytes[1] as i8),
        SIPUSH => format!(" {}", i16::from_be_bytes([bytes[1], bytes[2]])),
        NEWARRAY => format!(
            " {}",
            ["boolean", "char", "float", "double", "byte", "short", "int", "long"]
                [usize::from(bytes[1].clamp(4, 11) - 4)]
        ),
        IINC if instruction.wide => {
            format!(" {} {}", instruction.local().unwrap_or(0), i16::from_be_bytes([bytes[4], bytes[5]]))
        }
        IINC => format!(" {} {}", bytes[1], bytes[2] as i8),
        ILOAD..=ALOAD | ISTORE..=ASTORE | RET => format!(" {}", instruction.local().unwrap_or(0)),
        LDC | LDC_W | LDC2_W => format!(" {}", constant(pool.loadable(instruction.pool_index())?)),
        GETSTATIC..=INVOKEDYNAMIC => {
            let member = pool.member_ref(instruction.pool_index())?;
            let class = if member.class.is_empty() { String::new() } else { format!("{}.", to_string(member.class)) };
            let colon = if matches!(instruction.opcode, GETSTATIC..=PUTFIELD) { ":" } else { "" };
            format!(" {class}{}{colon}{}", to_string(member.name), to_string(member.descriptor))
        }
        NEW | ANEWARRAY | CHECKCAST | INSTANCEOF => {
            format!(" {}", to_string(pool.class_name(instruction.pool_index())?))
        }
        MULTIANEWARRAY => format!(" {} {}", to_string(pool.class_name(instruction.pool_index())?), bytes[3]),
        TABLESWITCH | LOOKUPSWITCH => {
            let targets: Vec<String> = instruction.targets().map(|target| target.to_string()).collect();
            format!(" default {} cases {}", targets[0], targets[1..].join(" "))
        }
        _ => instruction.branch_target().map_or(String::new(), |target| format!(" {target}")),
    })
}

fn constant(value: Constant<'_>) -> String {
    match value {
        Constant::Integer(value) => value.to_string(),
        Constant::Float(value) => format!("{value:?}f"),
        Constant::Long(value) => format!("{value}L"),
        Constant::Double(value) => format!("{value:?}d"),
        Constant::String(text) => format!("{:?}", to_string(text)),
        Constant::Class(name) => format!("class {}", to_string(name)),
        Constant::MethodType(descriptor) => format!("method type {}", to_string(descriptor)),
        Constant::MethodHandle => "method handle".to_owned(),
        Constant::Dynamic(descriptor) => format!("dynamic {}", to_string(descriptor)),
    }
}
