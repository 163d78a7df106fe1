//! Finds the local variables set on entry (receiver and parameters) that have their declared type throughout the
//! method.
//!
//! The frame of a handler for the whole method may only declare those. Compilers write frames with all parameters in
//! them, and libraries that read class files as resources rely on it: Byte Buddy copies the code of an advice from its
//! class file and rejects a full frame without the advice's parameters.
//!
//! A parameter that is overwritten still counts as kept if the verifier infers the same type afterwards. With another
//! type, even a subclass, the verifier might have to load classes that it does not load for the original code.

use std::borrow::Cow;

use super::descriptor::{class_of, parameters, return_descriptor};
use super::opcode::*;
use super::{CONSTANT, CodeAttribute, Flow, Frame, Instruction, Numbering, StackMap, State, Value, VerificationType};
use crate::classfile::{Constant, ConstantPool, Malformed};

const OBJECT: &[u8] = b"java/lang/Object";

/// A parameter or the receiver, and the local variable that it is in.
struct Parameter<'d> {
    kind: Kind<'d>,
    slot: u16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind<'d> {
    Receiver,
    Integer,
    Float,
    Long,
    Double,
    /// The name of the class in internal form, or the descriptor of an array.
    Reference(&'d [u8]),
}

impl<'d> Kind<'d> {
    fn of(descriptor: &'d [u8]) -> Self {
        match descriptor {
            b"J" => Kind::Long,
            b"D" => Kind::Double,
            b"F" => Kind::Float,
            _ => class_of(descriptor).map_or(Kind::Integer, Kind::Reference),
        }
    }

    fn slots(self) -> u16 {
        if matches!(self, Kind::Long | Kind::Double) { 2 } else { 1 }
    }
}

/// The method to analyse.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'c> {
    pub receiver: Option<Value>,
    pub descriptor: &'c [u8],
    pub class: &'c [u8],
}

/// Returns for the receiver, if there is one, and each parameter whether it is kept, in the order of `initial_locals`
/// of the frames. The receiver of a constructor is not kept, since its type changes.
pub fn kept_locals<'c>(
    code: &'c CodeAttribute<'_>,
    pool: &'c ConstantPool<'_>,
    signature: Signature<'c>,
    frames: &'c StackMap,
) -> Result<Vec<bool>, Malformed> {
    let mut next = 0;
    let receiver = signature.receiver.map(|_| Kind::Receiver);
    let all: Vec<Parameter<'_>> = receiver
        .into_iter()
        .chain(parameters(signature.descriptor).map(Kind::of))
        .map(|kind| {
            let slot = next;
            next += kind.slots();
            Parameter { kind, slot }
        })
        .collect();
    let mut kept = vec![true; all.len()];
    for frame in &frames.frames {
        by_frame(&all, &mut kept, frame, frames, pool)?;
    }
    if by_stores(&all, &mut kept, code) {
        by_types(&all, &mut kept, code, pool, signature, frames)?;
    }
    Ok(kept)
}

