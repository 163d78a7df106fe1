//! `StackMapTable` (JVMS §4.7.4, §4.10.1).

use super::bytes::Cursor;
use super::code::{Code, HAS_FRAME, IS_NEW, NEEDS_FRAME, START, Signature};
use super::{Attribute, Context, Sink, descriptor};

/// The first version in which frames are mandatory (§4.10.1).
const MANDATORY: u16 = 51;
const NAME: &[u8] = b"StackMapTable";

/// Slots of the local variables in a frame, one entry per variable.
type Locals = Vec<u8>;

/// Checks the frames and returns the stack depths that they declare, by offset.
pub(super) fn check(
    context: &Context<'_>,
    signature: &Signature<'_>,
    code: &mut Code<'_>,
    attributes: &[Attribute<'_>],
    sink: &mut Sink,
) -> Result<Vec<(u32, u32)>, String> {
    let mut tables = attributes.iter().filter(|attribute| attribute.name == NAME);
    let mut depths = Vec::new();
    // Before 50 the attribute means nothing.
    if context.major < 50 {
        return Ok(depths);
    }
    if let Some(table) = tables.next() {
        read(context, signature, code, table.info, &mut depths, sink)
            .map_err(|what| format!("StackMapTable: {what}"))?;
    }
    if tables.next().is_some() {
        sink.add("it has two StackMapTable attributes");
    }
    if context.major >= MANDATORY {
        for offset in 0..code.length() {
            if code.has(offset, NEEDS_FRAME) && !code.has(offset, HAS_FRAME) {
                sink.at(offset, "there is no stack map frame where control flow needs one");
            }
        }
    }
    Ok(depths)
}

fn read(
    context: &Context<'_>,
    signature: &Signature<'_>,
    code: &mut Code<'_>,
    info: &[u8],
    depths: &mut Vec<(u32, u32)>,
    sink: &mut Sink,
) -> Result<(), String> {
    let cut = || "it is cut off".to_owned();
    let mut locals: Locals = signature.receiver.map(|_| 1).into_iter().collect();
    descriptor::each_parameter(signature.descriptor, |slots| locals.push(slots as u8));
    let mut cursor = Cursor::new(info);
    let mut last: Option<usize> = None;
    for number in 0..cursor.u16().ok_or_else(cut)? {
        let kind = cursor.u8().ok_or_else(cut)?;
        let delta = match kind {
            0..=63 => u16::from(kind),
            64..=127 => u16::from(kind - 64),
            128..=246 => return Err(format!("frame {number} is of the unknown kind {kind}")),
            247..=255 => cursor.u16().ok_or_else(cut)?,
        };
        let offset = last.map_or(usize::from(delta), |last| last + usize::from(delta) + 1);
        last = Some(offset);
        if !code.has(offset, START) {
            return Err(format!("frame {number} is at {offset}, where no instruction starts"));
        }
        code.marks[offset] |= HAS_FRAME;
        let mut types = Types { context, code, in_constructor: signature.name == b"<init>" };
        let mut many = |cursor: &mut Cursor<'_>, count: u16| -> Result<Locals, String> {
            let place = |what| format!("frame {number} at {offset}: {what}");
            (0..count).map(|_| types.next(cursor).ok_or_else(cut)?.map_err(place)).collect()
        };
        let mut depth = 0;
        match kind {
            64..=127 | 247 => depth = slots(&many(&mut cursor, 1)?),
            248..=250 => {
                let left = locals.len().checked_sub(usize::from(251 - kind));
                locals.truncate(left.ok_or_else(|| format!("frame {number} chops more locals than there are"))?);
            }
            252..=254 => locals.extend(many(&mut cursor, u16::from(kind - 251))?),
            255 => {
                let count = cursor.u16().ok_or_else(cut)?;
                locals = many(&mut cursor, count)?;
                let count = cursor.u16().ok_or_else(cut)?;
                depth = slots(&many(&mut cursor, count)?);
            }
            _ => {}
        }
        if slots(&locals) > u32::from(code.max_locals) {
            sink.at(offset, format!("its frame has more locals than max_locals {}", code.max_locals));
        }
        depths.push((offset as u32, depth));
    }
    if cursor.is_at_end() { Ok(()) } else { Err("it is longer than its frames".into()) }
}

fn slots(types: &Locals) -> u32 {
    types.iter().map(|slots| u32::from(*slots)).sum()
}

struct Types<'t, 'a> {
    context: &'t Context<'a>,
    code: &'t Code<'a>,
    in_constructor: bool,
}

impl Types<'_, '_> {
    /// Number of slots of a verification type; `None` at the end.
    fn next(&mut self, cursor: &mut Cursor<'_>) -> Option<Result<u8, String>> {
        Some(match cursor.u8()? {
            0..=2 | 5 => Ok(1),
            3 | 4 => Ok(2),
            6 if self.in_constructor => Ok(1),
            6 => Err("uninitializedThis outside of a constructor".into()),
            7 => {
                let class = cursor.u16()?;
                match self.context.pool.class(class) {
                    Some(_) => Ok(1),
                    None => Err(format!("a type refers to constant {class}, which is not a class")),
                }
            }
            8 => {
                let new = cursor.u16()?;
                if self.code.has(new.into(), IS_NEW) {
                    Ok(1)
                } else {
                    Err(format!("an uninitialized type refers to offset {new}, which is not a new instruction"))
                }
            }
            other => Err(format!("unknown type {other}")),
        })
    }
}
