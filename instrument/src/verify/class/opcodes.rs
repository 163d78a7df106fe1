//! Instructions by opcode (JVMS §6.5): what follows the opcode, and what they do to the depth of the stack.

pub(super) const BIPUSH: u8 = 16;
pub(super) const SIPUSH: u8 = 17;
pub(super) const LDC: u8 = 18;
pub(super) const LDC_W: u8 = 19;
pub(super) const GOTO: u8 = 167;
pub(super) const JSR: u8 = 168;
pub(super) const RET: u8 = 169;
pub(super) const TABLESWITCH: u8 = 170;
pub(super) const LOOKUPSWITCH: u8 = 171;
pub(super) const GETSTATIC: u8 = 178;
pub(super) const PUTSTATIC: u8 = 179;
pub(super) const GETFIELD: u8 = 180;
pub(super) const PUTFIELD: u8 = 181;
pub(super) const INVOKEVIRTUAL: u8 = 182;
pub(super) const INVOKESPECIAL: u8 = 183;
pub(super) const INVOKESTATIC: u8 = 184;
pub(super) const INVOKEINTERFACE: u8 = 185;
pub(super) const INVOKEDYNAMIC: u8 = 186;
pub(super) const NEW: u8 = 187;
pub(super) const ATHROW: u8 = 191;
pub(super) const WIDE: u8 = 196;
pub(super) const MULTIANEWARRAY: u8 = 197;
pub(super) const GOTO_W: u8 = 200;
pub(super) const JSR_W: u8 = 201;

/// The operands of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// This number of bytes that need no check.
    Plain(u8),
    /// A local variable of this many slots.
    Local(u8),
    /// A local variable and a byte.
    Increment,
    /// The kind of a primitive array.
    ArrayKind,
    /// A one-byte constant pool index.
    Constant1,
    /// A two-byte constant pool index.
    Constant2,
    /// A constant, a count, a zero.
    Interface,
    /// A constant pool index and two zero bytes.
    Dynamic,
    /// A constant and a number of dimensions.
    Dimensions,
    Branch2,
    Branch4,
    Table,
    Lookup,
    Wide,
    /// No instruction of a class file.
    None,
}

pub(super) fn operands(opcode: u8) -> Operands {
    match opcode {
        0..=15 | 26..=53 | 59..=131 | 133..=152 | 172..=177 | 190 | 191 | 194 | 195 => Operands::Plain(0),
        BIPUSH => Operands::Plain(1),
        SIPUSH => Operands::Plain(2),
        LDC => Operands::Constant1,
        LDC_W | 20 | 178..=184 | NEW | 189 | 192 | 193 => Operands::Constant2,
        // iload fload aload, lload dload; istore fstore astore, lstore dstore; ret
        21 | 23 | 25 | 54 | 56 | 58 | RET => Operands::Local(1),
        22 | 24 | 55 | 57 => Operands::Local(2),
        132 => Operands::Increment,
        153..=168 | 198 | 199 => Operands::Branch2,
        TABLESWITCH => Operands::Table,
        LOOKUPSWITCH => Operands::Lookup,
        INVOKEINTERFACE => Operands::Interface,
        INVOKEDYNAMIC => Operands::Dynamic,
        188 => Operands::ArrayKind,
        WIDE => Operands::Wide,
        MULTIANEWARRAY => Operands::Dimensions,
        GOTO_W | JSR_W => Operands::Branch4,
        _ => Operands::None,
    }
}

/// The local variable of `xload_n` and `xstore_n`: its index and slots.
pub(super) fn short_local(opcode: u8) -> Option<(u16, u16)> {
    let place = match opcode {
        26..=45 => opcode - 26,
        59..=78 => opcode - 59,
        _ => return None,
    };
    // int, long, float, double, reference; four of each
    let slots = if matches!(place / 4, 1 | 3) { 2 } else { 1 };
    Some((u16::from(place % 4), slots))
}

/// Whether the next instruction is not reached from here.
pub(super) fn ends_block(opcode: u8) -> bool {
    matches!(opcode, GOTO | RET | TABLESWITCH | LOOKUPSWITCH | 172..=177 | ATHROW | GOTO_W)
}

/// Number of stack slots popped and pushed by instructions for which the opcode determines it.
pub(super) fn effect(opcode: u8) -> (u8, u8) {
    match opcode {
        0 => (0, 0),
        // constants
        1..=8 | 11..=13 | 16..=19 => (0, 1),
        9 | 10 | 14 | 15 | 20 => (0, 2),
        // loads: int, long, float, double, reference
        21 | 23 | 25 | 26..=29 | 34..=37 | 42..=45 => (0, 1),
        22 | 24 | 30..=33 | 38..=41 => (0, 2),
        // array loads
        46 | 48 | 50..=53 => (2, 1),
        47 | 49 => (2, 2),
        // stores
        54 | 56 | 58 | 59..=62 | 67..=70 | 75..=78 => (1, 0),
        55 | 57 | 63..=66 | 71..=74 => (2, 0),
        // array stores
        79 | 81 | 83..=86 => (3, 0),
        80 | 82 => (4, 0),
        // pop pop2 dup dup_x1 dup_x2 dup2 dup2_x1 dup2_x2 swap
        87 => (1, 0),
        88 => (2, 0),
        89 => (1, 2),
        90 => (2, 3),
        91 => (3, 4),
        92 => (2, 4),
        93 => (3, 5),
        94 => (4, 6),
        95 => (2, 2),
        // + - * / % in int, long, float, double
        96..=115 => {
            if opcode.is_multiple_of(2) {
                (2, 1)
            } else {
                (4, 2)
            }
        }
        // negation
        116 | 118 => (1, 1),
        117 | 119 => (2, 2),
        // shifts: the distance is an int
        120 | 122 | 124 => (2, 1),
        121 | 123 | 125 => (3, 2),
        126 | 128 | 130 => (2, 1),
        127 | 129 | 131 => (4, 2),
        132 => (0, 0),
        // conversions
        133 | 135 | 140 | 141 => (1, 2),
        134 | 139 | 145..=147 => (1, 1),
        136 | 137 | 142 | 144 => (2, 1),
        138 | 143 => (2, 2),
        // comparisons
        148 | 151 | 152 => (4, 1),
        149 | 150 => (2, 1),
        153..=158 | 198 | 199 => (1, 0),
        159..=166 => (2, 0),
        JSR | JSR_W => (0, 1),
        TABLESWITCH | LOOKUPSWITCH | 172 | 174 | 176 | 191 => (1, 0),
        173 | 175 => (2, 0),
        NEW => (0, 1),
        188 | 189 | 190 | 192 | 193 => (1, 1),
        194 | 195 => (1, 0),
        _ => (0, 0),
    }
}
