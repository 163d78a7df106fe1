//! Opcodes (JVMS §6.5): names, lengths, properties.

macro_rules! opcodes {
    ($($value:literal $name:ident $len:literal)*) => {
        $(pub const $name: u8 = $value;)*
        /// Mnemonics in upper case, by opcode.
        const NAMES: [&str; 202] = [$(stringify!($name)),*];
        /// Length of each instruction in bytes, 0 if it varies.
        const LENGTHS: [u8; 202] = [$($len),*];
    };
}

opcodes! {
    0 NOP 1 1 ACONST_NULL 1 2 ICONST_M1 1 3 ICONST_0 1 4 ICONST_1 1 5 ICONST_2 1 6 ICONST_3 1 7 ICONST_4 1 8 ICONST_5 1
    9 LCONST_0 1 10 LCONST_1 1 11 FCONST_0 1 12 FCONST_1 1 13 FCONST_2 1 14 DCONST_0 1 15 DCONST_1 1
    16 BIPUSH 2 17 SIPUSH 3 18 LDC 2 19 LDC_W 3 20 LDC2_W 3
    21 ILOAD 2 22 LLOAD 2 23 FLOAD 2 24 DLOAD 2 25 ALOAD 2
    26 ILOAD_0 1 27 ILOAD_1 1 28 ILOAD_2 1 29 ILOAD_3 1 30 LLOAD_0 1 31 LLOAD_1 1 32 LLOAD_2 1 33 LLOAD_3 1
    34 FLOAD_0 1 35 FLOAD_1 1 36 FLOAD_2 1 37 FLOAD_3 1 38 DLOAD_0 1 39 DLOAD_1 1 40 DLOAD_2 1 41 DLOAD_3 1
    42 ALOAD_0 1 43 ALOAD_1 1 44 ALOAD_2 1 45 ALOAD_3 1
    46 IALOAD 1 47 LALOAD 1 48 FALOAD 1 49 DALOAD 1 50 AALOAD 1 51 BALOAD 1 52 CALOAD 1 53 SALOAD 1
    54 ISTORE 2 55 LSTORE 2 56 FSTORE 2 57 DSTORE 2 58 ASTORE 2
    59 ISTORE_0 1 60 ISTORE_1 1 61 ISTORE_2 1 62 ISTORE_3 1 63 LSTORE_0 1 64 LSTORE_1 1 65 LSTORE_2 1 66 LSTORE_3 1
    67 FSTORE_0 1 68 FSTORE_1 1 69 FSTORE_2 1 70 FSTORE_3 1 71 DSTORE_0 1 72 DSTORE_1 1 73 DSTORE_2 1 74 DSTORE_3 1
    75 ASTORE_0 1 76 ASTORE_1 1 77 ASTORE_2 1 78 ASTORE_3 1
    79 IASTORE 1 80 LASTORE 1 81 FASTORE 1 82 DASTORE 1 83 AASTORE 1 84 BASTORE 1 85 CASTORE 1 86 SASTORE 1
    87 POP 1 88 POP2 1 89 DUP 1 90 DUP_X1 1 91 DUP_X2 1 92 DUP2 1 93 DUP2_X1 1 94 DUP2_X2 1 95 SWAP 1
    96 IADD 1 97 LADD 1 98 FADD 1 99 DADD 1 100 ISUB 1 101 LSUB 1 102 FSUB 1 103 DSUB 1
    104 IMUL 1 105 LMUL 1 106 FMUL 1 107 DMUL 1 108 IDIV 1 109 LDIV 1 110 FDIV 1 111 DDIV 1
    112 IREM 1 113 LREM 1 114 FREM 1 115 DREM 1 116 INEG 1 117 LNEG 1 118 FNEG 1 119 DNEG 1
    120 ISHL 1 121 LSHL 1 122 ISHR 1 123 LSHR 1 124 IUSHR 1 125 LUSHR 1
    126 IAND 1 127 LAND 1 128 IOR 1 129 LOR 1 130 IXOR 1 131 LXOR 1 132 IINC 3
    133 I2L 1 134 I2F 1 135 I2D 1 136 L2I 1 137 L2F 1 138 L2D 1 139 F2I 1 140 F2L 1 141 F2D 1
    142 D2I 1 143 D2L 1 144 D2F 1 145 I2B 1 146 I2C 1 147 I2S 1
    148 LCMP 1 149 FCMPL 1 150 FCMPG 1 151 DCMPL 1 152 DCMPG 1
    153 IFEQ 3 154 IFNE 3 155 IFLT 3 156 IFGE 3 157 IFGT 3 158 IFLE 3
    159 IF_ICMPEQ 3 160 IF_ICMPNE 3 161 IF_ICMPLT 3 162 IF_ICMPGE 3 163 IF_ICMPGT 3 164 IF_ICMPLE 3
    165 IF_ACMPEQ 3 166 IF_ACMPNE 3 167 GOTO 3 168 JSR 3 169 RET 2 170 TABLESWITCH 0 171 LOOKUPSWITCH 0
    172 IRETURN 1 173 LRETURN 1 174 FRETURN 1 175 DRETURN 1 176 ARETURN 1 177 RETURN 1
    178 GETSTATIC 3 179 PUTSTATIC 3 180 GETFIELD 3 181 PUTFIELD 3
    182 INVOKEVIRTUAL 3 183 INVOKESPECIAL 3 184 INVOKESTATIC 3 185 INVOKEINTERFACE 5 186 INVOKEDYNAMIC 5
    187 NEW 3 188 NEWARRAY 2 189 ANEWARRAY 3 190 ARRAYLENGTH 1 191 ATHROW 1 192 CHECKCAST 3 193 INSTANCEOF 3
    194 MONITORENTER 1 195 MONITOREXIT 1 196 WIDE 0 197 MULTIANEWARRAY 4 198 IFNULL 3 199 IFNONNULL 3
    200 GOTO_W 5 201 JSR_W 5
}

