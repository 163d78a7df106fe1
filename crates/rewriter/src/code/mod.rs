//! Method bodies: instructions, stack map frames, data-flow analysis, and an editor that inserts code and adjusts
//! everything else.

mod attribute;
mod descriptor;
mod disasm;
mod editor;
mod flow;
mod frames;
mod instruction;
mod kept;
pub mod limits;
mod numbering;
pub mod opcode;
mod type_annotations;

pub use attribute::{CodeAttribute, ExceptionEntry, LineTable};
pub use descriptor::{class_of, parameter_slots, parameters, return_descriptor};
pub use disasm::disassemble;
pub use editor::{CodeEditor, EditError, HandlerFrame};
pub use flow::{Flow, State, Value};
pub use frames::{Frame, StackMap, VerificationType};
pub use instruction::{Instruction, Instructions};
pub use kept::{Signature, kept_locals};
pub use numbering::{CONSTANT, Numbering};