/// Excludes parameters for which some frame declares another type.
fn by_frame(
    all: &[Parameter<'_>],
    kept: &mut [bool],
    frame: &Frame,
    map: &StackMap,
    pool: &ConstantPool<'_>,
) -> Result<(), Malformed> {
    let (mut slot, mut at) = (0, 0);
    for (index, (parameter, kept)) in all.iter().zip(kept).enumerate() {
        while let Some(kind) = frame.locals.get(at).filter(|_| slot < usize::from(parameter.slot)) {
            slot += kind.slots();
            at += 1;
        }
        let found = frame.locals.get(at).filter(|_| slot == usize::from(parameter.slot));
        *kept &= match (parameter.kind, found) {
            (_, None) => false,
            // The same type as on entry, whatever its constant pool index.
            (_, Some(kind)) if at == index && map.initial_locals.get(at) == Some(kind) => true,
            (Kind::Reference(class), Some(&VerificationType::Object(found))) => pool.class_name(found)? == class,
            (Kind::Integer, Some(kind)) => *kind == VerificationType::Integer,
            (Kind::Float, Some(kind)) => *kind == VerificationType::Float,
            (Kind::Long, Some(kind)) => *kind == VerificationType::Long,
            (Kind::Double, Some(kind)) => *kind == VerificationType::Double,
            (Kind::Receiver | Kind::Reference(_), Some(_)) => false,
        };
    }
    Ok(())
}

/// Excludes parameters that are overwritten with a primitive of another type. Returns whether references are stored to
/// any, which [`by_types`] has to examine.
fn by_stores(all: &[Parameter<'_>], kept: &mut [bool], code: &CodeAttribute<'_>) -> bool {
    let mut references = false;
    for (kind, slot) in code.instructions.iter().filter_map(stored) {
        let end = slot.saturating_add(kind.slots());
        for (parameter, kept) in all.iter().zip(&mut *kept) {
            if !*kept || end <= parameter.slot || parameter.slot + parameter.kind.slots() <= slot {
                continue;
            }
            *kept = slot == parameter.slot
                && match (kind, parameter.kind) {
                    (Kind::Reference(_), Kind::Reference(_)) => {
                        references = true;
                        true
                    }
                    (stored, declared) => stored == declared,
                };
        }
    }
    references
}

/// Kind and local variable of a store. The class of a reference is unknown here.
fn stored(instruction: &Instruction<'_>) -> Option<(Kind<'static>, u16)> {
    let kind = match instruction.opcode {
        ISTORE | ISTORE_0..=ISTORE_3 => Kind::Integer,
        LSTORE | LSTORE_0..=LSTORE_3 => Kind::Long,
        FSTORE | FSTORE_0..=FSTORE_3 => Kind::Float,
        DSTORE | DSTORE_0..=DSTORE_3 => Kind::Double,
        ASTORE | ASTORE_0..=ASTORE_3 => Kind::Reference(b""),
        _ => return None,
    };
    Some((kind, instruction.local()?))
}

/// Excludes parameters that are overwritten with a reference that may have another type.
fn by_types<'c>(
    all: &[Parameter<'_>],
    kept: &mut [bool],
    code: &'c CodeAttribute<'_>,
    pool: &'c ConstantPool<'_>,
    signature: Signature<'c>,
    frames: &'c StackMap,
) -> Result<(), Malformed> {
    let Signature { receiver, descriptor, class } = signature;
    let flow = Flow::new(code, pool, receiver, descriptor, class, Some(frames))?;
    let mut types = Types::new(&flow, pool, signature);
    let mut failure = None;
    flow.visit(|index, state| {
        let instruction = &code.instructions[index];
        let mut follow = || {
            let top = types.before(instruction, state, frames)?;
            if let Some((Kind::Reference(_), slot)) = stored(instruction)
                && let Some(at) = all.iter().position(|parameter| parameter.slot == slot)
                && let Kind::Reference(declared) = all[at].kind
            {
                kept[at] &= match top {
                    Type::Null => true,
                    Type::Reference => declared == OBJECT,
                    Type::Class(name) => declared == OBJECT || *name == *declared,
                    Type::Other => false,
                };
            }
            types.behind(instruction)
        };
        if let Err(error) = follow() {
            failure.get_or_insert(error);
        }
    })?;
    failure.map_or(Ok(()), Err)
}

/// The type that the verifier infers for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Type<'a> {
    Null,
    Class(Cow<'a, [u8]>),
    /// An initialized object of an unknown class.
    Reference,
    Other,
}

/// Tracks the types of references.
struct Types<'f, 'c, 'a> {
    numbering: Numbering<'f, 'c, 'a>,
    pool: &'c ConstantPool<'a>,
    class: &'c [u8],
    /// Types by value number.
    known: Vec<Type<'c>>,
    /// Type of the value that the last instruction pushed, if the instruction implies it and the value number does not.
    top: Option<Type<'c>>,
    /// The top two values of the stack before the instruction, top first.
    operands: [Value; 2],
    entry: Vec<Option<Type<'c>>>,
}

impl<'f, 'c, 'a> Types<'f, 'c, 'a> {
    fn new(flow: &'f Flow<'c, 'a>, pool: &'c ConstantPool<'a>, signature: Signature<'c>) -> Self {
        let numbering = Numbering::new(flow, pool, false);
        let (class, entry) = (signature.class, on_entry(signature));
        Self { numbering, pool, class, known: Vec::new(), top: None, operands: [Value::Top; 2], entry }
    }

    fn of(&self, value: Value) -> Type<'c> {
        match value {
            Value::Numbered(CONSTANT) | Value::This | Value::Reference => Type::Reference,
            Value::Numbered(number) => self.known.get(number as usize).cloned().unwrap_or(Type::Reference),
            _ => Type::Other,
        }
    }

    /// Type of the top of the stack before an instruction.
    fn before(
        &mut self,
        instruction: &Instruction<'_>,
        flow: Option<&State>,
        frames: &'c StackMap,
    ) -> Result<Type<'c>, Malformed> {
        let (state, starts) = self.numbering.before(instruction, flow);
        let Some(state) = state else { return Ok(Type::Other) };
        let operands = [state.from_top(0), state.from_top(1)];
        if starts {
            self.top = None;
            let declared = match frames.at(instruction.pc) {
                Some(frame) => declared(frame, &frames.initial_locals, &self.entry, self.pool)?,
                None => self.entry.clone(),
            };
            let values = state.locals.iter().chain(&state.stack).copied();
            for (value, kind) in values.zip(declared) {
                if let (Value::Numbered(number), Some(kind)) = (value, kind) {
                    set(&mut self.known, number, kind);
                }
            }
        }
        self.operands = operands;
        Ok(self.top.take().unwrap_or_else(|| self.of(operands[0])))
    }

    /// Advances past an instruction.
    fn behind(&mut self, instruction: &Instruction<'_>) -> Result<(), Malformed> {
        let made = self.numbering.behind(instruction)?;
        let pool = self.pool;
        let member = || pool.member_ref(instruction.pool_index());
        let of_descriptor = |descriptor: &'c [u8]| class_of(descriptor).map(|name| Type::Class(name.into()));
        let kind = match instruction.opcode {
            ACONST_NULL => Some(Type::Null),
            LDC | LDC_W => match pool.loadable(instruction.pool_index())? {
                Constant::String(_) => Some(Type::Class(b"java/lang/String".into())),
                Constant::Class(_) => Some(Type::Class(b"java/lang/Class".into())),
                _ => None,
            },
            GETSTATIC | GETFIELD => of_descriptor(member()?.descriptor),
            INVOKEVIRTUAL..=INVOKEDYNAMIC => match member()? {
                called if called.name == b"<init>" => self.named(called.class),
                called => of_descriptor(return_descriptor(called.descriptor)),
            },
            CHECKCAST => self.named(pool.class_name(instruction.pool_index())?),
            MULTIANEWARRAY => Some(Type::Class(pool.class_name(instruction.pool_index())?.into())),
            ANEWARRAY => {
                let name = pool.class_name(instruction.pool_index())?;
                let array = match name.first() {
                    Some(b'[') => [b"[", name].concat(),
                    _ => [b"[L", name, b";"].concat(),
                };
                Some(Type::Class(array.into()))
            }
            NEWARRAY => {
                let element =
                    instruction.bytes.get(1).and_then(|kind| b"ZCFDBSIJ".get(usize::from(kind.checked_sub(4)?)));
                element.map(|&element| Type::Class(vec![b'[', element].into()))
            }
            AALOAD => match self.of(self.operands[1]) {
                Type::Class(array) => {
                    let element = array.strip_prefix(b"[").and_then(class_of);
                    element.map(|name| Type::Class(name.to_vec().into()))
                }
                _ => None,
            },
            _ => None,
        };
        match (made, kind) {
            // A cast returns the same object, and all constants share a number.
            (None | Some(CONSTANT), kind) => {
                let says = matches!(instruction.opcode, CHECKCAST | ACONST_NULL | LDC | LDC_W);
                self.top = kind.filter(|_| says);
            }
            (Some(number), kind) => set(&mut self.known, number, kind.unwrap_or(Type::Reference)),
        }
        Ok(())
    }

    /// The type that a class constant names. In a hidden class, the constant of the class itself is a type other than
    /// the one that descriptors with its name mean.
    fn named(&self, name: &'c [u8]) -> Option<Type<'c>> {
        (name != self.class).then(|| Type::Class(name.into()))
    }
}