/// Mnemonic in lower case.
pub fn name(opcode: u8) -> String {
    NAMES.get(usize::from(opcode)).map_or_else(|| format!("op_{opcode}"), |name| name.to_lowercase())
}

/// Length in bytes of an instruction with a fixed length, 0 for switches and `wide`, `None` for undefined opcodes.
pub fn fixed_length(opcode: u8) -> Option<usize> {
    LENGTHS.get(usize::from(opcode)).map(|&length| length.into())
}

/// Whether it is a conditional branch, which has a 16-bit offset.
pub fn is_conditional(opcode: u8) -> bool {
    matches!(opcode, IFEQ..=IF_ACMPNE | IFNULL | IFNONNULL)
}

/// Opcode of the opposite condition.
pub fn inverted(opcode: u8) -> u8 {
    match opcode {
        // IFEQ/IFNE … IF_ACMPEQ/IF_ACMPNE come in pairs, odd first; IFNULL/IFNONNULL even first.
        IFNULL | IFNONNULL => opcode ^ 1,
        _ => ((opcode + 1) ^ 1) - 1,
    }
}

/// Whether the instruction calls a method.
pub fn is_call(opcode: u8) -> bool {
    matches!(opcode, INVOKEVIRTUAL..=INVOKEDYNAMIC)
}

/// Whether it is one of the return instructions.
pub fn is_return(opcode: u8) -> bool {
    matches!(opcode, IRETURN..=RETURN)
}

/// Whether control never falls through to the next instruction.
pub fn ends_block(opcode: u8) -> bool {
    matches!(opcode, GOTO | GOTO_W | RET | TABLESWITCH | LOOKUPSWITCH | IRETURN..=RETURN | ATHROW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_invert_in_pairs() {
        for (one, other) in [
            (IFEQ, IFNE),
            (IFLT, IFGE),
            (IFGT, IFLE),
            (IF_ICMPEQ, IF_ICMPNE),
            (IF_ICMPLT, IF_ICMPGE),
            (IF_ICMPGT, IF_ICMPLE),
            (IF_ACMPEQ, IF_ACMPNE),
            (IFNULL, IFNONNULL),
        ] {
            assert_eq!(inverted(one), other);
            assert_eq!(inverted(other), one);
        }
    }
}