fn set<'c>(known: &mut Vec<Type<'c>>, number: u32, kind: Type<'c>) {
    let at = number as usize;
    if known.len() <= at {
        known.resize(at + 1, Type::Reference);
    }
    known[at] = kind;
}

/// Types of the local variables on entry, one per slot; `None` for primitives and for classes without a name.
fn on_entry(signature: Signature<'_>) -> Vec<Option<Type<'_>>> {
    let mut all: Vec<_> = signature.receiver.map(|_| None).into_iter().collect();
    for kind in parameters(signature.descriptor).map(Kind::of) {
        all.push(match kind {
            Kind::Reference(name) => Some(Type::Class(name.into())),
            _ => None,
        });
        all.extend((kind.slots() == 2).then_some(None));
    }
    all
}

/// Types of local variables and operand stack that a frame declares. Those that are `on_entry` may have no constant
/// yet, or one that is only in the new class.
fn declared<'c>(
    frame: &'c Frame,
    on_entry: &[VerificationType],
    entry: &[Option<Type<'c>>],
    pool: &'c ConstantPool<'_>,
) -> Result<Vec<Option<Type<'c>>>, Malformed> {
    let mut all = Vec::new();
    let as_on_entry = frame.locals.iter().zip(on_entry).take_while(|(here, there)| here == there).count();
    for (at, kind) in frame.locals.iter().chain(&frame.stack).enumerate() {
        all.push(match *kind {
            VerificationType::Object(_) if at < as_on_entry => entry.get(all.len()).cloned().flatten(),
            VerificationType::Object(index) => Some(Type::Class(pool.class_name(index)?.into())),
            VerificationType::Null => Some(Type::Null),
            _ => None,
        });
        all.extend((kind.slots() == 2).then_some(None));
    }
    Ok(all)
}
